"""A published tokenizer.json: the ids of the `tokenizers` package, or a refusal."""

import itertools
import json
import random
from typing import Any

import pytest
import torch

from engine.hub import load_folder
from engine.hub_bpe import read_bpe
from engine.hub_tokenizer import HubTokenizer, load_tokenizer
from engine.tokenizers import train_bpe
from engine.trace import trace
from tests.engine.test_hub import made_by_hand

pytestmark = pytest.mark.usefixtures("no_network")
CUTS = {
    "three": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "one": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
NO_CUT = {**BYTE_LEVEL, "use_regex": False}
PRE = {
    "gpt2": BYTE_LEVEL,
    "digits": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL],
    },
    **{
        name: {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": cut}, "behavior": "Isolated", "invert": False},
                NO_CUT,
            ],
        }
        for name, cut in CUTS.items()
    },
}
TEXT = (
    "Once upon a time there was a little cat called Lily's Tom.  She'll sit on 12345 mats, won't she?\n\n"
    "\tdef f(x):\n        return x ** 2 + 1.5e-3  # ünïcödé naïve café\r\n"
    "Однажды жила кошка. 猫が座っている。 고양이 القط जलेबी ไทย 😀👩‍👩‍👧 🇪🇸 e\u0301 ½ ²³ Ⅷ ٣٤٥ ๑๒\n"
) * 4
HARD = [
    "",
    " ",
    "a",
    "   a  b   ",
    "\n\n\n  \n\t x",
    "x\r\n\r\ny \r z",
    "it's IT'S we'LL y'all'd 'ſ 's",
    "1234567890 12 3.14159 1,000,000",
    "  5   55  x5y",
    "٣٤٥ ๑๒๓ Ⅷ½²³ 五",
    "\u00a0\u2003\u3000a\u200b\u180e\u0085b\ufeff",
    "e\u0301 \u0301 A\u030a \u212b \u1e9b\u0323 한국 ﬁ",
    "😀👩‍👩‍👧‍👦🏳️‍🌈🇪🇸🇪 ☺️",
    "שלום עולם مرحبا नमस्ते สวัสดี",
    "\x00\x01\x1f\x7f\ufffd\U0010ffff",
    "<|endoftext|> <|end <|endoftext|><|endoftext|>",
    "!!!???...---===>>>  #$%^&*",
    "a" * 3000,
    "ab " * 1000,
    " " * 700,
    "naïve ｆｕｌｌ ǆ ß İ ı K",
    "https://example.com/a?b=c&d=%20#e",
    "lone \ud83d half",
    TEXT,
]


@pytest.fixture(scope="module")
def reference():
    return pytest.importorskip(
        "tokenizers", reason="tokenizers, the reference, is not installed: see requirements-dev.txt"
    )


@pytest.fixture(scope="module")
def learned():
    """Merges that a text gives, as the tokens' bytes in order; our own trainer stands in for any other."""
    tokenizer = train_bpe(TEXT, 700, pattern=r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
    return [tokenizer.token_bytes(i) for i in range(256, tokenizer.vocab_size)]


VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
HIDDEN = [b for b in range(256) if b not in VISIBLE]
ALPHABET = {b: chr(b) for b in VISIBLE} | {b: chr(256 + n) for n, b in enumerate(HIDDEN)}


def written(data: bytes) -> str:
    """Bytes in the alphabet of tokenizer.json: as they are if visible, the others after 255 in order."""
    return "".join(ALPHABET[b] for b in data)


def halves(data: bytes, before: list[bytes]) -> list[list[str]]:
    """All ways in which two earlier tokens make this one, in the alphabet."""
    known = {bytes([b]) for b in range(256)} | set(before)
    cuts = [(data[:i], data[i:]) for i in range(1, len(data))]
    return [[written(a), written(b)] for a, b in cuts if a in known and b in known]


def last_halves(data: bytes, rank: dict[bytes, int]) -> list[str]:
    """The two parts of a token just before it is made, by merging one pair after the other."""
    parts = [data[i : i + 1] for i in range(len(data))]
    while len(parts) > 2:
        at = min(range(len(parts) - 1), key=lambda i: rank.get(parts[i] + parts[i + 1], 10**9))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [written(part) for part in parts]


def content(merged: list[bytes], *, cut: str = "gpt2", form: str = "pairs", **more: Any) -> dict[str, Any]:
    """A tokenizer.json with these tokens after the 256 bytes, and <|endoftext|> last."""
    rank = {data: i for i, data in enumerate(merged)}
    merges: list[Any] = []
    for i, data in enumerate(merged):
        merges += halves(data, merged[:i]) if form == "all" else [last_halves(data, rank)]
    if form == "old":
        merges = [" ".join(pair) for pair in merges]
    vocab = {written(data): i for i, data in enumerate([*(bytes([b]) for b in range(256)), *merged])}
    end = {
        "id": len(vocab), "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False, "special": True,
    }  # fmt: skip
    made = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [end],
        "normalizer": None,
        "pre_tokenizer": PRE[cut],
        "post_processor": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": False,
            "use_regex": True,
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": form == "all",
            "vocab": vocab,
            "merges": merges,
        },
    }
    return {**made, **more}


def both(reference, made: dict[str, Any]) -> tuple[HubTokenizer, Any]:
    return HubTokenizer("x", made, 2000), reference.Tokenizer.from_str(json.dumps(made))


def same_ids(ours: HubTokenizer, theirs: Any, text: str) -> bool:
    text = text.encode("utf-8", "replace").decode()  # the package takes no half characters
    return ours.encode(text, special=True) == theirs.encode(text, add_special_tokens=False).ids


# -- the same ids --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pairs", "old", "all"])
@pytest.mark.parametrize("cut", PRE)
def test_ids_equal_the_reference_on_hard_strings(reference, learned, cut, form):
    ours, theirs = both(reference, content(learned, cut=cut, form=form))
    assert len(ours.encode(TEXT)) < len(TEXT.encode()) / 2  # it does merge
    for text in HARD:
        assert same_ids(ours, theirs, text), text[:50]


@pytest.mark.parametrize("cut", PRE)
def test_ids_equal_the_reference_on_random_strings(reference, learned, cut):
    ours, theirs = both(reference, content(learned, cut=cut))
    dice = random.Random(0)
    letters = "aeth'sSl  \n\r\t\u00a0019٣½é\u0301猫😀\u200d🇪-.<|>_ſK"
    for _ in range(250):
        text = "".join(dice.choice(letters) for _ in range(dice.randint(1, 30)))
        assert same_ids(ours, theirs, text), repr(text)
    for _ in range(100):
        text = "".join(
            chr(dice.choice((dice.randrange(0xD800), dice.randrange(0xE000, 0x110000)))) for _ in "abcd"
        )
        assert same_ids(ours, theirs, text), repr(text)


def test_nfc_comes_before_the_cut_and_places_count_in_it(reference, learned):
    made = content(learned, cut="one", normalizer={"type": "NFC"})
    ours, theirs = both(reference, made)
    for text in (*HARD, "<|endoftext|>\u0338 e\u0301<|endoftext|>", "e\u0301" * 50):
        assert same_ids(ours, theirs, text), text[:50]
    tokens = ours.tokens("cafe\u0301 x")
    assert b"".join(token.data for token in tokens) == "café x".encode()
    assert tokens[-1].start == 4 and sum(map(len, ours.segments("cafe\u0301 x"))) == len(tokens)


def test_ids_in_any_order_with_gaps(reference, learned):
    """RoBERTa's are sorted by how frequent a token is, not by when it was made."""
    made = content(learned)
    dice = random.Random(1)
    ids = dice.sample(range(1500), len(made["model"]["vocab"]))
    made["model"]["vocab"] = dict(zip(made["model"]["vocab"], ids, strict=True))
    made["model"]["vocab"]["<|endoftext|>"] = made["added_tokens"][0]["id"] = 1999
    ours, theirs = both(reference, made)
    for text in HARD:
        assert same_ids(ours, theirs, text), text[:50]
    text = "Once upon a time"
    assert ours.decode(ours.encode(text)) == text
    unused = next(i for i in range(1500) if i not in ids)
    assert ours.token_bytes(unused) == f"[{unused}]".encode()


def test_tokens_that_are_cut_out_first(reference, learned):
    """GPT-NeoX has runs of blanks that are no control tokens: a plain text means them too."""
    made = content(learned, normalizer={"type": "NFC"})
    for i, (text, normalized) in enumerate(
        [("  ", True), ("    ", True), ("é!", True), ("[x]", False), ("A\u030a#", False)]
    ):
        made["added_tokens"].append(
            {
                **made["added_tokens"][0],
                "id": 257 + len(learned) + i,
                "content": text,
                "special": False,
                "normalized": normalized,
            }
        )
    ours, theirs = both(reference, made)
    for text in (*HARD, "a  b    c     d   e", "e\u0301! é! [x][x]  [x\u0301] A\u030a# Å# A\u030a", "      "):
        assert same_ids(ours, theirs, text), text[:50]
    assert 257 + len(learned) in ours.encode("a  b") and 260 + len(learned) in ours.encode("[x]")
    assert ours.decode(ours.encode(TEXT)) == ours.normal(TEXT)


def test_a_control_token_is_plain_text_unless_asked_for(reference, learned):
    ours, _ = both(reference, content(learned))
    end = 256 + len(learned)
    assert ours.encode("a<|endoftext|>", special=True) == [97, end]
    assert end not in ours.encode("a<|endoftext|>")
    assert ours.decode(ours.encode("a<|endoftext|>")) == "a<|endoftext|>" == ours.decode([97, end])


def test_gpt2s_own_tables_give_tiktokens_ids(reference, gpt2, vocab_folder):
    encoder = json.loads((vocab_folder / "6c7ea1a7e38e3a7f062df639a5b80947f075ffe6").read_bytes())
    lines = (vocab_folder / "6d1cbeee0f20b3d9449abfede4726ed8212e3aee").read_text("utf-8").split("\n")
    made = content([])
    made["model"] |= {"vocab": encoder, "merges": [line for line in lines[1:] if line]}
    made["added_tokens"][0]["id"] = 50256
    ours, theirs = HubTokenizer("x", made, 50257), reference.Tokenizer.from_str(json.dumps(made))
    for text in HARD:
        assert same_ids(ours, theirs, text), text[:50]
        assert ours.encode(text) == gpt2.encode(text)


# -- exact or refused ----------------------------------------------------------------------------------------


def test_any_small_list_of_merges_is_exact_or_refused(reference):
    """Random lists, most of which no training would give, against every text of up to 7 letters."""
    dice = random.Random(3)
    texts = ["".join(letters) for n in range(1, 8) for letters in itertools.product("ab", repeat=n)]
    accepted = wrong = 0
    for _ in range(150):
        merged: list[bytes] = []
        merges: list[list[str]] = []
        for _ in range(dice.randint(2, 5)):
            a, b = (dice.choice([b"a", b"b", *merged]) for _ in "xy")
            merges.append([written(a), written(b)])
            merged += [a + b] if a + b not in merged else []
        made = content([])
        made["model"]["vocab"] |= {written(data): 256 + i for i, data in enumerate(merged)}
        made["added_tokens"][0]["id"] = len(made["model"]["vocab"])
        made["model"]["merges"] = merges
        try:
            ours = HubTokenizer("x", made, 2000)
        except ValueError:
            continue
        accepted += 1
        theirs = reference.Tokenizer.from_str(json.dumps(made))
        wrong += not same_ids(ours, theirs, "\n".join(texts))  # GPT-2's rule cuts around a line's end
    assert 20 < accepted < 140 and wrong == 0


def test_merges_that_tiktoken_would_do_otherwise_are_refused(reference, learned):
    """abc is made of ab and c, but b and c merge first: tiktoken would then join a and bc."""
    made = content([])
    made["model"]["vocab"] |= {"bc": 256, "ab": 257, "abc": 258}
    made["added_tokens"][0]["id"] = 259
    made["model"]["merges"] = ["b c", "a b", "ab c"]
    with pytest.raises(ValueError, match="merges “abc”"):
        read_bpe(made)
    assert reference.Tokenizer.from_str(json.dumps(made)).encode("abc").ids == [97, 256]


def test_bytes_without_a_token_are_named(reference, learned):
    """SmolLM2 lacks 21 of them."""
    made = content(learned)
    vocab = made["model"]["vocab"]
    for byte in (0x04, 0xF1):
        del vocab[written(bytes([byte]))]
    made["added_tokens"][0]["id"] = len(vocab)
    ours, theirs = both(reference, made)
    for text in ("Once upon a time", "😀"):
        assert same_ids(ours, theirs, text)
    with pytest.raises(ValueError, match="no token for the bytes 04 F1 of this text"):
        ours.encode("a\x04\U00050000")


def changed(made: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    made = json.loads(json.dumps(made))
    *way, last = path.split(".")
    inner = made
    for name in way:
        inner = inner[int(name) if name.isdigit() else name]
    inner[last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("model.type", "WordPiece", "of the kind WordPiece, which Loupe"),
        ("model.type", "Unigram", "of the kind Unigram"),
        ("model.byte_fallback", True, "of the kind BPE"),
        ("model.dropout", 0.1, "has dropout 0.1"),
        ("model.end_of_word_suffix", "</w>", "has end_of_word_suffix '</w>'"),
        ("model.merges", [["a"]], "is damaged"),
        ("model.merges", ["a b c"], "is damaged"),
        ("model.merges", [["q", "z"]], "merges “qz”"),
        ("model.vocab", {"a": 1, "b": 1}, "the same number"),
        ("model.vocab", {"a": -1}, "“a” the number -1"),
        ("model.vocab", {"a": 10**9}, "“a” the number 1000000000"),
        ("model", None, "is damaged"),
        ("pre_tokenizer", None, r"cuts texts by a rule that Loupe can't follow exactly \(null\)"),
        ("pre_tokenizer", {"type": "Metaspace"}, "Metaspace"),
        ("pre_tokenizer.add_prefix_space", True, "ByteLevel"),
        ("pre_tokenizer.use_regex", False, "ByteLevel"),
        ("normalizer", {"type": "Lowercase"}, r"changes texts by a rule .* \(Lowercase\)"),
        (
            "normalizer",
            {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "StripAccents"}]},
            "NFC, StripAccents",
        ),
        ("added_tokens.0.single_word", True, "looks for the token “<|endoftext|>”"),
        ("added_tokens.0.id", "7", "“<|endoftext|>” the number '7'"),
        ("added_tokens.0.id", 7, "“<|endoftext|>” the number 7, which is not the one"),
    ],
)
def test_other_kinds_are_refused(learned, path, value, sentence):
    with pytest.raises(ValueError, match=sentence.replace("|", r"\|")) as refusal:
        HubTokenizer("x", changed(content(learned), path, value), 2000)
    assert str(refusal.value).endswith(".")


def test_unknown_ways_to_cut_are_refused(learned):
    made = changed(content(learned, cut="one"), "pre_tokenizer.pretokenizers.0.pattern", {"Regex": r"\w+"})
    with pytest.raises(ValueError, match="Split, ByteLevel"):
        HubTokenizer("x", made, 2000)
    made = changed(content(learned, cut="one"), "pre_tokenizer.pretokenizers.0.behavior", "Removed")
    with pytest.raises(ValueError, match="Split, ByteLevel"):
        HubTokenizer("x", made, 2000)


def test_a_token_that_no_merge_makes(reference, learned):
    made = content(learned)
    made["model"]["vocab"]["upo"] = 1500
    made["added_tokens"][0]["id"] += 1
    ours, theirs = both(reference, made)
    assert same_ids(ours, theirs, "upo upon") and ours.token_bytes(1500) == b"upo"
    with pytest.raises(ValueError, match="“upo” that no merge makes"):
        HubTokenizer("x", changed(made, "model.ignore_merges", True), 2000)


def test_tokens_long_enough_to_take_forever_are_refused():
    made = content([])
    made["model"]["vocab"]["a" * 8000] = 300
    made["model"]["vocab"]["a" * 7999] = 301
    made["added_tokens"] = []
    made["model"]["merges"] = [["a", "a" * 7999]]
    with pytest.raises(ValueError, match="too long to check"):
        read_bpe(made)


# -- with a model --------------------------------------------------------------------------------------------


def test_a_folder_gives_a_model_that_every_page_can_use(tmp_path, learned):
    made = content(learned)
    rows = 256 + len(learned) + 8
    folder = made_by_hand(
        tmp_path / "small",
        vocab_size=rows,
        n_positions=32,
        eos_token_id=256 + len(learned),
        tensors={
            "transformer.wte.weight": torch.randn(rows, 8),
            "transformer.wpe.weight": torch.randn(32, 8),
        },
    )
    (folder / "tokenizer.json").write_text(json.dumps(made))
    loaded = load_folder(folder)
    assert loaded.tokenizer.vocab_size == loaded.model.config.vocab_size == rows
    assert loaded.tokenizer.end_id == 256 + len(learned) and loaded.info["kind"] == "gpt2"
    seen = trace(loaded.model, loaded.tokenizer, "Once upon a time")
    assert seen.logits.shape == (len(seen.tokens), rows)
    assert "".join(token.text for token in seen.tokens) == "Once upon a time"
    assert all(loaded.tokenizer.token_bytes(i) for i in range(rows))
    again = load_folder(folder)
    assert again.identity == loaded.identity and again.tokenizer.hash == loaded.tokenizer.hash
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert load_folder(folder).identity != loaded.identity


def test_a_tokenizer_with_more_ids_than_the_model_is_refused(tmp_path, learned):
    folder = made_by_hand(tmp_path / "small")
    (folder / "tokenizer.json").write_text(json.dumps(content(learned)))
    with pytest.raises(ValueError, match=f"ids up to {257 + len(learned)}, but the model only 11"):
        load_folder(folder)
    assert load_tokenizer(folder, 5000).vocab_size == 5000
    with pytest.raises(ValueError, match="no token that ends a text"):
        load_tokenizer(folder, 5000).end_id  # noqa: B018


def test_a_mask_that_swallows_blanks(reference, learned):
    made, mask = content(learned), 257 + len(learned)
    made["added_tokens"].append({**made["added_tokens"][0], "id": mask, "content": "<mask>", "lstrip": True})
    ours, theirs = both(reference, made)
    assert ours.mask_id == mask and ours.token_bytes(mask) == b"<mask>"
    assert same_ids(ours, theirs, "A<mask>b")
    with pytest.raises(ValueError, match="<mask> swallows the white space"):
        ours.encode("A <mask>", special=True)
    assert mask not in ours.encode("A <mask>")
