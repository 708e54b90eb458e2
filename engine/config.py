"""All settings of a model, a training run and a draw: frozen, checked when made, to and from JSON."""

from dataclasses import dataclass, fields
from typing import Any, Literal

from engine.setting_checks import (
    JsonSettings,
    check_between,
    check_choice,
    check_most,
    check_switch,
    check_whole,
)
from wording import words

say = words("engine.config")

Objective = Literal["clm", "mlm"]
Aim = Literal["text", "answers", "preferences"]


@dataclass(frozen=True)
class Rotary(JsonSettings):
    """How rotary positions turn; as it stands, all of a head at the speeds of Su et al. 2021.

    Attributes:
        base: pair j turns by base^(-2j / width) a position.
        share: of the numbers of a head that turn, the first ones; the others know no position.
        stretch: by how much the slow pairs are slowed down, for a longer context than the model first had.
        low, high, first_length: where slowing begins, as Llama 3.1 has it (Grattafiori et al. 2024,
            arXiv:2407.21783): pairs of more than `high` turns in `first_length` positions keep their speed,
            those of less than `low` turns are slowed by all of `stretch`. 0 slows every pair alike
            (Chen et al. 2023, arXiv:2306.15595).
        ramp: between `low` and `high` turns the slowing grows evenly with the "turns", as in Llama 3.1, or
            from pair to pair, as YaRN has it (Peng et al. 2023, arXiv:2309.00071), there between two "whole"
            pairs or just where `low` and `high` fall ("pairs").
        swell: factor of the turned queries and keys (YaRN's attention factor).
    """

    base: float = 10000.0
    share: float = 1.0
    stretch: float = 1.0
    low: float = 0.0
    high: float = 0.0
    first_length: int = 0
    ramp: Literal["turns", "whole", "pairs"] = "turns"
    swell: float = 1.0

    def __post_init__(self) -> None:
        check_between(self, "base", 1)
        check_choice(self, "ramp", "turns", "whole", "pairs")
        check_between(self, "swell", 0)
        check_between(self, "share", 0, 1)
        check_between(self, "stretch", 1)
        check_between(self, "low", 0)
        check_between(self, "high", self.low)
        check_whole(self, "first_length", least=0)
        if self.first_length and self.low >= self.high:
            raise ValueError(say("rotary_low_below_high", low=self.low, high=self.high))
        if self.ramp != "turns" and not (self.first_length and self.low > 0 and self.base > 1):
            told = {"first_length": self.first_length, "low": self.low, "base": self.base}
            raise ValueError(say("rotary_pairs_need", **told))

    def width(self, d_head: int) -> int:
        """How many numbers of a head turn."""
        return int(d_head * self.share)


# No model that anybody has published is larger. A number beyond is forged or damaged, and would cost minutes
# before anybody found out that it fits no memory.
MOST_IDS, MOST_LAYERS, MOST_WIDTH = 20_000_000, 1000, 1_000_000


@dataclass(frozen=True)
class ModelConfig(JsonSettings):
    """The shape of a `Transformer` and every switch of its architecture.

    Attributes:
        vocab_size: number of ids that it can read and predict, special ids included.
        context_length: most tokens that it sees at once.
        n_layer, n_head, d_model: blocks, query heads, width of the residual stream.
        n_kv_head: key/value heads; None means `n_head`. Must divide `n_head`.
        d_ff: width of the MLP; None means 4·d_model (for SwiGLU the nearest to 8/3·d_model: as many weights).
        objective: "clm" looks only backwards, "mlm" in both directions.
        norm_place: "pre" normalises a block's input, "post" its output (as in 2017).
        tie_head: the output matrix is the embedding matrix.
        mix_previous: each position's input also gets the vector of the token before it, each number times a
            learned factor, see `model.Previous`.

    The rest only published models have (`BORROWED`); as it stands, each changes nothing:
        head_width: numbers in a head; None means d_model / n_head.
        norm_eps: what every norm adds below its root.
        rotary: how rotary positions turn.
        windows: of each block, how many tokens a query sees, itself included; 0 is all. () is all everywhere.
        score_scale: factor of the attention scores; None means 1 / √d_head.
        parallel: the MLP reads what attention reads, not what attention wrote (Wang & Komatsuzaki 2021).
        qkv_bias, out_bias: of the attention's matrices; None means as `bias`.
        embedding_norm: a norm before the first block.
        head_transform: one more matrix, activation and norm before the head, as in BERT.
        head_bias: the head adds a number of its own to each logit.
    """

    vocab_size: int
    context_length: int = 128
    n_layer: int = 4
    n_head: int = 4
    d_model: int = 128
    n_kv_head: int | None = None
    d_ff: int | None = None
    objective: Objective = "clm"
    positions: Literal["learned", "sinusoidal", "rotary"] = "learned"
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    activation: Literal["gelu", "relu2", "swiglu", "gelu_tanh"] = "gelu"
    norm_place: Literal["pre", "post"] = "pre"
    bias: bool = True
    tie_head: bool = True
    qk_norm: bool = False
    dropout: float = 0.0
    mix_previous: bool = False
    head_width: int | None = None
    norm_eps: float = 1e-5
    rotary: Rotary = Rotary()
    windows: tuple[int, ...] = ()
    score_scale: float | None = None
    parallel: bool = False
    qkv_bias: bool | None = None
    out_bias: bool | None = None
    embedding_norm: bool = False
    head_transform: bool = False
    head_bias: bool = False

    def __post_init__(self) -> None:
        check_whole(self, "vocab_size", "context_length", "n_layer", "n_head", "d_model")
        check_most(self, vocab_size=MOST_IDS, context_length=MOST_IDS, n_layer=MOST_LAYERS)
        check_most(self, n_head=MOST_WIDTH, d_model=MOST_WIDTH)
        self._check_borrowed()
        if self.head_width is None and self.d_model % self.n_head:
            divisors = [str(h) for h in range(1, self.d_model + 1) if self.d_model % h == 0]
            near = sorted(divisors, key=lambda h: abs(int(h) - self.n_head))[:3]
            raise ValueError(
                say(
                    "d_model_not_divisible",
                    d_model=self.d_model,
                    n_head=self.n_head,
                    near=", ".join(sorted(near, key=int)),
                )
            )
        if self.n_kv_head is not None:
            check_whole(self, "n_kv_head")
            if self.n_head % self.n_kv_head:
                raise ValueError(say("n_kv_head_must", n_kv_head=self.n_kv_head, n_head=self.n_head))
        if self.d_ff is not None:
            check_whole(self, "d_ff")
            check_most(self, d_ff=MOST_WIDTH)
        check_switch(self, "bias", "tie_head", "qk_norm", "mix_previous", "parallel", "embedding_norm")
        check_switch(self, "head_transform", "head_bias")
        check_switch(self, "qkv_bias", "out_bias", unset=True)
        check_choice(self, "objective", "clm", "mlm")
        check_choice(self, "positions", "learned", "sinusoidal", "rotary")
        check_choice(self, "norm", "layernorm", "rmsnorm")
        check_choice(self, "activation", "gelu", "relu2", "swiglu", "gelu_tanh")
        check_choice(self, "norm_place", "pre", "post")
        check_between(self, "dropout", 0, 1)
        if self.dropout >= 1:
            raise ValueError(say("dropout_must_below_1"))
        turning = self.rotary.width(self.d_head)
        if self.positions == "rotary" and (turning % 2 or not turning):
            raise ValueError(say("rotary_positions_turn_pairs", d_head=turning))
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(say("sinusoidal_positions_need_even", d_model=self.d_model))

    def _check_borrowed(self) -> None:
        if isinstance(self.rotary, dict):  # from JSON
            object.__setattr__(self, "rotary", Rotary.from_json(self.rotary))
        object.__setattr__(self, "windows", tuple(self.windows))
        if self.head_width is not None:
            check_whole(self, "head_width")
            check_most(self, head_width=MOST_WIDTH)
        check_between(self, "norm_eps", 0)
        if self.score_scale is not None:
            check_between(self, "score_scale", 0)
        if self.windows and (
            len(self.windows) != self.n_layer or not all(type(w) is int and w >= 0 for w in self.windows)
        ):
            raise ValueError(say("windows_one_for_each", n_layer=self.n_layer, windows=self.windows))
        if self.parallel and self.norm_place == "post":
            raise ValueError(say("parallel_needs_pre"))

    def to_json(self) -> dict[str, Any]:
        """The settings by name; those of `SELDOM` only where they change something."""
        return {
            name: value
            for name, value in super().to_json().items()
            if name not in SELDOM or getattr(self, name) != SELDOM[name]
        }

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.head_width or self.d_model // self.n_head

    @property
    def kv_heads(self) -> int:
        """Key/value heads, resolved."""
        return self.n_kv_head or self.n_head

    @property
    def ff_width(self) -> int:
        """Width of the MLP, resolved."""
        if self.d_ff:
            return self.d_ff
        return round(8 * self.d_model / 3) if self.activation == "swiglu" else 4 * self.d_model

    @property
    def biased_qkv(self) -> bool:
        """Whether queries, keys and values have a bias, resolved."""
        return self.bias if self.qkv_bias is None else self.qkv_bias

    @property
    def biased_out(self) -> bool:
        """Whether the attention's output matrix has a bias, resolved."""
        return self.bias if self.out_bias is None else self.out_bias

    def window(self, layer: int) -> int:
        """How many tokens a query of this block sees, itself included; 0 is all."""
        return self.windows[layer] if self.windows else 0


_FIELDS = [f.name for f in fields(ModelConfig)]
BORROWED = {f.name: f.default for f in fields(ModelConfig)[_FIELDS.index("head_width") :]}
LATER = {"mix_previous": False}  # came when many folders were written already
SELDOM = BORROWED | LATER


# Far beyond what anybody trains here, and small enough that no forged number takes the machine.
MOST_STEPS, MOST_ROWS, MOST_MOMENTS = 10_000_000, 65_536, 1000
MOST_SEED = 2**62  # generators of a run have seeds of twice that and a little more, which torch can hold


@dataclass(frozen=True)
class TrainConfig(JsonSettings):
    """How a run learns.

    Attributes:
        steps: optimizer steps in the whole schedule.
        batch_size: rows of `context_length` tokens in a step.
        learning_rate: highest rate, reached after `warmup_steps`; the schedule ends at `min_lr_share` of it.
        grad_clip: largest gradient norm; 0 turns clipping off.
        eval_every, checkpoint_every: in steps. `eval_rows`: validation rows scored each time.
        moments: so many more checkpoints, the first before the first step, denser early; see
            `schedule.moment_steps`.
        precision: "bfloat16" computes matrix products in 16 bits; "auto" does so on a GPU that gains from it,
            never on a CPU. Weights, loss and the optimizer's moments are float32 always.
        mask_prob: share of the tokens that MLM hides. Not used by CLM.
        aligned_share: share of the training rows that begin at the start of a line (a story).
        seed: of the initial weights, the order of the data, the masks and dropout.

    The rest is for a run that starts from a model (`TUNING`):
        aim: what the loss is: of every token of a "text"; of the "answers" of pairs, see
            `engine.instructions`; of "preferences" between two answers, see `engine.preferences`.
        last_blocks: only so many blocks at the end learn, with what comes after them; None is the whole
            model. See `engine.trained_part`.
        beta: how strongly preferences hold the model to its start (DPO).
        framing: how a prompt and its answer become one row: "plain", or the model's own "chat" form.
        row_length: most tokens of a training row; None is the model's context length.
    """

    steps: int = 1000
    batch_size: int = 16
    optimizer: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = 3e-3
    min_lr_share: float = 0.0
    warmup_steps: int = 50
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    weight_decay: float = 0.1
    grad_clip: float = 1.0
    eval_every: int = 50
    eval_rows: int = 32
    checkpoint_every: int = 200
    moments: int = 0
    mask_prob: float = 0.15
    aligned_share: float = 0.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = 0
    aim: Aim = "text"
    last_blocks: int | None = None
    beta: float = 0.1
    framing: Literal["plain", "chat"] = "plain"
    row_length: int | None = None

    def __post_init__(self) -> None:
        check_whole(self, "steps", "batch_size", "eval_every", "eval_rows", "checkpoint_every")
        check_whole(self, "warmup_steps", "seed", "moments", least=0)
        check_most(self, steps=MOST_STEPS, batch_size=MOST_ROWS, moments=MOST_MOMENTS, seed=MOST_SEED)
        check_choice(self, "precision", "auto", "float32", "bfloat16")
        check_choice(self, "optimizer", "adamw", "muon")
        check_choice(self, "schedule", "linear", "cosine", "constant")
        check_between(self, "learning_rate", 0)
        if self.learning_rate <= 0:
            raise ValueError(say("learning_rate_must_above"))
        check_between(self, "min_lr_share", 0, 1)
        check_between(self, "weight_decay", 0)
        check_between(self, "grad_clip", 0)
        check_between(self, "mask_prob", 0, 1)
        if self.mask_prob <= 0:
            raise ValueError(say("mask_prob_must_above"))
        check_between(self, "aligned_share", 0, 1)
        check_choice(self, "aim", "text", "answers", "preferences")
        check_choice(self, "framing", "plain", "chat")
        check_between(self, "beta", 0)
        if self.beta <= 0:
            raise ValueError(say("beta_must_above"))
        for name in ("last_blocks", "row_length"):
            if getattr(self, name) is not None:
                check_whole(self, name)

    def to_json(self) -> dict[str, Any]:
        """The settings by name; those of `TUNING` only where they are not as in any other run."""
        return {
            name: value
            for name, value in super().to_json().items()
            if name not in TUNING or value != TUNING[name]
        }

    def longest_row(self, context_length: int) -> int:
        """Most tokens that a training row gives to a model with this context."""
        return min(self.row_length or context_length, context_length)


_FIELDS = [f.name for f in fields(TrainConfig)]
TUNING = {f.name: f.default for f in fields(TrainConfig)[_FIELDS.index("aim") :]}


@dataclass(frozen=True)
class SamplingConfig(JsonSettings):
    """How a token is drawn. Order: temperature, then top-k, then top-p, then min-p."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    n_tokens: int = 100

    def __post_init__(self) -> None:
        check_sampling(self.temperature, self.top_k, self.top_p, self.min_p)
        check_whole(self, "n_tokens", least=0)


def check_sampling(
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    min_p: float | None,
    repetition_penalty: float = 1.0,
) -> None:
    """Refuse sampling settings outside their range; None (and top_k 0) means off."""
    if not 0 <= temperature < float("inf"):
        raise ValueError(say("temperature_must_least_0", temperature=temperature))
    if top_k is not None and not (top_k == int(top_k) and top_k >= 0):
        raise ValueError(say("top_k_must_whole", top_k=top_k))
    if top_p is not None and not 0 <= top_p <= 1:
        raise ValueError(say("top_p_must_lie", top_p=top_p))
    if min_p is not None and not 0 <= min_p <= 1:
        raise ValueError(say("min_p_must_lie", min_p=min_p))
    if not 1 <= repetition_penalty < float("inf"):
        raise ValueError(say("repetition_penalty_must_least", repetition_penalty=repetition_penalty))
