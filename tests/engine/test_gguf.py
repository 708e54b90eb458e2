"""GGUF files: the numbers of the `gguf` package in Hugging Face's order, and what is refused."""

import struct
from pathlib import Path

import numpy as np
import pytest

from engine import gguf_file
from engine.gguf_file import read_gguf
from engine.gguf_llama import convert, halves
from tests.engine.small_gguf import HEADS, KV_HEADS, WIDTH, tensors, vocabulary, write_gguf

pytestmark = pytest.mark.usefixtures("no_network")
gguf = pytest.importorskip("gguf", reason="gguf is not installed: see requirements-models.txt")


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize("width", [2, 6, 8])
def test_a_pair_of_neighbours_goes_to_two_halves(heads, width):
    """Row 2j of a head goes to j, row 2j + 1 to j + width/2."""
    rows = np.arange(heads * width * 3).reshape(heads * width, 3)
    found = halves(rows, heads)
    for head in range(heads):
        for j in range(width // 2):
            for second in (0, 1):
                came = rows[head * width + 2 * j + second]
                assert (found[head * width + j + second * (width // 2)] == came).all()


def test_weights_are_the_packages_numbers_in_16_bits(packed):
    reader, found = gguf.GGUFReader(packed), convert(read_gguf(packed))
    theirs = {x.name: gguf.dequantize(x.data, x.tensor_type) for x in reader.tensors}
    kinds = {x.tensor_type.name for x in reader.tensors}
    assert kinds == {"Q4_1", "Q8_0", "F32"}
    names = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "blk.1.attn_norm.weight": "model.layers.1.input_layernorm.weight",
        "blk.1.ffn_norm.weight": "model.layers.1.post_attention_layernorm.weight",
        "blk.0.attn_v.weight": "model.layers.0.self_attn.v_proj.weight",
        "blk.0.attn_output.weight": "model.layers.0.self_attn.o_proj.weight",
        "blk.1.ffn_gate.weight": "model.layers.1.mlp.gate_proj.weight",
        "blk.1.ffn_up.weight": "model.layers.1.mlp.up_proj.weight",
        "blk.0.ffn_down.weight": "model.layers.0.mlp.down_proj.weight",
    }
    for name, ours in names.items():
        assert np.array_equal(found.weights[ours], theirs[name].astype(np.float16)), name
    for name, heads in (("attn_q", HEADS), ("attn_k", KV_HEADS)):
        half = theirs[f"blk.1.{name}.weight"].astype(np.float16)
        ours = found.weights[f"model.layers.1.self_attn.{name[-1]}_proj.weight"]
        assert np.array_equal(ours, halves(half, heads)) and not np.array_equal(ours, half)
    assert len(found.weights) == len(theirs)
    assert found.off == max(float(np.abs(w.astype(np.float16) - w).max()) for w in theirs.values()) > 0


def test_packing_lost_no_more_than_it_may(packed):
    """The writer of the test packs as published files are: within half a step of 4 bits."""
    read = read_gguf(packed)
    for name, (numbers, kind) in tensors().items():
        blocks, unpacked = numbers.reshape(-1, 32), read.tensors[name].numbers().reshape(-1, 32)
        step = {
            "Q4_1": np.ptp(blocks, 1) / 15,
            "Q8_0": np.abs(blocks).max(1) / 127,
            "F32": np.zeros(len(blocks)),
        }[kind]
        assert (
            np.abs(unpacked - blocks).max(1) <= 0.51 * step + 2e-3 * np.abs(blocks).max(1) * (kind != "F32")
        ).all()


def test_settings_are_told_as_config_json(packed):
    config = convert(read_gguf(packed)).config
    assert config["rms_norm_eps"] == 1e-5 and config["rope_theta"] == 500.0  # not 9.999999747378752e-06
    assert config["num_key_value_heads"] == KV_HEADS and config["hidden_size"] == WIDTH
    assert (config["bos_token_id"], config["eos_token_id"]) == (1, 2)
    assert config["tie_word_embeddings"] is True and config["model_type"] == "llama"


def test_a_head_of_its_own_is_kept(tmp_path):
    head = np.random.default_rng(1).standard_normal((len(vocabulary()), WIDTH)).astype(np.float32)
    found = convert(read_gguf(write_gguf(tmp_path / "x.gguf", more={"output.weight": (head, "F32")})))
    assert found.config["tie_word_embeddings"] is False
    assert np.array_equal(found.weights["lm_head.weight"], head.astype(np.float16))


def test_both_steps_tell_how_far_they_are(packed, monkeypatch):
    monkeypatch.setattr(gguf_file, "_TOLD_EVERY", 100)
    bytes_read: list[int] = []
    shares: list[float] = []
    convert(read_gguf(packed, bytes_read.append), shares.append)
    assert len(bytes_read) > 5 and bytes_read == sorted(bytes_read)
    assert len(shares) > 5 and shares == sorted(shares) and shares[-1] == 1.0


BIG = np.full(WIDTH, 1e6, np.float32)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pre": "llama-bpe"}, "says tokenizer.ggml.pre = 'llama-bpe'; only a file that says smollm"),
        ({"model": "llama"}, "tokenizer.ggml.model = 'llama'; only a file that says gpt2"),
        ({"general.architecture": "gemma"}, "general.architecture = 'gemma'; only a file that says llama"),
        ({"add_bos_token": True}, "add_bos_token = True"),
        ({"llama__rope__scaling__factor": 4.0}, "the setting 'llama.rope.scaling.factor', which can't"),
        ({"llama__expert_count": 4}, "the setting 'llama.expert_count'"),
        ({"block_count": ...}, "llama.block_count = None; it must be a whole number from 1"),
        ({"block_count": 2.0}, "llama.block_count = 2.0"),
        ({"block_count": 4_000_000}, "speaks of 4,000,000 blocks, but has only 20 weights"),
        ({"block_count": 3}, "lacks the weights blk.2."),
        ({"embedding_length": 4_000_000_000}, "from 1 to 10,000,000"),
        ({"freq_base": -1.0}, "llama.rope.freq_base = -1.0; it must be a number above 0"),
        ({"freq_base": float("nan")}, "llama.rope.freq_base = nan"),
        ({"head_count": 3}, "the width 64, 3 query heads"),
        ({"head_count_kv": 3}, "3 key heads"),
        ({"dimension_count": 8}, "8 numbers that turn"),
        ({"feed_forward_length": 128}, r"the shape \(96, 64\), but by its settings it must have \(128, 64\)"),
        ({"without": "blk.1.ffn_up.weight"}, "lacks the weights blk.1.ffn_up.weight"),
        ({"more": {"blk.0.attn_q.bias": (BIG, "F32")}}, "has the weights 'blk.0.attn_q.bias', which can't"),
        ({"more": {"output_norm.weight": (BIG, "F32")}}, "output_norm.weight holds numbers that 16 bits"),
        ({"tokens": ...}, "list tokenizer.ggml.tokens is missing or damaged"),
        ({"tokens": vocabulary()[:-1]}, "vocabulary of 287 tokens doesn't fit"),
        ({"tokens": ["a"] * len(vocabulary())}, "vocabulary of 288 tokens doesn't fit"),
        ({"merges": ["a b c"]}, "doesn't fit its merges"),
        ({"merges": 5}, "list tokenizer.ggml.merges is missing"),
        ({"token_type": [3, 3, 3, 4] + [1] * 284}, "has the token “Ā” of the kind 4, which can't"),
        ({"token_type": ["x"] * 288}, "list tokenizer.ggml.token_type is missing or damaged"),
    ],
    ids=str,
)  # fmt: skip
def test_another_model_is_refused_in_a_sentence(tmp_path, changes, told):
    path = write_gguf(tmp_path / "x.gguf", **changes)
    with pytest.raises(ValueError, match=told):
        convert(read_gguf(path))


def header(*, n_tensors: int = 0, n_values: int = 1, after: bytes = b"", version: int = 3) -> bytes:
    return struct.pack("<4sIQQ", b"GGUF", version, n_tensors, n_values) + after


def named(name: bytes, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value


HUGE = 2**62
LIES = {
    "empty": b"",
    "no GGUF": b"PK\x03\x04" * 9,
    "short": b"GGUF",
    "version": header(version=99),
    "many settings": header(n_values=HUGE),
    "many tensors": header(n_values=0, n_tensors=HUGE),
    "long name": header(after=struct.pack("<Q", HUGE) + b"x"),
    "largest name": header(after=struct.pack("<Q", 2**64 - 1) + b"x"),
    "long text": header(after=named(b"a", 8, struct.pack("<Q", HUGE) + b"x")),
    "long list of numbers": header(after=named(b"a", 9, struct.pack("<IQ", 4, HUGE) + b"x" * 64)),
    "long list of texts": header(after=named(b"a", 9, struct.pack("<IQ", 8, HUGE) + b"\0" * 64)),
    "lists in lists": header(after=named(b"a", 9, struct.pack("<IQ", 9, 1) * 5000)),
    "unknown kind": header(after=named(b"a", 77, b"x" * 9)),
    "no text": header(after=named(b"\xff\xfe", 4, b"1234")),
    "twice": header(n_values=2, after=named(b"a", 4, b"1234") * 2),
    "alignment": header(after=named(b"general.alignment", 4, struct.pack("<I", 0))),
    "many dimensions": header(n_values=0, n_tensors=1, after=named(b"t", 2**31, b"x" * 40)),
    "tensor outside": header(
        n_values=0, n_tensors=1, after=named(b"t", 1, struct.pack("<QIQ", 8, 0, HUGE)) + b"x" * 64
    ),
    "tensor far outside": header(
        n_values=0, n_tensors=1, after=named(b"t", 1, struct.pack("<QIQ", 8, 0, 2**64 - 1)) + b"x" * 64
    ),
    "huge tensor": header(
        n_values=0, n_tensors=1, after=named(b"t", 2, struct.pack("<QQIQ", 2**33, 2**33, 0, 0)) + b"x" * 64
    ),
    "unknown packing": header(
        n_values=0, n_tensors=1, after=named(b"t", 1, struct.pack("<QIQ", 8, 999, 0)) + b"x" * 64
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_file_that_lies_about_its_lengths_is_refused(tmp_path, name):
    path = tmp_path / "x.gguf"
    path.write_bytes(LIES[name])
    with pytest.raises(ValueError, match=r"x\.gguf is damaged or no GGUF file \(.*\)\. Download it again\."):
        convert(read_gguf(path))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95, 0.999])
def test_a_file_that_ends_early_is_refused(packed, tmp_path, share):
    whole, path = packed.read_bytes(), tmp_path / "x.gguf"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="damaged or no GGUF file"):
        convert(read_gguf(path))


def test_a_header_of_too_many_pieces_is_refused(packed, monkeypatch):
    monkeypatch.setattr(gguf_file, "MOST_READS", 500)
    with pytest.raises(ValueError, match="damaged or no GGUF file"):
        read_gguf(packed)


def test_a_file_larger_than_any_that_is_meant_is_not_opened(packed, monkeypatch):
    monkeypatch.setattr(gguf_file, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match=r"more than 1,000 bytes"):
        read_gguf(packed)


def test_a_refusal_is_told_in_the_language_of_its_reader(tmp_path, monkeypatch):
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match="is damaged") as caught:
        read_gguf(tmp_path / "x.gguf")
    monkeypatch.setenv("LOUPE_LANGUAGE", "es")
    assert "está dañado" in str(caught.value)
