"""Hugging Face folders: the same logits and attention as transformers, and what is refused."""

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.cache import KVCache
from engine.checkpoints import Checkpoint, load_checkpoint, model_tensors, save_checkpoint
from engine.config import BORROWED, ModelConfig, Rotary
from engine.hub import load_folder, load_model, look
from engine.hub_families import LONGEST
from engine.hub_layout import our_shapes
from engine.model import Transformer
from engine.recorder import Recorder
from engine.tokenizers import byte_tokenizer
from tests.engine import hub_reference
from tests.engine.hub_reference import CASES, CAUSAL, LLAMA3, SIZES

pytestmark = pytest.mark.usefixtures("no_network")
T = hub_reference.T
V = hub_reference.V


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Name of a case -> transformers' model with random weights, and the folder where it saved it."""
    return hub_reference.maker(tmp_path_factory)


def some_ids(*shape: int) -> torch.Tensor:
    return torch.randint(3, V, shape, generator=torch.Generator().manual_seed(2))


def far(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).detach().abs().max())


# -- the same numbers as the reference -----------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_logits_and_attention_equal_transformers(reference, name):
    theirs, folder = reference(name)
    ids = some_ids(2, T)
    expected = theirs(ids, output_attentions=True)
    ours, recorder = load_model(folder), Recorder()
    assert float(expected.logits.std()) > 0.3  # or the comparison would say little
    assert far(ours(ids), expected.logits) <= 1e-5
    assert far(ours(ids, recorder=recorder), expected.logits) <= 1e-5
    assert len(expected.attentions) == len(recorder.kept["weights"]) == 2
    for mine, other in zip(recorder.kept["weights"], expected.attentions, strict=True):
        assert far(mine, other) <= 1e-5


@pytest.mark.parametrize("name", CAUSAL)
@torch.no_grad()
def test_any_chunking_through_the_cache_equals_one_pass(reference, name):
    model, ids = load_model(reference(name)[1]), some_ids(2, T)
    cache = KVCache(model.config, batch_size=2)
    parts = [model(part, cache=cache) for part in ids.split((3, 1, 9, 1, 6), dim=1)]
    assert far(torch.cat(parts, dim=1), model(ids)) <= 1e-5


@pytest.mark.parametrize("name", ["gpt2", "qwen3", "gpt_neox"])
@torch.no_grad()
def test_greedy_tokens_equal_transformers(reference, name):
    theirs, folder = reference(name)
    model, ids = load_model(folder), some_ids(1, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, eos_token_id=None,
            pad_token_id=0,
        )  # fmt: skip
    cache = KVCache(model.config)
    new, written = ids, ids
    for _ in range(12):
        new = model(new, cache=cache)[:, -1:].argmax(-1)
        written = torch.cat((written, new), dim=1)
    assert written.tolist() == expected.tolist()


@pytest.mark.parametrize("name", CASES)
def test_the_residual_stream_is_the_sum_of_its_parts(reference, name):
    model, recorder = load_model(reference(name)[1]), Recorder()
    model(some_ids(1, T), recorder=recorder)
    kept = recorder.kept
    for i, middle in enumerate(kept["middle"]):
        before, block = kept["residual"][i] + kept["attention_out"][i], model.blocks[i]
        post = model.config.norm_place == "post"
        assert far(middle, block.attention_norm(before) if post else before) <= 1e-6
        after = middle + kept["mlp_out"][i]
        assert far(kept["residual"][i + 1], block.mlp_norm(after) if post else after) <= 1e-6


# -- as the files are found in the world ---------------------------------------------------------------------


def rewritten(folder: Path, to: Path, change=lambda name, tensor: {name: tensor}, **settings: Any) -> Path:
    """A copy of a folder with other names, tensors or settings; a setting of ... is left out."""
    to.mkdir(parents=True)
    config = {**json.loads((folder / "config.json").read_text()), **settings}
    (to / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        tensors |= change(name, tensor)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, to / "model.safetensors")
    return to


def same_model(one: Path, other: Path) -> bool:
    a, b = (load_model(folder) for folder in (one, other))
    return a.config == b.config and all(
        torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True)
    )


def test_names_without_prefix_and_masks_kept_as_tensors(reference, tmp_path):
    """As in the file of the first GPT-2 on the hub."""

    def bare(name, tensor):
        mask = {name.removeprefix("transformer.").replace("ln_1.weight", "attn.bias"): torch.ones(1, 1, T, T)}
        return {name.removeprefix("transformer."): tensor} | (mask if "ln_1.weight" in name else {})

    folder = reference("gpt2")[1]
    assert same_model(rewritten(folder, tmp_path / "bare", bare), folder)


def test_old_names_of_norms_and_parts_for_other_tasks(reference, tmp_path):
    """As in the first BERT on the hub."""

    def old(name, tensor):
        more = {"bert.pooler.dense.weight": torch.ones(4), "cls.seq_relationship.bias": torch.ones(2)}
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        return {name: tensor} | more

    folder = reference("bert")[1]
    assert same_model(rewritten(folder, tmp_path / "old", old), folder)


def test_a_copy_of_the_embedding_as_head_is_taken_if_it_is_one(reference, tmp_path):
    def both(name, tensor):
        return {name: tensor} | ({"lm_head.weight": tensor.clone()} if "wte" in name else {})

    def other(name, tensor):
        return {name: tensor} | ({"lm_head.weight": tensor + 1} if "wte" in name else {})

    folder = reference("gpt2")[1]
    assert same_model(rewritten(folder, tmp_path / "both", both), folder)
    with pytest.raises(ValueError, match="lm_head.weight and wte.weight are one and the same"):
        load_model(rewritten(folder, tmp_path / "other", other))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "llama 3",
            {"rope_parameters": ..., "rope_theta": 300.0, "rope_scaling": {**LLAMA3, "rope_theta": ...}},
        ),
        ("llama stretched", {"rope_parameters": ..., "rope_scaling": {"type": "linear", "factor": 4.0}}),
        ("gpt_neox", {"rope_parameters": ..., "rotary_emb_base": 500, "rotary_pct": 0.5}),
    ],
)
def test_old_spellings_of_rotary_settings(reference, tmp_path, name, settings):
    if "rope_scaling" in settings:
        settings["rope_scaling"] = {k: v for k, v in settings["rope_scaling"].items() if v is not ...}
    folder = reference(name)[1]
    assert same_model(rewritten(folder, tmp_path / "old", **settings), folder)


def test_the_old_name_of_neoxs_head(reference, tmp_path):
    def old(name, tensor):
        return {"embed_out.weight" if name == "lm_head.weight" else name: tensor}

    folder = reference("gpt_neox")[1]
    assert same_model(rewritten(folder, tmp_path / "old", old), folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_widths_are_read_as_float32(reference, tmp_path, dtype):
    folder = rewritten(reference("qwen2")[1], tmp_path / "x", lambda name, tensor: {name: tensor.to(dtype)})
    expected = load_file(folder / "model.safetensors")["model.embed_tokens.weight"].float()
    weight = load_model(folder).embedding.weight
    assert weight.dtype == torch.float32 and torch.equal(weight, expected)


def test_shards_give_the_same_model(reference, tmp_path):
    theirs, folder = reference("llama")
    theirs.save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 2
    assert same_model(tmp_path / "parts", folder)


def test_links_within_the_hubs_own_cache_are_followed(reference, tmp_path):
    folder = reference("gpt2")[1]
    cached = tmp_path / "models--someone--small"
    (cached / "blobs").mkdir(parents=True)
    (cached / "snapshots" / "1a").mkdir(parents=True)
    for name, blob in (("config.json", "aa"), ("model.safetensors", "bb")):
        (cached / "blobs" / blob).write_bytes((folder / name).read_bytes())
        (cached / "snapshots" / "1a" / name).symlink_to(Path("../../blobs") / blob)
    assert same_model(cached / "snapshots" / "1a", folder)


def test_rotary_contexts_are_cut_to_what_fits(reference, tmp_path):
    folder = rewritten(reference("llama")[1], tmp_path / "long", max_position_embeddings=131072)
    assert look(folder).config.context_length == LONGEST
    assert look(folder, context_length=8).config.context_length == 8
    model, ids = load_model(folder, context_length=8), some_ids(1, 8)
    assert far(model(ids), load_model(folder)(ids)) == 0
    with pytest.raises(ValueError, match="context_length is 8"):
        model(some_ids(1, 9))


def test_look_tells_the_size_before_loading(reference):
    theirs, folder = reference("gpt2")
    found = look(folder)
    n = sum(weight.numel() for weight in theirs.parameters())  # a tied head counts once there too
    assert found.n_weights == n == load_model(folder).n_parameters()
    assert found.memory == 4 * n and found.n_bytes == (folder / "model.safetensors").stat().st_size
    assert found.kind == "gpt2"


@pytest.mark.parametrize("name", CASES)
def test_shapes_are_those_of_the_model(reference, name):
    config = look(reference(name)[1]).config
    expected = {key: tuple(value.shape) for key, value in model_tensors(Transformer(config)).items()}
    assert our_shapes(config) == expected


@pytest.mark.parametrize("name", ["llama 3", "qwen2 sliding", "roberta"])
def test_a_loaded_model_survives_our_own_checkpoints(reference, tmp_path, name):
    model = load_model(reference(name)[1])
    config = ModelConfig.from_json(json.loads(json.dumps(model.config.to_json())))
    assert config == model.config
    wide = ModelConfig.from_json({**config.to_json(), "vocab_size": 256 + (config.objective == "mlm")})
    kept = Transformer(wide)
    save_checkpoint(tmp_path / "kept", Checkpoint(kept, byte_tokenizer()))
    back = load_checkpoint(tmp_path / "kept").model
    ids = some_ids(1, T)
    assert back.config == wide and torch.equal(back(ids), kept(ids))


# -- what is refused -----------------------------------------------------------------------------------------


def made_by_hand(folder: Path, *, drop: str = "", tensors: Any = None, **settings: Any) -> Path:
    """A GPT-2 of one block, width 8 and 11 ids, written without any of the code under test."""
    folder.mkdir(parents=True)
    shapes = {"wte.weight": (11, 8), "wpe.weight": (6, 8), "ln_f.weight": (8,), "ln_f.bias": (8,)}
    for name, shape in {
        "ln_1.weight": (8,), "ln_1.bias": (8,), "ln_2.weight": (8,), "ln_2.bias": (8,),
        "attn.c_attn.weight": (8, 24), "attn.c_attn.bias": (24,),
        "attn.c_proj.weight": (8, 8), "attn.c_proj.bias": (8,),
        "mlp.c_fc.weight": (8, 32), "mlp.c_fc.bias": (32,),
        "mlp.c_proj.weight": (32, 8), "mlp.c_proj.bias": (8,),
    }.items():  # fmt: skip
        shapes[f"h.0.{name}"] = shape
    weights = {f"transformer.{n}": torch.ones(s) for n, s in shapes.items() if n != drop}
    config = {
        "model_type": "gpt2", "vocab_size": 11, "n_positions": 6, "n_embd": 8, "n_layer": 1, "n_head": 2,
    }  # fmt: skip
    config |= settings
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))
    save_file(weights | (tensors or {}), folder / "model.safetensors")
    return folder


def refused(folder: Path) -> str:
    """The sentence with which both `look` and `load_model` refuse."""
    sentences = []
    for read in (load_model, look):
        with pytest.raises(ValueError) as refusal:
            read(folder)
        sentences.append(str(refusal.value))
    assert sentences[0] == sentences[1] and sentences[0].endswith(".") and "\n" not in sentences[0]
    return sentences[0]


def test_what_is_made_by_hand_loads(tmp_path):
    """Else the refusals below would prove nothing."""
    folder = made_by_hand(tmp_path / "x")
    assert load_model(folder)(torch.tensor([[1, 2, 3]])).shape == (1, 3, 11)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"model_type": "t5"}, "model_type 't5', which Loupe can't load. It knows gpt2, llama, mistral"),
        ({"model_type": ...}, "model_type None"),
        ({"model_type": ["gpt2"]}, "model_type ['gpt2']"),
        ({"auto_map": {"AutoModel": "evil.py"}}, "needs a program of its own"),
        ({"quantization_config": {"bits": 4}}, "weights are packed"),
        ({"n_embd": ...}, "doesn't say n_embd"),
        ({"n_embd": "8"}, "n_embd '8'; it must be a whole number"),
        ({"n_layer": -1}, "n_layer -1; it must be a whole number from 0"),
        ({"n_layer": 10**12}, "n_layer 1000000000000; it must be"),
        ({"n_layer": 900}, "900 blocks, but the files hold only 16 weights"),
        ({"n_layer": 5000}, "n_layer can be at most 1,000, not 5,000"),
        ({"n_layer": 0}, "n_layer must be a whole number of at least 1"),
        (
            {"vocab_size": 9_000_000},
            "wte.weight has the shape (11, 8), but config.json asks for (9000000, 8)",
        ),
        ({"vocab_size": 90_000_000}, "vocab_size can be at most 20,000,000, not 90,000,000"),
        ({"n_head": 3}, "d_model 8 is not divisible by n_head 3"),
        ({"activation_function": "relu"}, "activation_function 'relu', which Loupe can't compute"),
        ({"layer_norm_epsilon": "small"}, "layer_norm_epsilon 'small'; it must be a number"),
        ({"layer_norm_epsilon": -1.0}, "norm_eps must be a number"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx True"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings 'yes'; it must be true or false"),
        ({"tie_word_embeddings": False}, "lack weights that this model needs: lm_head.weight"),
        ({"n_layer": 2}, "lack weights that this model needs: h.1.ln_1.weight, h.1.ln_1.bias"),
        ({"n_positions": 7}, "wpe.weight has the shape (6, 8), but config.json asks for (7, 8)"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_are_wrong_or_beyond_us(tmp_path, settings, sentence):
    assert sentence in refused(made_by_hand(tmp_path / "x", **settings))


@pytest.mark.parametrize("kind", ["longrope", "yarn2"])
def test_other_rules_of_stretching_are_refused(tmp_path, kind):
    settings = {**SIZES, "model_type": "llama", "rope_scaling": {"type": kind, "factor": 2.0}}
    assert f"by the rule {kind}" in refused(made_by_hand(tmp_path / "x", **settings))


def test_positions_that_turn_by_block_are_refused(tmp_path):
    rope = {"full_attention": {"rope_theta": 1e4}, "sliding_attention": {"rope_theta": 1e6}}
    settings = {**SIZES, "model_type": "llama", "rope_parameters": rope}
    assert "differently from block to block" in refused(made_by_hand(tmp_path / "x", **settings))


def test_weights_that_are_missing_or_left_over_are_named(tmp_path):
    assert "needs: h.0.mlp.c_fc.bias." in refused(made_by_hand(tmp_path / "a", drop="h.0.mlp.c_fc.bias"))
    more = {"transformer.h.1.ln_1.weight": torch.ones(8), "score.weight": torch.ones(2, 8)}
    assert "doesn't have: h.1.ln_1.weight, score.weight." in refused(
        made_by_hand(tmp_path / "b", tensors=more)
    )
    twice = {"wte.weight": torch.ones(11, 8)}
    assert "under two names" in refused(made_by_hand(tmp_path / "c", tensors=twice))


def test_numbers_that_are_none(tmp_path):
    for value, sentence in ((float("nan"), "not finite"), (float("inf"), "not finite")):
        odd = {"transformer.ln_f.bias": torch.full((8,), value)}
        with pytest.raises(ValueError, match=f"ln_f.bias holds numbers that are {sentence}"):
            load_model(made_by_hand(tmp_path / str(value), tensors=odd))
    whole = {"transformer.ln_f.bias": torch.ones(8, dtype=torch.int8)}
    with pytest.raises(ValueError, match="stored as I8; Loupe reads"):
        load_model(made_by_hand(tmp_path / "whole", tensors=whole))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "tf_model.h5"])
def test_pickles_and_other_formats_are_not_opened(tmp_path, name):
    folder = made_by_hand(tmp_path / "x")
    (folder / "model.safetensors").rename(folder / name)
    assert f"{name} is in a format that could run programs" in refused(folder)


def test_a_pickle_beside_the_weights_is_ignored(tmp_path):
    folder = made_by_hand(tmp_path / "x")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n.")
    assert load_model(folder).config.n_layer == 1


def sharded(folder: Path, shard: str = "model-00001-of-00001.safetensors", **more: str) -> Path:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    names = load_file(folder / "model-00001-of-00001.safetensors")
    index = {"weight_map": {**dict.fromkeys(names, shard), **more}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


@pytest.mark.parametrize(
    "shard",
    [
        "../model-00001-of-00001.safetensors",
        "/etc/passwd",
        "a/b.safetensors",
        "..\\x.safetensors",
        "x.bin",
        "",
    ],
)
def test_a_shard_name_that_is_a_path_is_refused(tmp_path, shard):
    (tmp_path / "model-00001-of-00001.safetensors").write_bytes(b"elsewhere")
    assert "not the plain name" in refused(sharded(made_by_hand(tmp_path / "x"), shard))


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    folder = made_by_hand(tmp_path / "x")
    (folder / "model.safetensors").rename(tmp_path / "elsewhere.safetensors")
    (folder / "model.safetensors").symlink_to(tmp_path / "elsewhere.safetensors")
    assert "model.safetensors leads out of the folder" in refused(folder)
    other = sharded(made_by_hand(tmp_path / "y"))
    (other / "model-00001-of-00001.safetensors").rename(tmp_path / "part")
    os.symlink(tmp_path / "part", other / "model-00001-of-00001.safetensors")
    assert "leads out of the folder" in refused(other)
    third = made_by_hand(tmp_path / "z")
    (third / "config.json").rename(tmp_path / "config")
    (third / "config.json").symlink_to(tmp_path / "config")
    assert "config.json leads out of the folder" in refused(third)


def test_an_index_that_lies_is_refused(tmp_path):
    shard = "model-00001-of-00001.safetensors"
    more = sharded(made_by_hand(tmp_path / "a"), **{"transformer.h.1.ln_1.weight": shard})
    assert "index says that transformer.h.1.ln_1.weight is in" in refused(more)
    fewer = sharded(made_by_hand(tmp_path / "b"))
    index = json.loads((fewer / "model.safetensors.index.json").read_text())
    del index["weight_map"]["transformer.wte.weight"]
    (fewer / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "holds transformer.wte.weight, of which its index knows nothing" in refused(fewer)
    absent = sharded(made_by_hand(tmp_path / "c"), **{"x": "model-00002-of-00002.safetensors"})
    assert "no file model-00002-of-00002.safetensors" in refused(absent)
    for broken in ("[]", "{}", '{"weight_map": 3}', "{"):
        (absent / "model.safetensors.index.json").write_text(broken)
        assert "is damaged" in refused(absent)


def test_damaged_and_missing_files(tmp_path):
    assert "no folder nothing" in refused(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert "no file config.json" in refused(tmp_path / "empty")
    folder = made_by_hand(tmp_path / "x")
    weights, config = (folder / "model.safetensors").read_bytes(), (folder / "config.json").read_bytes()
    for broken in (b"", weights[:-1], weights[:5], b"\xff" * 8 + weights[8:], weights + b"x"):
        (folder / "model.safetensors").write_bytes(broken)
        assert "damaged or no safetensors file" in refused(folder)
    (folder / "model.safetensors").write_bytes(weights)
    for broken in (b"", config[:-1], b"[1]", b"[" * 100_000, b"\xff\xfe"):
        (folder / "config.json").write_bytes(broken)
        assert "does not hold a JSON object" in refused(folder)
    (folder / "model.safetensors").unlink()
    (folder / "config.json").write_bytes(config)
    assert "has no weights" in refused(folder)


def test_a_model_without_a_tokenizer_says_so(tmp_path):
    with pytest.raises(ValueError, match="has no tokenizer.json"):
        load_folder(made_by_hand(tmp_path / "x"))


# -- the switches of published models ------------------------------------------------------------------------


def test_our_own_settings_are_written_as_before():
    """Hashes of runs and of shipped models are made from them."""
    assert not set(ModelConfig(65).to_json()) & set(BORROWED)
    told = ModelConfig(65, rotary=Rotary(500.0), windows=(3, 0, 0, 0), parallel=True).to_json()
    assert set(told) & set(BORROWED) == {"rotary", "windows", "parallel"}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"windows": (1, 2)}, "each of the 4 blocks"),
        ({"windows": (1, 2, 3, -1)}, "each of the 4 blocks"),
        ({"parallel": True, "norm_place": "post"}, "parallel needs norm_place pre"),
        ({"head_width": 0}, "head_width must be a whole number"),
        ({"norm_eps": float("nan")}, "norm_eps must be a number"),
        ({"score_scale": "big"}, "score_scale must be a number"),
        ({"qkv_bias": 1}, "qkv_bias must be true or false"),
        ({"head_bias": None}, "head_bias must be true or false"),
        ({"positions": "rotary", "rotary": Rotary(share=0.1)}, "must be even; it is 3"),
    ],
    ids=str,
)
def test_borrowed_switches_are_checked(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        ModelConfig(65, **settings)


def test_a_rotary_rule_needs_its_bounds_in_order():
    with pytest.raises(ValueError, match="low must be below high"):
        Rotary(low=4.0, high=4.0, first_length=16)
    with pytest.raises(ValueError, match="slowed from pair to pair need first_length and low above 0"):
        Rotary(low=1.0, high=4.0, ramp="whole")
    with pytest.raises(ValueError, match="base above 1"):
        Rotary(1.0, low=1.0, high=4.0, first_length=16, ramp="pairs")
    with pytest.raises(ValueError, match="Rotary has no setting turn"):
        ModelConfig.from_json({"vocab_size": 5, "rotary": {"turn": 1}})


def test_loaded_weights_need_no_first_ones(untouched_dice):
    config = ModelConfig(11, 6, 1, 2, 8)
    assert list(Transformer(config, initial=False).state_dict()) == list(Transformer(config).state_dict())
