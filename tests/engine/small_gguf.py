"""A tiny random Llama as a GGUF file, written with the `gguf` package, and as a wheel around it."""

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WIDTH, INNER, HEADS, KV_HEADS, LAYERS = 64, 96, 4, 2, 2
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["t h", "th e", "Ġ the", "i n", "Ġ a", "o n", "Ġ Ġ", "ĠĠ ĠĠ", "1 2", "Ã ©"]
MISSING = bytes([0x04, 0xC0, 0xF5])
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def alphabet() -> list[str]:
    """How GPT-2 writes the 256 bytes, told anew: printable Latin-1 as itself, the others from 256 on."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in own]
    return [chr(b) if b in own else chr(256 + rest.index(b)) for b in range(256)]


def vocabulary() -> list[str]:
    letters = alphabet()
    single = [letters[b] for b in range(256) if b not in MISSING]
    found = [*CONTROL, *single, *(merge.replace(" ", "") for merge in MERGES)]
    return found + [f"<|unused_{i}|>" for i in range(-len(found) % 32)]


def settings() -> dict[str, Any]:
    return {
        "general.architecture": "llama",
        "llama.block_count": LAYERS,
        "llama.context_length": 128,
        "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.rope.freq_base": 500.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": len(vocabulary()),
        "llama.rope.dimension_count": WIDTH // HEADS,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": vocabulary(),
        "tokenizer.ggml.token_type": [3 if "<|" in token else 1 for token in vocabulary()],
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": TEMPLATE,
    }


def tensors() -> dict[str, tuple[np.ndarray, str]]:
    """name: numbers and how to pack them."""
    dice = np.random.default_rng(5)
    kv = WIDTH // HEADS * KV_HEADS

    def noise(*shape: int) -> np.ndarray:
        return (0.12 * dice.standard_normal(shape)).astype(np.float32)

    found = {
        "token_embd": (noise(len(vocabulary()), WIDTH), "Q8_0"),
        "output_norm": (1 + noise(WIDTH), "F32"),
    }
    shapes = {"attn_q": (WIDTH, WIDTH), "attn_k": (kv, WIDTH), "attn_v": (kv, WIDTH)}
    shapes |= {"attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH)}
    shapes |= {"ffn_down": (WIDTH, INNER)}
    for i in range(LAYERS):
        found |= {f"blk.{i}.{name}": (1 + noise(WIDTH), "F32") for name in ("attn_norm", "ffn_norm")}
        found |= {f"blk.{i}.{name}": (noise(*shape), "Q4_1") for name, shape in shapes.items()}
    return {f"{name}.weight": one for name, one in found.items()}


def write_gguf(path: Path, *, without: str = "", more: dict[str, Any] | None = None, **changes: Any) -> Path:
    """Write the file.

    Args:
        path: where to.
        without: a tensor that is left out.
        more: tensors instead of or beside the usual ones, as `tensors` has them.
        changes: settings by their last name, as `pre="llama-bpe"`; ... leaves one out.
    """
    gguf = pytest.importorskip("gguf", reason="gguf is not installed: see requirements-models.txt")
    values = settings()
    for name, value in changes.items():
        full = [key for key in values if key.split(".")[-1] == name] or [name.replace("__", ".")]
        values[full[0]] = value
    writer = gguf.GGUFWriter(path, values.pop("general.architecture"))
    add = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        list: writer.add_array,
    }
    for name, value in values.items():
        if value is not ...:
            add[type(value)](name, value)
    for name, (numbers, kind) in {**tensors(), **(more or {})}.items():
        if name != without:
            packing = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(name, gguf.quantize(numbers, packing), raw_dtype=packing)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_wheel(folder: Path, gguf: Path, *, member: str, info: str, name: str, version: str) -> Path:
    """A wheel that pip accepts, with a GGUF file and a licence in it."""
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: not-there-at-all\n"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(gguf, member)
        archive.writestr(f"{info}/LICENSE", "Apache License\nVersion 2.0\n")
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
