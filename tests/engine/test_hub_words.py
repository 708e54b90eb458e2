"""WordPiece, Unigram and what else tiktoken can't run: ids, and positions in the text as typed."""

import json
import random
import subprocess
import sys
import unicodedata
from typing import Any

import pytest
import torch

from engine import hub_words
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.config import ModelConfig
from engine.hub_bpe import BeyondTiktoken
from engine.hub_tokenizer import HubTokenizer, open_tokenizer
from engine.hub_words import WordTokenizer
from engine.model import Transformer
from engine.tokenizers import Tokenizer, tokenizer_from_json
from tests.engine.hub_vocabularies import KINDS, package, tokenizer_json
from tests.engine.test_hub_tokenizer import HARD

pytestmark = pytest.mark.usefixtures("no_network")
ROWS = 700
MORE = [
    "Héllo  wörld! ",
    "e\u0301a\u0308o cafe\u0301",
    "a\x00b\x01 c\x7f\u200bd\ufeff",
    "ﬁne ½ ﷺ ㎏ Å",
    "  hi \t\n ",
    "İstanbul ẞ ŉ",
    "漢字kanji漢字 カタカナ 한국어",
    "[MASK] [CLS]x <s>y</s> <unk> [UNK]",
    "don't; can't—won't…  (really?!)",
    "x" * 150 + " unwanted " + "y" * 99,
    "👩‍👩‍👧‍👦 🇪🇸🇪🇸 👍🏽",
    "\u0301 \u0301\u0301a",
    "▁under ▁ score<0x41>",
    "##ing ing",
]
TEXTS = [*HARD, *MORE]


@pytest.fixture(scope="module")
def opened() -> dict[str, tuple[Tokenizer, Any]]:
    """Kind -> ours, and the package's own object."""
    tk = package()
    return {
        kind: (
            open_tokenizer(kind, json.loads(tokenizer_json(kind)), ROWS),
            tk.Tokenizer.from_str(tokenizer_json(kind)),
        )
        for kind in KINDS
    }


def repaired(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def ids_of(tokenizer: Tokenizer, text: str, *, special: bool = False) -> list[int]:
    """The ids of a text; [] where the tokenizer says that nothing is left of it."""
    try:
        return tokenizer.encode(text, special=special)
    except ValueError as error:
        assert text and "leaves nothing of this text" in str(error)
        return []


def random_texts(n: int) -> list[str]:
    dice = random.Random(5)
    letters = "aethsS  \n\t\u00a0019½é\u0301猫😀\u200d🇪-.▁#[]<>ﬁ\x00Å"
    found = ["".join(dice.choice(letters) for _ in range(dice.randint(1, 30))) for _ in range(n)]
    anything = (*range(0xD800), *range(0xE000, 0x110000))
    return found + ["".join(map(chr, dice.choices(anything, k=6))) for _ in range(n)]


# -- ids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_tiktoken_can_not_run_these(opened, kind):
    assert type(opened[kind][0]) is WordTokenizer
    with pytest.raises(BeyondTiktoken):
        HubTokenizer(kind, json.loads(tokenizer_json(kind)), ROWS)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_packages(opened, kind):
    ours, theirs = opened[kind]
    for text in (*TEXTS, *random_texts(150)):
        wanted = theirs.encode(repaired(text), add_special_tokens=False).ids
        assert ids_of(ours, text, special=True) == wanted, repr(text[:60])


@pytest.mark.parametrize("kind", KINDS)
def test_a_control_token_in_a_text_is_plain_text_unless_asked_for(opened, kind):
    ours, theirs = opened[kind]
    control = {one["content"]: one["id"] for one in json.loads(tokenizer_json(kind))["added_tokens"]}
    assert control
    for spelling, i in control.items():
        assert i in ours.encode(f"a {spelling} b", special=True)
        assert i not in ours.encode(f"a {spelling} b") or spelling in ("[UNK]", "<unk>")
    assert ours.control_ids == {i for text, i in control.items() if text not in ("[UNK]", unknown(kind))}
    plain = "no control token here"
    assert ours.encode(plain) == ours.encode(plain, special=True)


def unknown(kind: str) -> str:
    return str(json.loads(tokenizer_json(kind))["model"].get("unk_token"))


def written_by_hand(text: str, vocab: dict[str, int]) -> list[int]:
    """WordPiece as Devlin et al. 2018 published it: words, then the longest piece that fits, or [UNK]."""
    words, word = [], ""
    for c in text:
        code, kind = ord(c), unicodedata.category(c)
        if code in (0, 0xFFFD) or (kind.startswith("C") and c not in "\t\n\r"):
            continue
        cjk = any(a <= code <= b for a, b in ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF),
                  (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF),
                  (0x2F800, 0x2FA1F)))  # fmt: skip
        mark = 33 <= code <= 126 and not c.isalnum() or kind.startswith("P")
        if c in " \t\n\r" or kind == "Zs" or cjk or mark:
            words += [word] * bool(word) + [c] * (cjk or mark)
            word = ""
        else:
            word += c
    ids = []
    for whole in [*words, word] if word else words:
        letters = [c for c in unicodedata.normalize("NFD", whole) if unicodedata.category(c) != "Mn"]
        plain = "".join(letters).lower()
        ids += _pieces(plain, vocab) if plain else []
    return ids


def _pieces(word: str, vocab: dict[str, int]) -> list[int]:
    found, at = [], 0
    while at < len(word) and len(word) <= 100:
        ends = (end for end in range(len(word), at, -1) if ("##" * bool(at) + word[at:end]) in vocab)
        if not (end := next(ends, 0)):
            break
        found.append(vocab["##" * bool(at) + word[at:end]])
        at = end
    return found if at == len(word) else [vocab["[UNK]"]]


def test_wordpiece_is_what_was_published(opened):
    ours = opened["wordpiece"][0]
    vocab = json.loads(tokenizer_json("wordpiece"))["model"]["vocab"]
    dice = random.Random(8)
    letters = "aeionrstHW  \n\t\u00a0,.'-12é\u0301猫字\x01\u200b½"
    texts = ["".join(dice.choice(letters) for _ in range(dice.randint(1, 25))) for _ in range(400)]
    texts += ["Unwanted, RUNNING! jumping", "héllo  wörld", "x" * 101, "the" * 33, "猫が座っている", "a\x00b"]
    for text in texts:
        assert ids_of(ours, text) == written_by_hand(text, vocab), repr(text)
    assert len(set(ours.encode("".join(texts)))) > 30


def test_bert_ids_equal_transformers(opened):
    from tests.engine.hub_reference import transformers

    reference = transformers().PreTrainedTokenizerFast(tokenizer_object=opened["wordpiece"][1])
    ours = opened["wordpiece"][0]
    for text in map(repaired, TEXTS):
        assert ids_of(ours, text, special=True) == reference(text, add_special_tokens=False)["input_ids"]


# -- where tokens lie ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_hold_every_byte_of_the_text_once(opened, kind):
    ours = opened[kind][0]
    for text in map(repaired, (*TEXTS, *random_texts(150))):
        tokens = ours.tokens(text)
        assert [token.id for token in tokens] == ids_of(ours, text)
        if not tokens:
            continue
        at = 0
        for token in tokens:
            assert token.byte_start == at <= token.byte_end
            shown = text.encode()[token.byte_start : token.byte_end]
            assert token.data == (shown or ours.token_bytes(token.id))
            at = token.byte_end
        assert at == len(text.encode()), repr(text)
        segments = ours.segments(text)
        assert [token for segment in segments for token in segment] == tokens


@pytest.mark.parametrize("kind", KINDS)
def test_the_start_is_the_character_of_the_first_byte(opened, kind):
    ours = opened[kind][0]
    for text in map(repaired, (*MORE, *random_texts(60))):
        for token in ours.tokens(text):
            before = text[: token.start].encode()
            width = len(text[token.start : token.start + 1].encode())
            assert len(before) <= token.byte_start < len(before) + max(1, width)


def test_a_piece_lies_on_the_letters_that_it_spells(opened):
    """Lower-cased, without accents and blanks, the text under a piece is its spelling."""
    ours, theirs = opened["wordpiece"]
    checked = 0
    for text in map(repaired, (*TEXTS, *random_texts(150))):
        for token in ours.tokens(text):
            spelling = ours.token_bytes(token.id).decode()
            if spelling != "[UNK]":
                assert theirs.normalizer.normalize_str(token.text).strip() == spelling.removeprefix("##")
                checked += 1
    assert checked > 1000


def test_what_is_dropped_or_unknown_keeps_its_place(opened):
    ours = opened["wordpiece"][0]
    shown = [(token.text, ours.token_bytes(token.id)) for token in ours.tokens("Héllo  wörld ☂ jumping\n")]
    assert shown[:3] == [("Héllo", b"hello"), ("  wörld", b"world"), (" ☂", b"[UNK]")]
    assert "".join(text for text, _ in shown) == "Héllo  wörld ☂ jumping\n" and shown[-1][0].endswith("g\n")
    assert [(t.text, t.start) for t in ours.tokens("e\u0301 e")] == [("e\u0301", 0), (" e", 2)]
    assert ours.tokens(" \n ") == [] and ours.encode("") == [] and ours.ending("", 5) == ([], 0)
    for ask in (ours.encode, lambda text: ours.ending(text, 5)):
        with pytest.raises(ValueError, match="leaves nothing of this text"):
            ask(" \n ")


def test_one_character_that_became_several_tokens(opened):
    ours = opened["unigram"][0]
    tokens = ours.tokens("½ x")  # NFKC makes it 1⁄2, and a blank is put before it
    assert [ours.token_bytes(t.id).strip() for t in tokens if t.byte_end <= 2][-2:] == ["⁄".encode(), b"2"]
    assert [t.text for t in tokens if t.byte_end > t.byte_start] == ["½", " ", "x"]


def test_a_blank_that_the_tokenizer_puts_before_a_text_has_no_width(opened):
    ours = opened["sentencepiece"][0]
    first, *rest = ours.tokens("hello")
    assert ours.token_bytes(first.id).startswith(b" ")
    assert b"".join(t.data for t in (first, *rest) if t.byte_end > t.byte_start) == b"hello"
    alone = ours.tokens("☂")[0]
    assert (alone.data, alone.byte_start, alone.byte_end) == (b" ", 0, 0)
    assert [t.byte_end for t in ours.tokens("☂")] == [0, 1, 2, 3]  # then the three bytes


@pytest.mark.parametrize("kind", KINDS)
def test_the_ending_is_the_end_of_all_tokens(opened, kind):
    ours = opened[kind][0]
    for text in ("Héllo wörld, ½ jumping 猫😀  ", "☂", "a b"):
        tokens = ours.tokens(text)
        for most in (1, 2, 3, 500):
            assert ours.ending(text, most) == (tokens[-most:], max(0, len(tokens) - most))
    assert ours.ending("", 5) == ([], 0)


@pytest.mark.parametrize("kind", KINDS)
def test_100_000_characters(opened, kind):
    ours = opened[kind][0]
    for text in ("Hello wörld, jumping. " * 4546, "😀" * 25_000, "x" * 100_000):
        tokens = ours.tokens(text)
        assert not tokens or tokens[-1].byte_end == len(text.encode())


# -- back to text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sentencepiece", "metaspace"])
def test_byte_fallback_gives_any_text_back(opened, kind):
    ours = opened[kind][0]
    for text in map(repaired, (*TEXTS, *random_texts(150))):
        lost = kind == "metaspace" and text.startswith(" ")  # no second blank is put before it
        if "▁" not in text and not lost:  # that is a blank to it
            assert ours.decode(ours.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_is_the_packages(opened, kind):
    ours, theirs = opened[kind]
    for text in map(repaired, MORE):
        ids = ids_of(ours, text)
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_spellings(opened):
    words, pieces = opened["wordpiece"][0], opened["sentencepiece"][0]
    vocab = json.loads(tokenizer_json("wordpiece"))["model"]["vocab"]
    assert all(words.token_bytes(i) == spelling.encode() for spelling, i in vocab.items())
    assert words.mask_id == 4 and words.token_bytes(4) == b"[MASK]" and words.vocab_size == ROWS
    assert pieces.mask_id == ROWS and pieces.token_bytes(ROWS) == b"[MASK]"
    assert pieces.token_bytes(3 + 0x41) == b"A" and pieces.token_bytes(ROWS - 1) == b"[699]"
    with pytest.raises(ValueError, match="has no id"):
        pieces.token_bytes(ROWS + 1)
    assert pieces.model_vocab_size("clm") == ROWS == words.model_vocab_size("mlm")
    assert words.decode([4, ROWS - 1]) == "[MASK][699]"


# -- kept with a model ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "sentencepiece", "gpt2"])
def test_a_checkpoint_with_a_published_tokenizer_opens_again(tmp_path, kind):
    package()
    made = open_tokenizer(kind, json.loads(tokenizer_json(kind)), ROWS, 2, ([1], [2]))
    objective = "mlm" if made.mask_id < ROWS else "clm"
    model = Transformer(ModelConfig(ROWS, 16, 1, 2, 8, objective=objective))
    save_checkpoint(tmp_path / "kept", Checkpoint(model, made))
    back = load_checkpoint(tmp_path / "kept")
    assert type(back.tokenizer) is type(made) and back.tokenizer.hash == made.hash
    assert back.tokenizer.frame == ([1], [2]) and back.tokenizer.end_id == 2
    text = "Héllo wörld ½"
    assert back.tokenizer.ending(text, 9) == made.ending(text, 9)
    ids = torch.tensor([back.tokenizer.encode(text)])
    assert torch.equal(back.model(ids), model(ids))
    file = tmp_path / "kept" / "checkpoint.json"
    file.write_text(file.read_text().replace('"hello"', '"jello"').replace('"he"', '"hi"'))
    with pytest.raises(ValueError, match="kept"):
        load_checkpoint(tmp_path / "kept")


def test_the_frame_is_part_of_the_hash():
    content = json.loads(tokenizer_json("gpt2"))
    bare = open_tokenizer("x", content, ROWS)
    assert "frame" not in bare.to_json() and bare.frame == ([], [])
    assert open_tokenizer("x", content, ROWS, None, ([0], [])).hash != bare.hash


@pytest.mark.parametrize("spec", [{"kind": "hub of another time"}, {"kind": "hub"}, {"kind": None}])
def test_unknown_kinds_are_refused(spec):
    with pytest.raises(ValueError):
        tokenizer_from_json(spec)


# -- what is refused -----------------------------------------------------------------------------------------


def test_without_the_package_a_sentence_names_the_command(monkeypatch):
    content = json.loads(tokenizer_json("wordpiece"))
    monkeypatch.setattr(hub_words, "installed", lambda: False)
    with pytest.raises(ValueError, match=r"WordPiece.* pip install -r requirements-models\.txt\.$"):
        open_tokenizer("x", content, ROWS)
    assert open_tokenizer("x", json.loads(tokenizer_json("gpt2")), ROWS).encode("a")


def test_opening_the_file_does_not_import_the_package():
    code = "import sys, engine.hub_tokenizer, engine.hub; assert 'tokenizers' not in sys.modules"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: c.update(model=None), "is damaged"),
        (lambda c: c["model"].update(vocab=3), "is damaged"),
        (lambda c: c["model"].update(type="Anything"), "is damaged"),
        (lambda c: c["model"].pop("unk_token"), "is damaged"),
        (lambda c: c.update(normalizer={"type": "Rot13"}), "is damaged"),
        (lambda c: c["model"]["vocab"].update(far=5000), "ids up to 5,001, but the model only 700"),
        (lambda c: c["added_tokens"][4].update(id=77), "is damaged|the number 77"),
    ],
    ids=range(7),
)
def test_damaged_content_is_refused_in_a_sentence(change, sentence):
    package()
    content = json.loads(tokenizer_json("wordpiece"))
    change(content)
    with pytest.raises(ValueError, match=sentence) as refusal:
        open_tokenizer("x", content, ROWS)
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)


def test_a_vocabulary_that_draws_lots_is_refused():
    package()
    content = json.loads(tokenizer_json("sentencepiece"))
    content["model"]["dropout"] = 0.1
    with pytest.raises(ValueError, match="dropout 0.1"):
        open_tokenizer("x", content, ROWS)
