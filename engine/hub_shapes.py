"""The settings of published architectures, told as arguments of our `ModelConfig`: one function for each."""

from typing import Any

from engine.hub_settings import ACTIVATIONS, GATED, Settings
from wording import words

say = words("engine.hub")


def _learned(settings: Settings, name: str) -> dict[str, Any]:
    return {"context_length": settings.whole(name), "positions": "learned"}


def gpt2(s: Settings) -> dict[str, Any]:
    """GPT-2 (Radford et al. 2019)."""
    s.refuse("scale_attn_by_inverse_layer_idx", False)
    s.refuse("add_cross_attention", False)
    width = s.whole("n_embd")
    return {
        **_learned(s, "n_positions"),
        "vocab_size": s.whole("vocab_size"),
        "n_layer": s.blocks("n_layer"),
        "n_head": s.whole("n_head"),
        "d_model": width,
        "d_ff": s.whole("n_inner", 4 * width),
        "activation": s.activation("activation_function", ACTIVATIONS, "gelu_new"),
        "norm_eps": s.number("layer_norm_epsilon", 1e-5),
        "score_scale": None if s.flag("scale_attn_weights", True) else 1.0,
        "tie_head": s.flag("tie_word_embeddings", True),
    }


def _sizes(s: Settings) -> dict[str, Any]:
    """What most families call by the same names."""
    return {
        "vocab_size": s.whole("vocab_size"),
        "n_layer": s.blocks("num_hidden_layers"),
        "n_head": s.whole("num_attention_heads"),
        "d_model": s.whole("hidden_size"),
        "d_ff": s.whole("intermediate_size"),
    }


def llama(s: Settings) -> dict[str, Any]:
    """Llama (Touvron et al. 2023, arXiv:2302.13971) and what was made on its plan, SmolLM among them."""
    sizes = _sizes(s)
    bias = s.flag("attention_bias", False)
    return {
        **sizes,
        "context_length": s.whole("max_position_embeddings"),
        "n_kv_head": s.whole("num_key_value_heads", sizes["n_head"]),
        "head_width": s.whole("head_dim", 0) or None,
        "positions": "rotary",
        "rotary": s.rotary(),
        "norm": "rmsnorm",
        "norm_eps": s.number("rms_norm_eps", 1e-6),
        "activation": s.activation("hidden_act", GATED, "silu"),
        "bias": s.flag("mlp_bias", False),
        "qkv_bias": bias,
        "out_bias": bias,
        "tie_head": s.flag("tie_word_embeddings", False),
    }


def mistral(s: Settings) -> dict[str, Any]:
    """Mistral (Jiang et al. 2023, arXiv:2310.06825): Llama with a sliding window."""
    shape = llama(s)
    window = s.whole("sliding_window", 0)
    shape |= {"bias": False, "qkv_bias": False, "out_bias": False}
    return shape | {"windows": (window,) * shape["n_layer"] if window else ()}


def _sliding(s: Settings, n_layer: int) -> tuple[int, ...]:
    """Windows of Qwen: of the blocks that are named, or of those after the first ones."""
    if not s.flag("use_sliding_window", False):
        return ()
    window, kinds = s.whole("sliding_window", 4096), s.items("layer_types")
    if kinds:
        if len(kinds) != n_layer:
            raise ValueError(say("setting_list", name="layer_types", value=repr(kinds)[:80]))
        return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
    first = s.whole("max_window_layers", 28)
    return tuple(window if i >= first else 0 for i in range(n_layer))


def qwen2(s: Settings) -> dict[str, Any]:
    """Qwen 2 (Yang et al. 2024, arXiv:2407.10671): Llama with a bias in queries, keys and values."""
    shape = llama(s)
    windows = _sliding(s, shape["n_layer"])
    return shape | {"bias": False, "qkv_bias": True, "out_bias": False, "windows": windows}


def qwen3(s: Settings) -> dict[str, Any]:
    """Qwen 3 (Yang et al. 2025, arXiv:2505.09388): Llama with norms on queries and keys."""
    shape = llama(s)
    windows = _sliding(s, shape["n_layer"])
    return shape | {
        "bias": False,
        "qk_norm": True,
        "head_width": s.whole("head_dim", 128),
        "windows": windows,
    }


def gpt_neox(s: Settings) -> dict[str, Any]:
    """GPT-NeoX (Black et al. 2022, arXiv:2204.06745), and Pythia."""
    bias = s.flag("attention_bias", True)
    return {
        **_sizes(s),
        "context_length": s.whole("max_position_embeddings"),
        "positions": "rotary",
        "rotary": s.rotary(share=0.25),
        "activation": s.activation("hidden_act", ACTIVATIONS, "gelu"),
        "norm_eps": s.number("layer_norm_eps", 1e-5),
        "parallel": s.flag("use_parallel_residual", True),
        "qkv_bias": bias,
        "out_bias": bias,
        "tie_head": s.flag("tie_word_embeddings", False),
    }


def gpt_neo(s: Settings) -> dict[str, Any]:
    """GPT-Neo (Black et al. 2021), and the TinyStories models: every other block sees a window only."""
    width, n_layer = s.whole("hidden_size"), s.blocks("num_layers")
    kinds: list[Any] = []
    for item in s.items("attention_types") or [[["global", "local"], n_layer // 2]]:
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], list)):
            raise ValueError(say("setting_list", name="attention_types", value=repr(item)[:80]))
        times = Settings({"attention_types": item[1]}).whole("attention_types", most=n_layer)
        kinds += item[0][:n_layer] * times
    if len(kinds) != n_layer or not all(kind in ("global", "local") for kind in kinds):
        raise ValueError(say("setting_list", name="attention_types", value=repr(kinds)[:80]))
    window = s.whole("window_size", 256)
    return {
        **_learned(s, "max_position_embeddings"),
        "vocab_size": s.whole("vocab_size"),
        "n_layer": n_layer,
        "n_head": s.whole("num_heads"),
        "d_model": width,
        "d_ff": s.whole("intermediate_size", 4 * width),
        "activation": s.activation("activation_function", ACTIVATIONS, "gelu_new"),
        "norm_eps": s.number("layer_norm_epsilon", 1e-5),
        "windows": tuple(window if kind == "local" else 0 for kind in kinds),
        "score_scale": 1.0,
        "qkv_bias": False,
        "tie_head": s.flag("tie_word_embeddings", True),
    }


def _masked(s: Settings) -> dict[str, Any]:
    """What BERT and those after it share."""
    return {
        "objective": "mlm",
        "norm_place": "post",
        "embedding_norm": True,
        "head_transform": True,
        "head_bias": True,
        "tie_head": s.flag("tie_word_embeddings", True),
    }


def bert(s: Settings) -> dict[str, Any]:
    """BERT (Devlin et al. 2018, arXiv:1810.04805)."""
    s.refuse("is_decoder", False)
    s.refuse("add_cross_attention", False)
    s.refuse("position_embedding_type", "absolute")
    return {
        **_masked(s),
        **_sizes(s),
        **_learned(s, "max_position_embeddings"),
        "activation": s.activation("hidden_act", ACTIVATIONS, "gelu"),
        "norm_eps": s.number("layer_norm_eps", 1e-12),
    }


def roberta(s: Settings) -> dict[str, Any]:
    """RoBERTa (Liu et al. 2019, arXiv:1907.11692): BERT that counts positions from another number."""
    shape = bert(s)
    length = shape["context_length"] - before_first(s)
    s.refuse("hidden_act", "gelu")  # the head's is always that
    return shape | {"context_length": length}


def before_first(s: Settings) -> int:
    """RoBERTa counts positions from one past the id of its padding."""
    return s.whole("pad_token_id", 1) + 1


def distilbert(s: Settings) -> dict[str, Any]:
    """DistilBERT (Sanh et al. 2019, arXiv:1910.01108): BERT without token types."""
    return {
        **_masked(s),
        **_learned(s, "max_position_embeddings"),
        "vocab_size": s.whole("vocab_size"),
        "n_layer": s.blocks("n_layers"),
        "n_head": s.whole("n_heads"),
        "d_model": s.whole("dim"),
        "d_ff": s.whole("hidden_dim"),
        "activation": s.activation("activation", ACTIVATIONS, "gelu"),
        "norm_eps": 1e-12,
    }
