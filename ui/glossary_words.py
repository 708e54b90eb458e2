"""The words of the glossary: what can be said of each without a language, and its sentences in this one."""

import unicodedata
from dataclasses import dataclass

from wording import words

say = words("ui.glossary_words")


@dataclass(frozen=True)
class Word:
    """One idea.

    Attributes:
        see: places where it can be seen, names of `ui.places.PLACES`.
        related: other words.
        formula: in LaTeX, or "".
    """

    see: tuple[str, ...]
    related: tuple[str, ...]
    formula: str = ""


def _word(see: str, related: str, formula: str = "") -> Word:
    return Word(tuple(see.split()), tuple(related.split()), formula)


WORDS = {
    "ablation": _word("switch-off", "head logit-lens block"),
    "activation": _word("stream", "mlp", r"\mathrm{GELU}(x) = x\,\Phi(x)"),
    "adam": _word(
        "one-step",
        "gradient learning-rate weight-decay muon",
        r"m \leftarrow \beta_1 m + (1-\beta_1)\,g,\quad v \leftarrow \beta_2 v + (1-\beta_2)\,g^2,\quad"
        r" \theta \leftarrow \theta - \eta\,\frac{\hat m}{\sqrt{\hat v} + \epsilon}",
    ),
    "attention": _word(
        "attention",
        "query key value attention-weights head causal-mask",
        r"\mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_\text{head}}}\right) V",
    ),
    "attention-weights": _word(
        "attention",
        "attention query key",
        r"a_{ts} = \frac{e^{q_t \cdot k_s / \sqrt{d_\text{head}}}}"
        r"{\sum_{r} e^{q_t \cdot k_r / \sqrt{d_\text{head}}}},\qquad \sum_s a_{ts} = 1",
    ),
    "backpropagation": _word(
        "one-step",
        "gradient loss step",
        r"\frac{\partial L}{\partial x} = \frac{\partial L}{\partial y}\,\frac{\partial y}{\partial x}",
    ),
    "baseline": _word("train", "n-gram random-guess floor"),
    "batch": _word(
        "one-step", "window step shift", r"\text{ids}: B \times T,\qquad \text{logits}: B \times T \times V"
    ),
    "beam": _word("tree strategies", "greedy sampling log-probability"),
    "bits-per-byte": _word(
        "any-length runs",
        "loss perplexity nat byte",
        r"\frac{\sum_t -\log_2 p(x_t)}{\text{bytes}} = \frac{L \cdot N}{\ln 2 \cdot \text{bytes}}",
    ),
    "block": _word("logit-lens", "attention mlp residual-stream layer-norm"),
    "bpe": _word("train-your-own", "merge byte vocabulary"),
    "byte": _word("pieces languages", "token bits-per-byte"),
    "causal-mask": _word("attention two-models", "attention clm shift", r"a_{ts} = 0 \quad (s > t)"),
    "chain-rule": _word(
        "chain-rule",
        "joint-probability log-probability clm",
        r"P(x_1 \dots x_T) = \prod_{t=1}^{T} p(x_t \mid x_1 \dots x_{t-1})",
    ),
    "checkpoint": _word("time-machine runs", "step quantization parameter"),
    "clipping": _word(
        "one-step", "gradient step", r"g \leftarrow g \cdot \min\!\left(1, \frac{c}{\lVert g \rVert}\right)"
    ),
    "clm": _word("one-position two-models", "mlm causal-mask chain-rule generation"),
    "compute": _word("model-size", "flop compute-optimal scaling-law", r"C \approx 6\,N D"),
    "compute-optimal": _word("model-size text-size", "compute scaling-law"),
    "contamination": _word("contamination", "validation training-text overfitting"),
    "context": _word("one-position", "context-length prompt position"),
    "context-length": _word("any-length", "context window kv-cache"),
    "cosine": _word(
        "neighbours",
        "embedding neighbour",
        r"\cos(a, b) = \frac{a \cdot b}{\lVert a \rVert\, \lVert b \rVert}",
    ),
    "cross-entropy": _word(
        "surprise one-step",
        "loss entropy kl surprisal",
        r"H(p, q) = -\sum_v p_v \ln q_v = H(p) + \mathrm{KL}(p \,\Vert\, q)",
    ),
    "d-ff": _word("train", "mlp d-model", r"d_\text{ff} \approx 4\, d_\text{model}"),
    "d-head": _word("attention", "head d-model", r"d_\text{head} = d_\text{model} / n_\text{head}"),
    "d-model": _word("look-up", "embedding residual-stream d-head"),
    "dpo": _word(
        "preferences",
        "preference reward-margin sigmoid fine-tuning",
        r"L = -\ln \sigma\!\left(\beta \left(\ln \frac{\pi(y^+)}{\pi_0(y^+)}"
        r" - \ln \frac{\pi(y^-)}{\pi_0(y^-)}\right)\right)",
    ),
    "embedding": _word(
        "look-up map",
        "one-hot d-model neighbour position",
        r"x = e_i^\top E,\qquad E: V \times d_\text{model}",
    ),
    "entropy": _word("one-position", "surprisal cross-entropy perplexity", r"H(p) = -\sum_v p_v \ln p_v"),
    "epoch": _word("text-size", "training-text step batch"),
    "fine-tuning": _word(
        "text",
        "supervised-fine-tuning frozen forgetting checkpoint",
        r"\theta^{(0)} = \theta^{\ast},\qquad \theta \leftarrow \theta - \eta\, g",
    ),
    "flop": _word("model-size", "compute"),
    "floor": _word("train", "entropy true-distribution baseline"),
    "forgetting": _word(
        "text",
        "fine-tuning overfitting validation",
        r"\Delta L = L_{\theta}(D_0) - L_{\theta^{\ast}}(D_0)",
    ),
    "frozen": _word("text", "fine-tuning parameter block", r"\theta_i \leftarrow \theta_i \quad (i \in F)"),
    "generation": _word("write", "prompt sampling greedy clm"),
    "gradient": _word(
        "one-step",
        "backpropagation step learning-rate",
        r"g = \frac{\partial L}{\partial \theta},\qquad \frac{\partial L}{\partial z_v} = p_v - [v = y]",
    ),
    "greedy": _word("strategies write", "temperature beam sampling", r"x_{t+1} = \arg\max_v p_v"),
    "head": _word("attention switch-off", "attention d-head kv-head induction-head"),
    "id": _word("pieces", "token vocabulary one-hot"),
    "induction-head": _word("attention", "head attention"),
    "instruction": _word(
        "answers", "supervised-fine-tuning prompt target", r"x = (x_1 \dots x_P,\; x_{P+1} \dots x_T)"
    ),
    "joint-probability": _word(
        "chain-rule", "chain-rule log-probability", r"|\{x\}| = V^T,\qquad \sum_{x} P(x) = 1"
    ),
    "key": _word("attention", "query value attention", r"k_s = W_K\, h_s"),
    "kl": _word(
        "surprise",
        "cross-entropy entropy true-distribution",
        r"\mathrm{KL}(p \,\Vert\, q) = \sum_v p_v \ln \frac{p_v}{q_v}",
    ),
    "kv-cache": _word("write", "key value kv-head generation"),
    "kv-head": _word("train", "head key value kv-cache"),
    "language-model": _word(
        "home", "logit chain-rule clm mlm", r"f_\theta: \{1 \dots V\}^{T} \to \mathbb{R}^{T \times V}"
    ),
    "layer-norm": _word(
        "stream", "residual-stream block", r"\frac{x - \bar x}{\sqrt{\mathrm{var}(x) + \epsilon}} \cdot g + b"
    ),
    "learning-rate": _word(
        "learning-rate train", "schedule warmup step adam", r"\theta \leftarrow \theta - \eta\, g"
    ),
    "log-probability": _word(
        "chain-rule", "probability surprisal logit", r"\ln p_v = z_v - \ln \sum_u e^{z_u}"
    ),
    "logit": _word("one-position home", "softmax log-probability", r"z = W h + b,\qquad z: V"),
    "logit-lens": _word("logit-lens", "residual-stream block ablation"),
    "loss": _word(
        "train surprise", "cross-entropy surprisal perplexity target", r"L = -\frac{1}{N} \sum_{t} \ln p(y_t)"
    ),
    "mask-prob": _word("masked-batch", "mask-token mlm"),
    "mask-token": _word("fill-blanks two-models", "mlm mask-prob special-token"),
    "merge": _word("train-your-own", "bpe vocabulary"),
    "min-p": _word("waterfall", "top-p top-k sampling", r"p_v \ge m \cdot \max_u p_u"),
    "mlm": _word("two-models fill-blanks", "clm mask-token mask-prob pseudo-log-likelihood"),
    "mlp": _word("contributions", "block activation d-ff", r"W_2\, \phi(W_1 x)"),
    "muon": _word(
        "one-step train",
        "adam gradient learning-rate",
        r"M = U \Sigma V^\top,\qquad W \leftarrow W - \eta\,U V^\top",
    ),
    "n-gram": _word(
        "train guess", "baseline context", r"p(x_t \mid x_{t-1}) = \frac{\#(x_{t-1}\, x_t)}{\#(x_{t-1})}"
    ),
    "nat": _word(
        "surprise",
        "surprisal bits-per-byte",
        r"1 \text{ nat} = \frac{1}{\ln 2} \text{ bits} \approx 1.443 \text{ bits}",
    ),
    "neighbour": _word("neighbours map", "cosine embedding"),
    "one-hot": _word("look-up", "embedding id", r"e_i = (0, \dots, 0, \underset{i}{1}, 0, \dots, 0)"),
    "overfitting": _word("held-out", "validation training-text contamination"),
    "parameter": _word("train", "gradient d-model step"),
    "perplexity": _word("surprise", "loss bits-per-byte entropy", r"\mathrm{PPL} = e^{L}"),
    "position": _word("position", "rotary attention embedding"),
    "preference": _word(
        "preferences", "dpo reward-margin sigmoid", r"P(y^+ \succ y^-) = \sigma\big(r(y^+) - r(y^-)\big)"
    ),
    "previous-token-mixing": _word(
        "train",
        "embedding position attention",
        r"x_t = E_{i_t} + w \odot E_{i_{t-1}}",
    ),
    "probability": _word("home one-position", "softmax log-probability"),
    "prompt": _word("write", "generation context-length"),
    "pseudo-log-likelihood": _word(
        "not-comparable",
        "mlm log-probability",
        r"\mathrm{PLL}(x) = \sum_t \ln p(x_t \mid x_1 \dots x_{t-1}, x_{t+1} \dots x_T)",
    ),
    "quantization": _word("time-machine", "checkpoint parameter"),
    "query": _word("attention", "key value attention", r"q_t = W_Q\, h_t"),
    "random-guess": _word("train", "baseline vocab-size", r"L = \ln V"),
    "rank": _word("best-guesses", "probability greedy"),
    "repetition-penalty": _word("waterfall", "logit sampling greedy"),
    "residual-stream": _word(
        "stream contributions",
        "block d-model logit-lens",
        r"h \leftarrow h + \mathrm{attn}(h),\qquad h \leftarrow h + \mathrm{mlp}(h)",
    ),
    "reward-margin": _word(
        "preferences",
        "dpo preference log-probability",
        r"m = \beta \left(\ln \frac{\pi(y^+)}{\pi_0(y^+)} - \ln \frac{\pi(y^-)}{\pi_0(y^-)}\right)",
    ),
    "rotary": _word("position", "position query key", r"q_t \cdot k_s = \tilde q^\top R_{s-t}\, \tilde k"),
    "sampling": _word("draws write", "temperature top-k top-p seed", r"x_{t+1} \sim p"),
    "scaling-law": _word(
        "model-size text-size",
        "compute compute-optimal floor",
        r"L(N) \approx L_\infty + \left(\frac{N_0}{N}\right)^{\alpha}",
    ),
    "schedule": _word("learning-rate train", "learning-rate warmup"),
    "seed": _word("write", "sampling batch"),
    "self-supervised": _word("one-step", "target shift training-text"),
    "shift": _word(
        "one-step", "target window self-supervised", r"x = (t_0 \dots t_{T-1}),\qquad y = (t_1 \dots t_T)"
    ),
    "sigmoid": _word("home", "softmax logit", r"\sigma(z) = \frac{1}{1 + e^{-z}} = \mathrm{softmax}(z, 0)_1"),
    "softmax": _word(
        "home waterfall", "logit probability temperature sigmoid", r"p_v = \frac{e^{z_v}}{\sum_u e^{z_u}}"
    ),
    "special-token": _word("pieces", "token mask-token"),
    "step": _word("one-step", "gradient batch learning-rate"),
    "supervised-fine-tuning": _word(
        "answers",
        "fine-tuning instruction target loss",
        r"L = -\frac{1}{|A|} \sum_{t \in A} \ln p(x_t \mid x_1 \dots x_{t-1})",
    ),
    "surprisal": _word("surprise", "loss log-probability nat", r"-\ln p(x_t)"),
    "target": _word("one-step", "shift loss"),
    "temperature": _word(
        "waterfall write", "softmax greedy sampling", r"p_v = \frac{e^{z_v / \tau}}{\sum_u e^{z_u / \tau}}"
    ),
    "token": _word("pieces", "id vocabulary tokenizer"),
    "tokenizer": _word("pieces side-by-side", "token bpe vocabulary"),
    "top-k": _word("waterfall", "top-p min-p sampling"),
    "top-p": _word("waterfall", "top-k min-p sampling", r"\sum_{v \in S} p_v \ge p"),
    "training-text": _word("train", "validation overfitting contamination"),
    "transformer": _word("logit-lens", "block attention embedding"),
    "true-distribution": _word("one-position guess", "floor kl entropy"),
    "validation": _word("held-out train", "training-text overfitting contamination"),
    "value": _word("attention", "query key attention", r"v_s = W_V\, h_s"),
    "vocab-size": _word("pieces", "vocabulary logit random-guess"),
    "vocabulary": _word("pieces side-by-side", "token id vocab-size bpe"),
    "warmup": _word("learning-rate", "learning-rate schedule adam"),
    "weight-decay": _word(
        "one-step", "adam overfitting", r"\theta \leftarrow (1 - \eta\lambda)\,\theta - \eta\, g"
    ),
    "window": _word("one-step", "batch context-length shift"),
}


def name(word: str) -> str:
    """How it is called."""
    return say(f"word.{word}.name")


def text(word: str) -> str:
    """What it means, in plain words."""
    return say(f"word.{word}.text")


def others(word: str) -> str:
    """How others call it; "" if they call it the same."""
    return say(f"word.{word}.others")


def plain(written: str) -> str:
    """For comparing and sorting: without accents, case, and signs that stand between words.

    >>> plain("Entropía_cruzada"), plain("d_model")
    ('entropia cruzada', 'd model')
    """
    apart = unicodedata.normalize("NFKD", written.casefold())
    kept = "".join(c for c in apart if not unicodedata.combining(c))
    return " ".join(kept.replace("_", " ").replace("-", " ").split())


def in_order() -> list[str]:
    """All words in the order of the alphabet, in the language spoken now."""
    return sorted(WORDS, key=lambda word: plain(name(word)))


def found(query: str) -> list[str]:
    """The words that fit what was typed: by name, then by the names that others use, then by meaning."""
    asked = plain(query)
    if not asked:
        return in_order()
    fits: dict[str, int] = {word: fit for word in in_order() if (fit := _fit(word, asked))}
    return sorted(fits, key=lambda word: -fits[word])


def _fit(word: str, asked: str) -> int:
    """How well a word fits; 0 if not at all."""
    called, elsewhere = plain(name(word)), [plain(other) for other in others(word).split(",")]
    if called == asked or asked in elsewhere:
        return 5 if called == asked else 4
    if called.startswith(asked):
        return 3
    if asked in called or asked in plain(word) or any(asked in other for other in elsewhere):
        return 2
    return 1 if len(asked) > 2 and asked in plain(text(word)) else 0
