"""The twelve lessons: their order, what each needs, where its steps lead, and what its check asks."""

from dataclasses import dataclass, field

from ui import lesson, sampling_form, session
from ui.places import PLACES, Place
from wording import words

say = words("ui.lesson_list")

CAUSAL = "stories-clm"  # the shipped model that lessons are written for
OPENING = "Once upon a time, there was a"
SENTENCE = "Once upon a time, there was a princess called Lily."
SHUFFLED = "Lily a called princess was, there time a. upon Once"
STRANGE = "Once upon a time, there was a spreadsheet who"
EMOJI = "Zoë saw a 👨‍👩‍👧 at 9:45."
RARE = "Once upon a time, there was an unbelievable tokenization."
NUMBERS = "In 1999, 3.14159 × 1,000,000 = 3,141,590."
STORY = session.DEFAULT_TEXT


@dataclass(frozen=True)
class Step:
    """One thing to do on a live page.

    Attributes:
        place: where.
        text: the text of all pages there; None leaves the person's own.
        query: more that the address of the page says.
        numbers: settings that the page's widgets bind to the address themselves.
        model: the model that all pages look into; "" leaves the person's own.
    """

    place: Place
    text: str | None = None
    query: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    model: str = CAUSAL

    @property
    def address(self) -> dict[str, str]:
        """What the page's address says of view and settings."""
        return {**self.place.query, **self.query}


@dataclass(frozen=True)
class Lesson:
    """One lesson; its sentences stand in the text files.

    Attributes:
        minutes: about how long it takes.
        needs: lessons that it builds on.
        steps: what to do.
        check: exercises; with all of them right the lesson is done.
        diagram: name of a flow, and its boxes that light up.
        formula: in LaTeX.
        line: the same formula as HTML, for the summary, which needs no script.
        examples: worked examples.
        words: of the glossary.
    """

    minutes: int
    needs: tuple[str, ...]
    steps: tuple[Step, ...]
    check: tuple[str, ...]
    diagram: tuple[str, tuple[str, ...]]
    formula: str
    line: str
    examples: tuple[str, ...]
    words: tuple[str, ...]


def _at(place: str, text: str | None = None, **query: str) -> Step:
    return Step(PLACES[place], text, query)


def _example(name: str) -> Step:
    return Step(Place("examples", "example", name), model="")


def _study(name: str) -> Step:
    return Step(PLACES[name], model="")


def _write(view: str, **settings: float) -> Step:
    return Step(PLACES[view], OPENING, numbers={**sampling_form.DEFAULTS, **settings})


LESSONS = {
    "language-model": Lesson(
        minutes=10,
        needs=(),
        steps=(
            _at("home", STORY),
            _at("one-position", OPENING, measure="probability"),
            _at("chain-rule", SENTENCE),
            _at("chain-rule", SHUFFLED),
            Step(PLACES["guess"], model=""),
        ),
        check=("chain-rule", "joint-digits"),
        diagram=("flow", ("text", "probability")),
        formula=r"P(x_1 \dots x_T) = \prod_{t=1}^{T} p(x_t \mid x_1 \dots x_{t-1})",
        line="<i>P</i>(<i>x</i><sub>1</sub> … <i>x</i><sub>T</sub>) = "
        "∏<sub>t</sub> <i>p</i>(<i>x</i><sub>t</sub> | <i>x</i><sub>1</sub> … <i>x</i><sub>t−1</sub>)",
        examples=("chain-rule", "joint-space"),
        words=("language-model", "chain-rule", "joint-probability", "probability", "true-distribution"),
    ),
    "tokens": Lesson(
        minutes=10,
        needs=("language-model",),
        steps=(
            _at("pieces", EMOJI),
            _at("pieces", RARE),
            _at("side-by-side", NUMBERS),
            _at("train-your-own", STORY),
        ),
        check=("utf8-bytes", "first-merge", "merge-saves"),
        diagram=("flow", ("tokens", "ids")),
        formula=r"s \to (x_1 \dots x_T),\qquad x_t \in \{0 \dots V - 1\}",
        line="<i>x</i><sub>1</sub> … <i>x</i><sub>T</sub>,  <i>x</i><sub>t</sub> ∈ {0 … <i>V</i> − 1}",
        examples=("vocabulary",),
        words=("token", "id", "vocabulary", "vocab-size", "tokenizer", "bpe", "merge", "byte"),
    ),
    "vectors": Lesson(
        minutes=10,
        needs=("tokens",),
        steps=(
            _at("look-up", STORY),
            _at("position", STORY),
            _at("neighbours", "Once upon a time, there was a princess called Lily"),
            _at("map", STORY),
        ),
        check=("one-hot-row", "embedding-parameters"),
        diagram=("flow", ("embeddings",)),
        formula=r"x_t = e_{i}^\top E,\qquad E: V \times d",
        line="<i>x</i><sub>t</sub> = <i>e</i><sub>i</sub><sup>⊤</sup> <i>E</i>,  "
        "<i>E</i>: <i>V</i> × <i>d</i>",
        examples=("one-hot",),
        words=("embedding", "one-hot", "d-model", "position", "rotary", "neighbour", "cosine"),
    ),
    "attention": Lesson(
        minutes=12,
        needs=("vectors",),
        steps=(
            _at("attention", lesson.RECALL),
            _at("attention", STORY),
            _at("logit-lens", lesson.RECALL),
            _at("switch-off", lesson.RECALL),
        ),
        check=("attention-weight", "causal-row", "hide-future"),
        diagram=("flow", ("attention",)),
        formula=r"\mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_\text{head}}}\right) V",
        line="softmax(<i>QK</i><sup>⊤</sup> / √<i>d</i><sub>head</sub>) <i>V</i>",
        examples=("tiny-attention", "causal-mask"),
        words=("attention", "query", "key", "value", "head", "attention-weights", "causal-mask",
               "residual-stream", "mlp", "block", "induction-head"),
    ),
    "softmax": Lesson(
        minutes=10,
        needs=("language-model",),
        steps=(
            _at("one-position", OPENING, measure="logit"),
            _at("one-position", OPENING, measure="probability"),
            _example("softmax"),
            _write("waterfall", temperature=2.0, top_p=1.0),
        ),
        check=("softmax-three", "sigmoid-two", "shift-invariance"),
        diagram=("flow", ("logits", "softmax")),
        formula=r"p_v = \frac{e^{z_v}}{\sum_u e^{z_u}}",
        line="<i>p</i><sub>v</sub> = <i>e</i><sup><i>z</i><sub>v</sub></sup> / "
        "∑<sub>u</sub> <i>e</i><sup><i>z</i><sub>u</sub></sup>",
        examples=("softmax", "sigmoid", "five-words"),
        words=("logit", "softmax", "probability", "log-probability", "sigmoid"),
    ),
    "loss": Lesson(
        minutes=12,
        needs=("softmax",),
        steps=(
            _at("surprise", lesson.RECALL),
            _at("surprise", STRANGE),
            _at("chain-rule", SENTENCE),
            _example("sentence-loss"),
        ),
        check=("minus-log", "sentence-loss", "perplexity-of-loss"),
        diagram=("training", ("loss",)),
        formula=r"L = -\frac{1}{N} \sum_{t} \ln p(x_t),\qquad \mathrm{PPL} = e^{L}",
        line="<i>L</i> = −(1/<i>N</i>) ∑<sub>t</sub> ln <i>p</i>(<i>x</i><sub>t</sub>),  "
        "PPL = <i>e</i><sup><i>L</i></sup>",
        examples=("sentence-loss", "one-target", "batch-loss", "perplexity"),
        words=("surprisal", "nat", "cross-entropy", "entropy", "kl", "loss", "perplexity", "floor"),
    ),
    "shift": Lesson(
        minutes=12,
        needs=("tokens", "loss"),
        steps=(
            _example("shift"),
            _example("windows"),
            _at("best-guesses", SENTENCE),
            _at("one-step", SENTENCE),
        ),
        check=("inputs-and-targets", "n-targets", "logits-shape"),
        diagram=("training", ("batch", "forward")),
        formula=r"x = (t_0 \dots t_{T-1}),\quad y = (t_1 \dots t_T);\qquad z: B \times T \times V",
        line="<i>x</i> = (<i>t</i><sub>0</sub> … <i>t</i><sub>T−1</sub>),  "
        "<i>y</i> = (<i>t</i><sub>1</sub> … <i>t</i><sub>T</sub>),  <i>z</i>: <i>B</i> × <i>T</i> × <i>V</i>",
        examples=("shift", "windows"),
        words=("shift", "target", "window", "batch", "self-supervised", "training-text"),
    ),
    "training": Lesson(
        minutes=15,
        needs=("shift",),
        steps=(
            Step(PLACES["train"], model=""),
            _at("one-step", STORY),
            _at("time-machine", STORY),
            Step(PLACES["runs"], model=""),
        ),
        check=("start-loss", "training-order", "warm-up"),
        diagram=("training", ("backward", "update")),
        formula=r"\theta \leftarrow \theta - \eta\, \nabla_\theta L,\qquad "
        r"\frac{\partial L}{\partial z_v} = p_v - [v = y]",
        line="θ ← θ − η ∇<i>L</i>,  "
        "∂<i>L</i>/∂<i>z</i><sub>v</sub> = <i>p</i><sub>v</sub> − [<i>v</i> = <i>y</i>]",
        examples=("gradient",),
        words=("step", "gradient", "backpropagation", "adam", "learning-rate", "warmup", "weight-decay",
               "baseline", "n-gram", "random-guess", "floor", "validation", "overfitting"),
    ),
    "masked": Lesson(
        minutes=15,
        needs=("attention", "shift"),
        steps=(
            _at("two-models", STORY),
            _at("masked-batch", SENTENCE),
            _at("what-is-paid", SENTENCE),
            _at("fill-blanks", SENTENCE),
            _at("not-comparable", SENTENCE),
        ),
        check=("masked-targets", "mask-split", "which-generates"),
        diagram=("objectives", ("hide", "both-sides", "fill", "left-only", "next")),
        formula=r"p(x_t \mid x_1 \dots x_{t-1}) \;\neq\; p(x_t \mid x_s,\ s \neq t)",
        line="<i>p</i>(<i>x</i><sub>t</sub> | <i>x</i><sub>1</sub> … <i>x</i><sub>t−1</sub>)  ≠  "
        "<i>p</i>(<i>x</i><sub>t</sub> | <i>x</i><sub>s</sub>, <i>s</i> ≠ <i>t</i>)",
        examples=("causal-mask", "fill-blank", "signal"),
        words=("clm", "mlm", "mask-token", "mask-prob", "causal-mask", "pseudo-log-likelihood"),
    ),
    "generation": Lesson(
        minutes=15,
        needs=("softmax",),
        steps=(
            _write("write", temperature=0.0, top_p=1.0),
            _write("write", temperature=2.5, top_p=1.0),
            _write("waterfall", temperature=2.0, top_p=0.8),
            _write("draws", temperature=1.0, top_p=1.0),
            _write("tree"),
        ),
        check=("temperature", "top-p", "generation-order"),
        diagram=("writing", ("crop", "predict", "pick", "append")),
        formula=r"x_{t+1} \sim \mathrm{softmax}(z_t / \tau)",
        line="<i>x</i><sub>t+1</sub> ∼ softmax(<i>z</i><sub>t</sub> / τ)",
        examples=("temperature", "generation", "crop"),
        words=("generation", "prompt", "greedy", "sampling", "temperature", "top-k", "top-p",
               "beam", "kv-cache"),
    ),
    "measuring": Lesson(
        minutes=12,
        needs=("loss", "training"),
        steps=(
            _study("held-out"),
            _study("contamination"),
            _at("any-length", lesson.RECALL),
            _at("compare", lesson.RECALL),
        ),
        check=("held-out", "nats-to-bits", "bits-per-byte"),
        diagram=("training", ("loss",)),
        formula=r"\mathrm{BPB} = \frac{\sum_t -\log_2 p(x_t)}{\text{bytes}}",
        line="∑<sub>t</sub> −log<sub>2</sub> <i>p</i>(<i>x</i><sub>t</sub>) / <i>n</i><sub>bytes</sub>",
        examples=("perplexity",),
        words=("validation", "overfitting", "contamination", "bits-per-byte", "perplexity", "training-text"),
    ),
    "scaling": Lesson(
        minutes=12,
        needs=("measuring",),
        steps=(
            _study("model-size"),
            _study("text-size"),
            _example("balance"),
            Step(PLACES["runs"], model=""),
        ),
        check=("tokens-seen", "scaling-ratio"),
        diagram=("training", ("batch", "forward", "loss", "backward", "update")),
        formula=r"L \approx L_\infty + \left(\frac{N_0}{N}\right)^{\alpha} "
        r"+ \left(\frac{D_0}{D}\right)^{\beta},\qquad C \approx 6\,N D",
        line="<i>L</i> ≈ <i>L</i><sub>∞</sub> + (<i>N</i><sub>0</sub>/<i>N</i>)<sup>α</sup> + "
        "(<i>D</i><sub>0</sub>/<i>D</i>)<sup>β</sup>,  <i>C</i> ≈ 6 <i>N D</i>",
        examples=("scaling", "balance"),
        words=("scaling-law", "compute", "flop", "compute-optimal", "parameter", "epoch"),
    ),
}  # fmt: skip
ORDER = tuple(LESSONS)


def number(slug: str) -> int:
    """Its place in the path, from 1."""
    return ORDER.index(slug) + 1


def title(slug: str) -> str:
    """Its name."""
    return say(f"lesson.{slug}.title")


def aim(slug: str) -> str:
    """What a person can do after it, in one sentence."""
    return say(f"lesson.{slug}.aim")


def idea(slug: str) -> str:
    """What it teaches, in Markdown."""
    return say(f"lesson.{slug}.idea")


def key_sentence(slug: str) -> str:
    """What to keep of it."""
    return say(f"lesson.{slug}.key")


def to_do(slug: str, n: int) -> str:
    """What to do in step `n`, from 1."""
    return say(f"lesson.{slug}.step.{n}")


def button(slug: str, n: int) -> str:
    """The words on the button of step `n`, from 1."""
    return say(f"lesson.{slug}.go.{n}")


def following(done: dict[str, float]) -> str | None:
    """The first lesson that is not done; None if all are."""
    return next((slug for slug in ORDER if slug not in done), None)
