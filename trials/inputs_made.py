"""Good files of every kind, small: what the cases damage."""

import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as write_tensors

from engine.checkpoints import Checkpoint, save_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import own_text, stories
from engine.hub_bpe import spelled_bytes
from engine.hub_families import family_of, shape_of
from engine.hub_layout import our_shapes
from engine.hub_settings import Settings
from engine.model import Transformer
from engine.tokenizers import Tokenizer, byte_tokenizer, char_tokenizer, train_bpe

OWNER = "a" * 32
TEXT = "the cat sat on the mat, the dog sat on the log.\n" * 60


@cache
def bpe() -> Tokenizer:
    """A vocabulary of 400 from stories."""
    return train_bpe(stories(60, seed=3).text, 400)


def model(tokenizer: Tokenizer, objective: str = "clm", **shape: Any) -> Transformer:
    """A model of one block with first weights, wide enough to be one."""
    sizes = {"context_length": 32, "n_layer": 1, "n_head": 2, "d_model": 16, **shape}
    config = ModelConfig(tokenizer.model_vocab_size(objective), objective=objective, **sizes)  # type: ignore[arg-type]
    return Transformer(config, torch.Generator().manual_seed(5)).eval()


@cache
def checkpoint_files(dtype: str = "float32") -> dict[str, bytes]:
    """The files of a checkpoint with an optimizer's state."""
    tokenizer = char_tokenizer(TEXT)
    made = model(tokenizer)
    state = {"step": torch.tensor(3.0), "mean.embedding.weight": torch.zeros(2, 2)}
    generators = {"data": torch.Generator().manual_seed(1).get_state()}
    one = Checkpoint(
        made,
        tokenizer,
        step=3,
        train_config=TrainConfig(steps=9),
        optimizer_state=state,
        generator_states=generators,
        info={"name": "cats"},
    )
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(Path(folder) / "one", one, dtype=dtype)  # type: ignore[arg-type]
        return read_files(Path(folder) / "one")


@cache
def run_files() -> dict[str, bytes]:
    """The files of a run that was trained for some steps, by name."""
    from engine import worker
    from engine.runs import RunSpec, RunStore

    tokenizer = char_tokenizer(TEXT)
    shape = ModelConfig(tokenizer.vocab_size, context_length=16, n_layer=1, n_head=2, d_model=16)
    train = TrainConfig(
        steps=6, batch_size=2, eval_every=3, eval_rows=2, checkpoint_every=3, warmup_steps=1, moments=2
    )
    spec = RunSpec("Cats", own_text(TEXT), tokenizer, shape, train, also_scored={"other": TEXT[:300]})
    with tempfile.TemporaryDirectory() as home:
        store = RunStore(home)
        run_id = store.create(spec, OWNER)
        worker.run_folder(store.claim(run_id), report=lambda text: None)
        files = read_files(store.root / run_id)
        store.close()
    return files


@cache
def run_zip() -> bytes:
    """The same run as a zip."""
    from engine.bundles import export_run
    from engine.runs import RunStore

    with tempfile.TemporaryDirectory() as home:
        put(Path(home) / "runs" / "one", run_files())
        store = RunStore(home)
        data = export_run(store, "one")
        store.close()
    return data


def unzipped(data: bytes) -> dict[str, bytes]:
    """The files of a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@cache
def llama_files() -> dict[str, bytes]:
    """A Hugging Face folder of a tiny Llama."""
    return _hub(
        {
            "model_type": "llama",
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "max_position_embeddings": 32,
            "rope_theta": 100.0,
            "hidden_act": "silu",
            "tie_word_embeddings": True,
            "eos_token_id": 0,
        }
    )


@cache
def gpt2_files() -> dict[str, bytes]:
    """A Hugging Face folder of a tiny GPT-2."""
    return _hub({"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32})


@cache
def bert_files() -> dict[str, bytes]:
    """A Hugging Face folder of a tiny BERT, with a frame around each text."""
    ends = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]")]
    frame = {
        "type": "TemplateProcessing",
        "single": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]],
        "pair": [],
        "special_tokens": {
            name: {"id": name, "ids": [i], "tokens": [name]} for i, name in enumerate(("[CLS]", "[SEP]"))
        },
    }
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    settings = {"model_type": "bert", **sizes, "max_position_embeddings": 32, "pad_token_id": 0}
    return _hub(settings, ("[CLS]", "[SEP]", "[MASK]"), frame)


@cache
def words_files() -> dict[str, bytes]:
    """A Hugging Face folder of a tiny BERT with WordPiece, which the package `tokenizers` runs."""
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *"abcdefghijklmnopqrstuvwxyz",
        "##s",
        "##at",
        "the",
    ]
    content = json.loads(bert_files()["tokenizer.json"]) | {
        "added_tokens": [_added(i, pieces[i]) for i in range(5)],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: i for i, piece in enumerate(pieces)},
        },
    }
    settings = json.loads(bert_files()["config.json"]) | {"vocab_size": len(pieces)}
    return _with_weights(settings, content)


def _hub(
    settings: Mapping[str, Any], special: tuple[str, ...] = ("<|endoftext|>",), frame: Any = None
) -> dict:
    content = _tokenizer(special) | {"post_processor": frame}
    return _with_weights({"vocab_size": len(content["model"]["vocab"]), **settings}, content)


def _with_weights(settings: dict[str, Any], content: dict[str, Any]) -> dict[str, bytes]:
    config, dice = shape_of(settings), torch.Generator().manual_seed(1)
    shapes = our_shapes(config)
    weights = family_of(settings).weights(Settings(settings), config, shapes)
    tensors = {one.theirs: 0.3 * torch.randn(one.shape(shapes), generator=dice) for one in weights}
    return {
        "config.json": json.dumps(settings).encode(),
        "model.safetensors": write_tensors(tensors, metadata={"format": "pt"}),
        "tokenizer.json": json.dumps(content).encode(),
    }


def _added(i: int, text: str) -> dict[str, Any]:
    usual = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": i, "content": text, **usual}


def _tokenizer(special: tuple[str, ...]) -> dict[str, Any]:
    """A tokenizer.json of a byte-level BPE with two merges."""
    letters = {spelled_bytes(chr(c))[0]: chr(c) for c in range(324) if len(spelled_bytes(chr(c))) == 1}
    assert len(letters) == 256
    pieces = [*special, *(letters[b] for b in range(256)), "th", "the"]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "normalizer": None,
        "pre_tokenizer": level,
        "added_tokens": [_added(i, text) for i, text in enumerate(special)],
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {piece: i for i, piece in enumerate(pieces)},
            "merges": [["t", "h"], ["th", "e"]],
        },
    }


@cache
def gguf_file() -> bytes:
    """A tiny Llama as a GGUF file; needs the package `gguf`."""
    import gguf

    vocabulary = list(json.loads(llama_files()["tokenizer.json"])["model"]["vocab"])
    dice, rows = np.random.default_rng(5), len(vocabulary)
    wide, inner = (16, 16), (32, 16)
    shapes = {
        "attn_q": wide,
        "attn_k": wide,
        "attn_v": wide,
        "attn_output": wide,
        "ffn_gate": inner,
        "ffn_up": inner,
        "ffn_down": (16, 32),
        "attn_norm": (16,),
        "ffn_norm": (16,),
    }
    tensors = {"token_embd.weight": (rows, 16), "output_norm.weight": (16,)}
    tensors |= {f"blk.0.{name}.weight": shape for name, shape in shapes.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        for name, number in (
            ("block_count", 1),
            ("context_length", 32),
            ("embedding_length", 16),
            ("feed_forward_length", 32),
            ("attention.head_count", 2),
            ("vocab_size", rows),
            ("attention.head_count_kv", 2),
            ("rope.dimension_count", 8),
        ):
            writer.add_uint32(f"llama.{name}", number)
        writer.add_float32("llama.rope.freq_base", 500.0)
        writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        for name, word in (("model", "gpt2"), ("pre", "smollm")):
            writer.add_string(f"tokenizer.ggml.{name}", word)
        writer.add_array("tokenizer.ggml.tokens", vocabulary)
        writer.add_array("tokenizer.ggml.token_type", [3, *(1 for _ in vocabulary[1:])])
        writer.add_array("tokenizer.ggml.merges", ["t h", "th e"])
        writer.add_uint32("tokenizer.ggml.eos_token_id", 0)
        for name, shape in tensors.items():
            kind = gguf.GGMLQuantizationType.Q4_1 if "ffn_down" in name else gguf.GGMLQuantizationType.F32
            numbers = (0.1 * dice.standard_normal(shape)).astype(np.float32)
            writer.add_tensor(name, gguf.quantize(numbers, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def ranks_lines() -> list[bytes]:
    """The lines of a .tiktoken file."""
    from engine.own_vocabularies import ranks_file

    return ranks_file(bpe()).splitlines()


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files into a folder; gives it."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    """All files in a folder by their names in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def every_tokenizer() -> dict[str, Tokenizer]:
    """One of each kind; a published one where its file is on this machine."""
    from engine.tokenizers import load_vocabulary

    found = {"bytes": byte_tokenizer(), "bpe": bpe(), "characters": char_tokenizer(TEXT)}
    for name in ("gpt2", "cl100k_base"):
        try:
            found[name] = load_vocabulary(name)
        except ValueError:
            continue
    return found
