"""Transformers as the reference: tiny models of every family with random weights, saved as folders."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

V, T = 97, 20
SIZES = {
    "vocab_size": V,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 40,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 300.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0}
ODD_YARN = {
    "attention_factor": 1.4,
    "beta_fast": 3.0,
    "beta_slow": 0.5,
    "truncate": False,
    "original_max_position_embeddings": 16,
}
GPT2 = {"vocab_size": V, "n_positions": T, "n_embd": 32, "n_layer": 2, "n_head": 4}
NEO = {
    "vocab_size": V,
    "max_position_embeddings": T,
    "hidden_size": 32,
    "num_layers": 2,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 1]],
    "window_size": 5,
}
DISTIL = {
    "vocab_size": V,
    "max_position_embeddings": T,
    "n_layers": 2,
    "n_heads": 4,
    "dim": 32,
    "hidden_dim": 56,
}
# name: the beginning of transformers' class names, the end of the model's, its settings
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2", "LMHeadModel", GPT2),
    "gpt2 untied": (
        "GPT2",
        "LMHeadModel",
        {
            **GPT2,
            "tie_word_embeddings": False,
            "scale_attn_weights": False,
            "n_inner": 48,
            "activation_function": "gelu",
        },
    ),
    "llama": ("Llama", "ForCausalLM", {**SIZES, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    "llama 3": (
        "Llama",
        "ForCausalLM",
        {**SIZES, "head_dim": 16, "attention_bias": True, "mlp_bias": True, "rope_parameters": LLAMA3},
    ),
    "llama stretched": (
        "Llama",
        "ForCausalLM",
        {**SIZES, "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}},
    ),
    "llama yarn": (
        "Llama",
        "ForCausalLM",
        {**SIZES, "rope_parameters": {**YARN, "beta_fast": 4.0, "original_max_position_embeddings": 20}},
    ),
    "qwen3 yarn": (
        "Qwen3",
        "ForCausalLM",
        {**SIZES, "num_key_value_heads": 2, "head_dim": 24, "rope_parameters": {**YARN, **ODD_YARN}},
    ),
    "gpt_neox yarn": (
        "GPTNeoX",
        "ForCausalLM",
        {
            **SIZES,
            "rope_parameters": {**YARN, "partial_rotary_factor": 0.5, "mscale": 1.3, "mscale_all_dim": 0.7},
        },
    ),
    "llama dynamic": (
        "Llama",
        "ForCausalLM",
        {**SIZES, "rope_parameters": {"rope_type": "dynamic", "rope_theta": 300.0, "factor": 4.0}},
    ),
    "mistral": ("Mistral", "ForCausalLM", {**SIZES, "num_key_value_heads": 1, "sliding_window": 5}),
    "qwen2": ("Qwen2", "ForCausalLM", {**SIZES, "num_key_value_heads": 2}),
    "qwen2 sliding": (
        "Qwen2",
        "ForCausalLM",
        {
            **SIZES,
            "num_key_value_heads": 4,
            "use_sliding_window": True,
            "sliding_window": 6,
            "max_window_layers": 1,
        },
    ),
    "qwen3": (
        "Qwen3",
        "ForCausalLM",
        {**SIZES, "num_key_value_heads": 2, "head_dim": 12, "tie_word_embeddings": True},
    ),
    "gpt_neox": (
        "GPTNeoX",
        "ForCausalLM",
        {**SIZES, "rope_parameters": {"rope_theta": 500.0, "partial_rotary_factor": 0.5}},
    ),
    "gpt_neox serial": (
        "GPTNeoX",
        "ForCausalLM",
        {**SIZES, "use_parallel_residual": False, "attention_bias": False, "tie_word_embeddings": True},
    ),
    "gpt_neo": ("GPTNeo", "ForCausalLM", NEO),
    "bert": ("Bert", "ForMaskedLM", SIZES),
    "bert untied": ("Bert", "ForMaskedLM", {**SIZES, "tie_word_embeddings": False, "hidden_act": "gelu_new"}),
    "roberta": (
        "Roberta",
        "ForMaskedLM",
        {**SIZES, "max_position_embeddings": T + 2, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    ),
    "roberta untied": (
        "Roberta",
        "ForMaskedLM",
        {**SIZES, "max_position_embeddings": T + 2, "type_vocab_size": 2, "tie_word_embeddings": False},
    ),
    "distilbert": ("DistilBert", "ForMaskedLM", DISTIL),
}
CAUSAL = [name for name, (_, end, _) in CASES.items() if end != "ForMaskedLM"]

Make = Callable[..., tuple[Any, Path]]


def transformers() -> Any:
    """The package; a test without it is skipped with the reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip(
            "transformers", reason="transformers, the reference, is not installed: see requirements-dev.txt"
        )
    package.utils.logging.disable_progress_bar()
    package.utils.logging.set_verbosity_error()
    return package


def maker(factory: pytest.TempPathFactory) -> Make:
    """Name of a case, and settings to change -> transformers' model, and the folder where it saved it."""
    package = transformers()
    made: dict[str, tuple[Any, Path]] = {}

    def make(name: str, **more: Any) -> tuple[Any, Path]:
        key = f"{name} {more}"
        if key not in made:
            begin, end, settings = CASES[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                config = getattr(package, f"{begin}Config")(**{**settings, **more})
                config._attn_implementation = "eager"
                with torch.random.fork_rng():
                    model = getattr(package, begin + end)(config).eval().requires_grad_(False)
                dice = torch.Generator().manual_seed(1)
                for weight in model.parameters():  # large enough that every part matters, biases too
                    plain = 1.0 if weight.ndim == 1 and weight.mean() > 0.5 else 0.0
                    weight.copy_(plain + 0.15 * torch.randn(weight.shape, generator=dice))
                folder = factory.mktemp("hub") / name.replace(" ", "-")
                model.save_pretrained(folder)
            made[key] = model, folder
        return made[key]

    return make
