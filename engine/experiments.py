"""The runs of each study on the Experiments page: what differs between them, and what is held equal.

All read made-up stories, whose true distribution is known. Unless a study is about it, every run has the same
vocabulary, the same fresh stories to be checked with, all of them scored each time, and the same seed.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus
from engine.parameter_parts import parameter_count
from engine.plan import Timing, step_seconds
from engine.runs import RunSpec
from engine.tokenizers import Tokenizer, byte_tokenizer, char_tokenizer, train_bpe
from wording import words

say = words("engine.experiments")

STUDIES = (
    "held-out", "contamination", "learning-rate", "context", "shape", "tokenizer", "model-size", "text-size",
    "objectives",
)  # fmt: skip
N_STORIES, STORY_SEED = 4000, 1
N_HELD_OUT, HELD_OUT_SEED = 60, 1_000_004
VOCAB_SIZE, VOCAB_TEXT = 512, 1_000_000  # ids of the BPE, and characters that it learns from
ALL_ROWS = 1_000_000  # so many rows are never there: the whole validation text is scored
TOKENS_A_STEP = 1024

SMALL_TEXT = 20  # stories
RATES = (3e-5, 4e-3, 0.1, 10.0)
CONTEXTS = (8, 16, 32, 64, 128)
DEPTHS, SHAPE_WEIGHTS = (1, 2, 4, 8), 118_000
LEAKS = {"0 %": 0.0, "25 %": 0.25, "50 %": 0.5, "100 %": 1.0}
TEST_STORIES, READ_STORIES = 20, 80
VOCABULARIES = ("bytes", "characters", "BPE 384", "BPE 1,024")
WINDOW_BYTES, STEP_BYTES = 192, 3072
WIDTHS, LARGER_WIDTH = (16, 24, 32, 48, 80, 128), 192
TEXT_SIZES, LARGER_TEXT = (40, 80, 160, 320, 640, 1280), 3840
LARGER = "the larger one"  # the run that a law foretells


@lru_cache(maxsize=8)
def story_lines(seed: int, n: int) -> str:
    """So many stories, one a line."""
    from engine.grammar import story_text  # the rules are only read when stories are wanted

    return story_text(seed, n)


@lru_cache(maxsize=32)
def stories(n: int, first: int = 0) -> str:
    """`n` stories of the training pool, from the one with number `first` on."""
    return "".join(story_lines(STORY_SEED, N_STORIES).splitlines(keepends=True)[first : first + n])


def held_out() -> str:
    """The stories that every run is checked with and none learns from."""
    return story_lines(HELD_OUT_SEED, N_HELD_OUT)


@lru_cache(maxsize=4)
def bpe(vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """The vocabulary of the studies."""
    return train_bpe(story_lines(STORY_SEED, N_STORIES)[:VOCAB_TEXT], vocab_size)


@lru_cache(maxsize=16)
def study_specs(study: str, seed: int = 0) -> tuple[RunSpec, ...]:
    """The runs of a study, in the order in which they are shown; `larger_spec` is not among them.

    Raises:
        ValueError: if there is no such study.
    """
    if study not in _MAKERS:
        raise ValueError(say("unknown_study", study=study, known=", ".join(STUDIES)))
    specs = [_reseeded(spec, seed) for spec in _MAKERS[study]()]
    group = group_name(study, specs)
    return tuple(replace(spec, group=group, name=f"{study}: {spec.label}") for spec in specs)


@lru_cache(maxsize=16)
def larger_spec(study: str, seed: int = 0) -> RunSpec | None:
    """The run whose loss is foretold from the others, or None where the study has none."""
    if study not in _LARGER:
        return None
    spec = _reseeded(_LARGER[study](), seed)
    return replace(spec, group=study_specs(study, seed)[0].group, name=f"{study}: {LARGER}", label=LARGER)


@lru_cache(maxsize=16)
def labels(study: str) -> tuple[str, ...]:
    """What the runs of a study are called, in the order shown; the larger one is the last."""
    return (*(spec.label for spec in study_specs(study)), *((LARGER,) if study in _LARGER else ()))


def group_name(study: str, specs: Sequence[RunSpec]) -> str:
    """A name that changes with any setting of any run."""
    settings = [{**spec.to_json(), "group": ""} for spec in specs]
    return f"{study}-{hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:10]}"


def study_of(group: str) -> str:
    """The study that a group of runs belongs to; "" if to none.

    >>> study_of("model-size-0123456789"), study_of("")
    ('model-size', '')
    """
    study = group.rpartition("-")[0]
    return study if study in STUDIES else ""


def study_seconds(specs: Sequence[RunSpec], slots: int, timings: Sequence[Timing] = ()) -> float:
    """Estimated seconds for the runs with `slots` at a time; never less than the longest of them."""
    each = [step_seconds(spec.model, spec.train, timings) * _steps(spec) for spec in specs]
    return max(sum(each) / max(1, slots), *each, 0.0)


def _steps(spec: RunSpec) -> float:
    """Its steps, and the evaluations as so many more: a forward pass costs a third of a step."""
    evals = spec.train.steps // spec.train.eval_every + 1
    tokens = len(spec.tokenizer.encode(spec.corpus.val_text or ""))
    return spec.train.steps + evals * tokens / (spec.model.context_length * spec.train.batch_size) / 3


# ---- the runs


def _reseeded(spec: RunSpec, seed: int) -> RunSpec:
    return replace(spec, train=replace(spec.train, seed=seed))


def _model(tokenizer: Tokenizer, **shape: object) -> ModelConfig:
    defaults = {"n_layer": 2, "n_head": 2, "d_model": 64, "context_length": 64, "positions": "rotary"}
    objective = str(shape.get("objective", "clm"))
    return ModelConfig.from_json({"vocab_size": tokenizer.model_vocab_size(objective), **defaults, **shape})


def _train(**recipe: object) -> TrainConfig:
    steps = int(recipe.get("steps", 600))  # type: ignore[call-overload]
    defaults = {
        "steps": steps,
        "batch_size": 16,
        "learning_rate": 4e-3,
        "warmup_steps": 50,
        "eval_every": steps // 20,
        "eval_rows": ALL_ROWS,
        "checkpoint_every": max(100, steps // 3),
    }
    return TrainConfig.from_json({**defaults, **recipe})


def _spec(
    label: str,
    text: str,
    model: ModelConfig | None = None,
    train: TrainConfig | None = None,
    tokenizer: Tokenizer | None = None,
    also_scored: dict[str, str] | None = None,
) -> RunSpec:
    tokenizer = tokenizer or bpe()
    return RunSpec(
        name=label,
        corpus=Corpus("Stories", "stories", text, held_out()),
        tokenizer=tokenizer,
        model=model or _model(tokenizer),
        train=train or _train(),
        device="cpu",  # so that all runs of a study, and the results that came with the app, compare
        label=label,
        also_scored=also_scored or {},
    )


def _held_out_specs() -> list[RunSpec]:
    train = _train(steps=500, eval_every=20)
    return [
        _spec(f"{SMALL_TEXT} stories", stories(SMALL_TEXT), train=train),
        _spec(f"{N_STORIES:,} stories", stories(N_STORIES), train=train),
    ]


def contaminated(leak: float) -> tuple[str, str]:
    """A training text into which a share of a test text has leaked, and that test text.

    Each leaked story takes the place of another, so every training text has the same number of stories. The
    clean text beside it is that of `held_out`: with few stories to learn from, what is swapped helps or harms
    a short clean text by chance, and its 60 stories even that out.
    """
    n_leaked = round(leak * TEST_STORIES)
    others = stories(READ_STORIES - n_leaked, 2 * TEST_STORIES)
    return stories(n_leaked) + others, stories(TEST_STORIES)


def _contamination_specs() -> list[RunSpec]:
    specs = []
    for label, leak in LEAKS.items():
        text, test = contaminated(leak)
        specs.append(_spec(label, text, train=_train(steps=600), also_scored={"leaked": test}))
    return specs


def plain(rate: float) -> str:
    """A rate without powers of ten.

    >>> plain(3e-5), plain(10.0)
    ('0.00003', '10')
    """
    return f"{rate:.5f}".rstrip("0").rstrip(".")


def _rate_specs() -> list[RunSpec]:
    text = stories(N_STORIES)
    return [_spec(plain(rate), text, train=_train(steps=300, learning_rate=rate)) for rate in RATES]


def _context_specs() -> list[RunSpec]:
    text = stories(N_STORIES)
    return [
        _spec(
            f"{length} tokens",
            text,
            _model(bpe(), context_length=length),
            _train(steps=600, batch_size=TOKENS_A_STEP // length),
        )
        for length in CONTEXTS
    ]


def width_for(n_layer: int, weights: int, tokenizer: Tokenizer) -> int:
    """The width, a multiple of 4, at which a model of so many layers is nearest to a number of weights."""

    def off(width: int) -> int:
        return abs(parameter_count(_model(tokenizer, n_layer=n_layer, d_model=width)) - weights)

    return min(range(8, 400, 4), key=off)


def _shape_specs() -> list[RunSpec]:
    text = stories(N_STORIES)
    specs = []
    for n_layer in DEPTHS:
        width = width_for(n_layer, SHAPE_WEIGHTS, bpe())
        model = _model(bpe(), n_layer=n_layer, d_model=width)
        layers = "1 layer" if n_layer == 1 else f"{n_layer} layers"
        specs.append(_spec(f"{layers} of {width}", text, model, _train(steps=500)))
    return specs


def vocabulary(name: str) -> Tokenizer:
    """One of the vocabularies that are compared."""
    if name == "bytes":
        return byte_tokenizer()
    if name == "characters":
        return char_tokenizer(story_lines(STORY_SEED, N_STORIES) + held_out())
    return bpe(int(name.removeprefix("BPE ").replace(",", "")))


def bytes_a_token(tokenizer: Tokenizer) -> float:
    """Mean length of a token of the stories, bytes."""
    text = story_lines(STORY_SEED, N_STORIES)[:100_000]
    return len(text.encode()) / len(tokenizer.encode(text))


def _tokenizer_specs() -> list[RunSpec]:
    """Equal bytes of text in a row, in a step and in all; so the shorter the tokens, the more of them."""
    text = stories(N_STORIES)
    specs = []
    for name in VOCABULARIES:
        tokenizer = vocabulary(name)
        length = round(WINDOW_BYTES / bytes_a_token(tokenizer))
        model, rows = _model(tokenizer, context_length=length), STEP_BYTES // WINDOW_BYTES
        specs.append(_spec(name, text, model, _train(steps=500, batch_size=rows), tokenizer))
    return specs


def _of_width(width: int, label: str) -> RunSpec:
    train = _train(steps=1000, learning_rate=6e-3)
    return _spec(label, stories(N_STORIES), _model(bpe(), d_model=width), train)


def _model_size_specs() -> list[RunSpec]:
    return [_of_width(width, f"width {width}") for width in WIDTHS]


def _of_text(n: int, label: str) -> RunSpec:
    return _spec(label, stories(n), train=_train(steps=600, eval_every=20))


def _text_size_specs() -> list[RunSpec]:
    return [_of_text(n, f"{n:,} stories") for n in TEXT_SIZES]


def _objective_specs() -> list[RunSpec]:
    text, train = stories(N_STORIES), _train(steps=800)
    models = {"next token": _model(bpe()), "hidden tokens": _model(bpe(), objective="mlm")}
    return [_spec(label, text, model, train) for label, model in models.items()]


_MAKERS = {
    "held-out": _held_out_specs,
    "contamination": _contamination_specs,
    "learning-rate": _rate_specs,
    "context": _context_specs,
    "shape": _shape_specs,
    "tokenizer": _tokenizer_specs,
    "model-size": _model_size_specs,
    "text-size": _text_size_specs,
    "objectives": _objective_specs,
}
_LARGER = {
    "model-size": lambda: _of_width(LARGER_WIDTH, LARGER),
    "text-size": lambda: _of_text(LARGER_TEXT, LARGER),
}


def source_loss() -> float:
    """What the true source scores on the test text that leaks, nats a token."""
    import numpy as np

    from engine.grammar import default_grammar
    from engine.oracle import Oracle

    tokenizer = bpe()
    oracle, lines = Oracle(default_grammar(), tokenizer), contaminated(0.0)[1].splitlines(keepends=True)
    found = np.concatenate([oracle.log_probs(tokenizer.encode(line)) for line in lines])
    return float(-found.mean())


@lru_cache(maxsize=32)
def size_of_spec(study: str, spec: RunSpec) -> float:
    """What a law of this study is a law of, before the run: weights, or tokens of text."""
    if study == "model-size":
        return float(parameter_count(spec.model))
    return float(len(spec.tokenizer.encode(spec.corpus.text)))
