"""A Llama in a GGUF file, told as a Hugging Face folder: settings, weights and tokenizer.

Only what SmolLM2's file needs: the plan of Llama without scaled rotary positions, biases or experts, and a
tokenizer of GPT-2's kind that cuts digits one by one. Any other file is refused in a sentence.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gguf_file import Gguf
from engine.gguf_tokenizer import ends, tokenizer_files
from engine.refused import RefusedError
from wording import words

say = words("engine.gguf_llama")

_MOST = 10_000_000  # of any size
_SIZES = {  # the file's name: config.json's
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "vocab_size": "vocab_size",
}
_NUMBERS = {"rope.freq_base": "rope_theta", "attention.layer_norm_rms_epsilon": "rms_norm_eps"}
_HEAD_WIDTH = "rope.dimension_count"
_WANTED = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.add_space_prefix": False,
    "tokenizer.ggml.add_bos_token": False,
}
_OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_IN_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True)
class Place:
    """Where a tensor of the file goes.

    Attributes:
        theirs, ours: its name in the GGUF file and in the Hugging Face folder.
        shape: that it must have.
        heads: how many heads its rows belong to, if rotary positions turn them; else 0.
    """

    theirs: str
    ours: str
    shape: tuple[int, ...]
    heads: int = 0


@dataclass(frozen=True, eq=False)
class Converted:
    """What goes into the folder.

    Attributes:
        config, tokenizer, tokenizer_config: the JSON files of these names.
        weights: float16, by name.
        off: the most that rounding to 16 bits moved any weight.
    """

    config: dict[str, Any]
    tokenizer: dict[str, Any]
    tokenizer_config: dict[str, Any]
    weights: dict[str, NDArray]
    off: float


def convert(gguf: Gguf, tell: Callable[[float], None] = lambda share: None) -> Converted:
    """Settings, weights and tokenizer of a file.

    Args:
        gguf: the file.
        tell: is told which share of the weights is done, 0 to 1.

    Raises:
        ValueError: one sentence, if it holds anything else than such a model, or numbers that 16 bits can't.
    """
    config = settings(gguf)
    tokenizer, tokenizer_config = tokenizer_files(
        gguf.values, config["vocab_size"], config["max_position_embeddings"]
    )
    weights, off = {}, 0.0
    plan = list(places(config))
    check_tensors(gguf, plan)
    n_all = sum(int(np.prod(place.shape)) for place in plan)
    n_done = 0
    for place in plan:
        numbers = gguf.tensors[place.theirs].numbers()
        if place.heads:
            numbers = halves(numbers, place.heads)
        weights[place.ours], moved = _in_16_bits(numbers, place.theirs)
        off = max(off, moved)
        n_done += numbers.size
        tell(n_done / n_all)
    return Converted(config, tokenizer, tokenizer_config, weights, off)


def settings(gguf: Gguf) -> dict[str, Any]:
    """config.json of the model in a file.

    Raises:
        ValueError: one sentence, if the file is of another kind or leaves something out.
    """
    values = gguf.values
    for name, wanted in _WANTED.items():
        if values.get(name, wanted if wanted is False else None) != wanted:
            raise RefusedError(say.later("kind"), name=name, value=_shown(values.get(name)), wanted=wanted)
    known = {f"llama.{name}" for name in (*_SIZES, *_NUMBERS, _HEAD_WIDTH)}
    if odd := [name for name in values if name.startswith("llama.") and name not in known]:
        raise RefusedError(say.later("unknown_setting"), name=_shown(odd[0]))
    sizes = {ours: _whole(values, f"llama.{name}") for name, ours in _SIZES.items()}
    numbers = {ours: _number(values, f"llama.{name}") for name, ours in _NUMBERS.items()}
    if sizes["num_hidden_layers"] > len(gguf.tensors):  # before names are made for each of them
        raise RefusedError(say.later("blocks"), n_layer=sizes["num_hidden_layers"], n=len(gguf.tensors))
    width, heads = sizes["hidden_size"], sizes["num_attention_heads"]
    turning = _whole(values, f"llama.{_HEAD_WIDTH}")
    if turning * heads != width or turning % 2 or heads % sizes["num_key_value_heads"]:
        raise RefusedError(
            say.later("heads"), width=width, n=heads, kv=sizes["num_key_value_heads"], turning=turning
        )
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **sizes,
        **numbers,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": "output.weight" not in gguf.tensors,
        **{f"{name}_token_id": i for name, i in ends(values, sizes["vocab_size"]).items()},
        "torch_dtype": "float16",
    }


def _shown(value: object) -> str:
    return repr(value)[:80]


def _whole(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    if type(value) is not int or not 1 <= value <= _MOST:
        raise RefusedError(say.later("whole"), name=name, value=_shown(value), most=_MOST)
    return value


def _number(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name)
    if type(value) is not float or not 0 < value < np.inf:
        raise RefusedError(say.later("number"), name=name, value=_shown(value))
    return float(str(np.float32(value)))  # the file has 32 bits: 1e-05, not 9.999999747378752e-06


def places(config: Mapping[str, Any]) -> Iterator[Place]:
    """Every tensor that a model of these settings has, with its names and shape."""
    rows, width, inner = config["vocab_size"], config["hidden_size"], config["intermediate_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    kv = width // heads * kv_heads
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd": (rows, width),
        "output_norm": (width,),
        "output": (rows, width),
        "attn_norm": (width,),
        "attn_q": (width, width),
        "attn_k": (kv, width),
        "attn_v": (kv, width),
        "attn_output": (width, width),
        "ffn_norm": (width,),
        "ffn_gate": (inner, width),
        "ffn_up": (inner, width),
        "ffn_down": (width, inner),
    }
    turned = {"attn_q": heads, "attn_k": kv_heads}
    for theirs, ours in _OUTSIDE.items():
        if theirs != "output" or not config["tie_word_embeddings"]:
            yield Place(f"{theirs}.weight", f"{ours}.weight", shapes[theirs])
    for i in range(config["num_hidden_layers"]):
        for theirs, ours in _IN_BLOCK.items():
            name = f"model.layers.{i}.{ours}.weight"
            yield Place(f"blk.{i}.{theirs}.weight", name, shapes[theirs], turned.get(theirs, 0))


def check_tensors(gguf: Gguf, plan: list[Place]) -> None:
    """Hold a file against the tensors that it should have.

    Raises:
        ValueError: one sentence, if one is missing, of another shape, or nobody knows it.
    """
    wanted = {place.theirs: place.shape for place in plan}
    for name, shape in wanted.items():
        if name not in gguf.tensors:
            raise RefusedError(say.later("missing"), tensor=name)
        if gguf.tensors[name].shape != shape:
            raise RefusedError(say.later("shape"), tensor=name, shape=gguf.tensors[name].shape, wanted=shape)
    if extra := sorted(gguf.tensors.keys() - wanted.keys()):
        raise RefusedError(say.later("extra"), tensor=_shown(extra[0]))


def halves(rows: NDArray, heads: int) -> NDArray:
    """Rows of queries or keys in Hugging Face's order: a rotary pair's first numbers, then all second ones.

    In a GGUF file the two numbers that turn together are neighbours, rows 2j and 2j + 1 of a head of width
    D; Hugging Face has them at j and j + D/2.

    >>> halves(np.array([[0], [1], [2], [3]]), 1).ravel().tolist()
    [0, 2, 1, 3]

    Args:
        rows: (H·D, C).
        heads: H.
    """
    pairs = rows.reshape(heads, -1, 2, rows.shape[1])  # (H,D/2,2,C)
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _in_16_bits(numbers: NDArray, name: str) -> tuple[NDArray, float]:
    """The numbers as float16, and the most that this moved one of them."""
    with np.errstate(over="ignore", invalid="ignore"):
        half = np.ascontiguousarray(numbers, np.float16)
        moved = float(np.abs(half - numbers).max())
    if not np.isfinite(moved):
        raise RefusedError(say.later("not_finite"), tensor=name)
    return half, moved
