"""What models want around a text: the ids of transformers' tokenizers, in traces, windows and scores."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from engine.hub import load_folder, load_model
from engine.hub_families import FAMILIES, shape_of
from engine.hub_frame import frame_of
from engine.hub_tokenizer import MASKED, load_tokenizer
from engine.metrics import IGNORED, log_softmax, next_token_scores, score
from engine.tokenizers import Tokenizer, byte_tokenizer, char_tokenizer
from engine.tokens import Token, whole_graphemes
from engine.trace import trace
from engine.windows import context_sizes, cut
from tests import hub_folders
from tests.engine import hub_reference
from tests.engine.hub_vocabularies import tokenizer_json

pytestmark = pytest.mark.usefixtures("no_network")
ROWS = 500
FAMILY = {  # case of hub_reference: the kind of its tokenizer, and what stands around a text
    "gpt2": ("gpt2", [], []),
    "gpt_neox": ("gpt2", [], []),
    "gpt_neo": ("gpt2", [], []),
    "qwen2": ("nfkc", [], []),
    "qwen3": ("gpt2", [], []),
    "llama": ("sentencepiece", [1], []),
    "mistral": ("metaspace", [1], []),
    "bert": ("wordpiece", [2], [3]),
    "distilbert": ("wordpiece cased", [2], [3]),
    "roberta": ("roberta", [0], [2]),
}
TEXTS = ["Héllo wörld, jumping!", "hello 猫😀", "a"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Name of a family -> transformers' model and tokenizer, and the folder with both."""
    make = hub_reference.maker(tmp_path_factory)

    def made(name: str) -> tuple[Any, Any, Any]:
        model, folder = make(name, vocab_size=ROWS)
        kind = FAMILY[name][0]
        (folder / "tokenizer.json").write_text(tokenizer_json(kind))
        package = pytest.importorskip("tokenizers", reason="see requirements-models.txt")
        cutter = package.Tokenizer.from_file(str(folder / "tokenizer.json"))
        return model, hub_reference.transformers().PreTrainedTokenizerFast(tokenizer_object=cutter), folder

    return made


# -- with a model and its own tokenizer ----------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILY)
@torch.no_grad()
def test_a_text_is_read_as_transformers_reads_it(pair, name):
    model, reference, folder = pair(name)
    ours = load_folder(folder)
    _, before, after = FAMILY[name]
    assert ours.tokenizer.frame == (before, after)
    for text in TEXTS:
        given = reference(text, return_tensors="pt", return_token_type_ids=True)
        assert not given["token_type_ids"].any()  # one text is of type 0 all along
        theirs = model(given["input_ids"], output_attentions=True)
        seen = trace(ours.model, ours.tokenizer, text)
        assert seen.ids.tolist() == given["input_ids"][0].tolist()
        assert np.abs(seen.logits - theirs.logits[0].numpy()).max() <= 1e-5
        for mine, other in zip(seen.attentions, theirs.attentions, strict=True):
            assert np.abs(mine - other[0].numpy()).max() <= 1e-5
        inner = [seen.tokens[i] for i in seen.inner]
        assert inner == ours.tokenizer.tokens(text)
        around = [t for t in seen.tokens if t.id in (*before, *after) and t.byte_start == t.byte_end]
        assert [t.id for t in around] == before + after and len(seen.tokens) == len(inner) + len(around)


def test_every_family_of_the_issue_is_here():
    assert set(FAMILY) == set(FAMILIES)
    masked = {name for name, (_, end, _) in hub_reference.CASES.items() if end == "ForMaskedLM"}
    assert {name for name in masked if name in FAMILIES} == set(MASKED)


@pytest.mark.parametrize("name", MASKED)
@torch.no_grad()
def test_a_hidden_token_is_filled_as_transformers_does(pair, name):
    model, reference, folder = pair(name)
    ours, text = load_folder(folder), "hello world, jumping"
    tokens = ours.tokenizer.ending(text, 99)[0]
    seen = trace(ours.model, ours.tokenizer, text, hidden=[2])
    ids = reference(text, return_tensors="pt")["input_ids"]
    ids[0, 2] = ours.tokenizer.mask_id
    assert np.abs(seen.logits - model(ids).logits[0].numpy()).max() <= 1e-5
    assert seen.scored.tolist() == [tokens[2].id if i == 2 else IGNORED for i in range(len(tokens))]
    for place in (0, len(tokens) - 1, -1, len(tokens)):
        with pytest.raises(ValueError, match=f"must lie between 1 and {len(tokens) - 2}, not"):
            trace(ours.model, ours.tokenizer, text, hidden=[place])


# -- as tokens of no width -----------------------------------------------------------------------------------


def test_they_lie_at_the_ends_of_what_is_read(pair):
    tokenizer = load_folder(pair("bert")[2]).tokenizer
    text = "Héllo wörld"
    first, *inner, last = tokenizer.ending(text, 99)[0]
    assert first == Token(2, b"[CLS]", "[CLS]", 0, 0, 0)
    assert last == Token(3, b"[SEP]", "[SEP]", 11, 13, 13)
    assert inner == tokenizer.tokens(text)
    groups = whole_graphemes([first, *inner, last], text)
    assert groups[0] == [first] and groups[-1] == [last]
    assert tokenizer.inner(len(inner) + 2) == range(1, len(inner) + 1)


@pytest.mark.parametrize("end", ["o", "é", "é\u0301", "😀", "👍🏽", " "])
def test_the_last_one_stands_behind_the_last_character(tmp_path, end):
    tokenizer = load_tokenizer(hub_folders.write_roberta(tmp_path / "x"), ROWS)
    text = "hello" + end
    tokens, _ = tokenizer.ending(text, 99)
    assert tokens[-1].start == len(text) and tokens[-1].byte_start == len(text.encode())
    groups = whole_graphemes(tokens, text)
    assert groups[-1] == [tokens[-1]] and [t for group in groups for t in group] == tokens


def test_they_count_in_what_is_read_at_once(tmp_path):
    loaded = load_folder(hub_folders.write_bert(tmp_path / "bert", context_length=8))
    text = "one two three four five six seven eight"
    tokens = loaded.tokenizer.tokens(text)
    seen = trace(loaded.model, loaded.tokenizer, text)
    assert len(tokens) > 8 and len(seen.tokens) == 8 and seen.unused == len(tokens) - 6
    assert [seen.tokens[i] for i in seen.inner] == tokens[-6:]
    assert seen.tokens[0].byte_start == seen.tokens[0].byte_end == tokens[-6].byte_start
    shorter = trace(loaded.model, loaded.tokenizer, text, most=5)
    assert [shorter.tokens[i] for i in shorter.inner] == tokens[-3:] and shorter.frame == (1, 1)


def test_no_text_is_no_tokens(tmp_path):
    loaded = load_folder(hub_folders.write_bert(tmp_path / "bert"))
    assert loaded.tokenizer.ending("", 9) == ([], 0)
    with pytest.raises(ValueError, match="nothing to look at"):
        trace(loaded.model, loaded.tokenizer, "")


@pytest.mark.parametrize("tokenizer", [byte_tokenizer(), char_tokenizer("ab ")], ids=["bytes", "characters"])
def test_ours_want_nothing(tokenizer: Tokenizer):
    assert tokenizer.frame == ([], []) and tokenizer.inner(3) == range(3)
    tokens = tokenizer.tokens("ab a")
    assert tokenizer.framed(tokens) == tokens == tokenizer.ending("ab a", 99)[0]


# -- scores of a causal model --------------------------------------------------------------------------------


def test_the_first_token_is_scored_from_what_begins_a_text(pair):
    loaded = load_folder(pair("llama")[2])
    text = "hello world"
    seen = trace(loaded.model, loaded.tokenizer, text)
    ids = loaded.tokenizer.encode(text)
    assert seen.ids.tolist() == [1, *ids] and seen.scored.tolist() == [*ids, IGNORED]
    assert seen.scored_bytes == len(text.encode())
    found = score(loaded.model, ids, before=[1])
    assert np.allclose(found.log_probs, next_token_scores(seen.logits, [1, *ids]).log_probs, atol=1e-5)
    assert found.positions.tolist() == list(range(len(ids)))
    assert found.contexts.tolist() == list(range(1, len(ids) + 1))


@pytest.mark.parametrize("stride", [1, 3, 7, 8])
@torch.no_grad()
def test_every_window_begins_with_it(pair, stride):
    """Each score worked out alone: the model reads the beginning, then the last tokens that fit."""
    model = load_model(pair("llama")[2], context_length=8)
    dice = torch.Generator().manual_seed(3)
    ids = torch.randint(3, ROWS, (30,), generator=dice).tolist()
    found = score(model, ids, stride=stride, before=[1])
    assert found.positions.tolist() == list(range(30)) and max(found.contexts) == 8
    for position, context, log_prob in zip(found.positions, found.contexts, found.log_probs, strict=True):
        row = [1, *ids[position - context + 1 : position]]
        expected = log_softmax(model(torch.tensor([row]))[0, -1].numpy())[ids[position]]
        assert len(row) == context and abs(log_prob - expected) <= 1e-5
    assert min(found.contexts[8:]) >= min(8, 8 - stride + 1)


def test_windows_with_and_without_a_frame():
    assert [w[:3] for w in cut(8, 4, 2)] == [(0, 4, 4), (2, 6, 2), (4, 7, 1)]
    assert context_sizes(cut(8, 4, 2, 1)).tolist() == [1, 2, 3, 4, 3, 4, 3]
    assert cut(1, 4, 2, 1) == [] and [w.fresh for w in cut(2, 4, 2, 1)] == [1]


# -- how tokenizer.json says it ------------------------------------------------------------------------------

SPECIAL = {name: {"id": name, "ids": [i], "tokens": [name]} for name, i in (("[CLS]", 5), ("[SEP]", 6))}
TEXT_ITSELF = {"Sequence": {"id": "A", "type_id": 0}}


def special(name: str, kind: int = 0) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": kind}}


def template(*single: dict[str, Any]) -> dict[str, Any]:
    return {"type": "TemplateProcessing", "single": list(single), "pair": [], "special_tokens": SPECIAL}


BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False}
BERT = {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}


@pytest.mark.parametrize(
    ("processor", "frame"),
    [
        (None, ([], [])),
        (BYTES, ([], [])),
        (BERT, ([101], [102])),
        (
            {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]},
            ([0], [2]),
        ),
        (template(special("[CLS]"), TEXT_ITSELF, special("[SEP]")), ([5], [6])),
        (template(TEXT_ITSELF), ([], [])),
        (template(special("[CLS]"), special("[SEP]"), TEXT_ITSELF), ([5, 6], [])),
        ({"type": "Sequence", "processors": [BYTES, template(special("[CLS]"), TEXT_ITSELF)]}, ([5], [])),
    ],
    ids=range(8),
)
def test_frames(processor, frame):
    assert frame_of(processor, masked=True) == frame
    assert frame_of(processor, masked=False) == (frame[0], [])  # a causal text goes on


@pytest.mark.parametrize(
    ("processor", "sentence"),
    [
        (template(special("[CLS]", 1), TEXT_ITSELF), "the type 1; .* type 0"),
        (template({"Sequence": {"id": "A", "type_id": 1}}), "the type 1"),
        (template(special("[CLS]")), "by a rule that Loupe can't follow exactly"),
        (template(TEXT_ITSELF, TEXT_ITSELF), "by a rule that Loupe can't follow exactly"),
        ({"type": "Sequence", "processors": [BERT, BERT]}, r"\(Sequence\)"),
        ({"type": "Later"}, r"\(Later\)"),
        ({"type": "BertProcessing"}, "is damaged"),
        ({"type": "BertProcessing", "sep": ["x", "y"], "cls": ["x", 1]}, "is damaged"),
        (template(special("[X]"), TEXT_ITSELF), "is damaged"),
        ({}, "is damaged"),
        ("x", "is damaged"),
    ],
    ids=range(11),
)
def test_frames_that_are_refused(processor, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        frame_of(processor, masked=True)
    assert str(refusal.value).endswith(".")


def test_a_masked_model_without_a_mask_and_a_frame_without_a_token(tmp_path):
    folder = hub_folders.write_bert(tmp_path / "bert")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["added_tokens"] = [one for one in content["added_tokens"] if one["content"] != "[MASK]"]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="no token that hides another one"):
        load_folder(folder)
    other = hub_folders.write_roberta(tmp_path / "roberta")
    content = json.loads((other / "tokenizer.json").read_text())
    content["post_processor"]["cls"] = ["<s>", 450]
    (other / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="puts the number 450 around a text"):
        load_tokenizer(other, ROWS)


@pytest.mark.parametrize("name", MASKED)
def test_an_encoder_without_its_head_is_refused_in_a_sentence_that_says_so(tmp_path, name):
    """As sentence encoders are published: embeddings and blocks only."""
    package = hub_reference.transformers()
    begin, _, settings = hub_reference.CASES[name]
    with torch.random.fork_rng():
        model = getattr(package, f"{begin}Model")(getattr(package, f"{begin}Config")(**settings))
    model.save_pretrained(tmp_path / "encoder")
    with pytest.raises(ValueError, match="an encoder without the head that predicts hidden tokens"):
        load_model(tmp_path / "encoder")


def test_shapes_tell_which_models_are_masked():
    for name in FAMILIES:
        begin, _, settings = hub_reference.CASES[name]
        shape = shape_of({"model_type": name, **settings})
        assert (shape.objective == "mlm") == (name in MASKED)
