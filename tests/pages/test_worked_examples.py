"""Worked examples: each opens, its lines follow its inputs, misfits are sentences, models give numbers."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import OpenPage, Pair, component
from ui import session
from ui.example_list import EXAMPLES
from wording import LANGUAGES

TOY = [slug for slug in EXAMPLES if slug not in ("gradient", "scaling", "balance")]  # can show real ones

KINDS = ("vocabulary", "chain-rule", "tiny-attention", "fill-blank")  # any model, a causal one, a masked one
WORDED = (  # their first inputs are words of the language
    "vocabulary", "chain-rule", "five-words", "temperature", "softmax-twice", "sentence-loss", "fill-blank",
    "crop", "generation",
)  # fmt: skip

# slug -> what its page must show with the numbers that it opens with
PRINTED = {
    "vocabulary": [r"\tfrac{18}{18} = 1", r"\tfrac{18}{4} = 4.500"],
    "chain-rule": [r"0.9 \cdot 0.8 = 0.7200", "-0.1054 - 0.2231 = -0.3285"],
    "joint-space": [r"50000^{10} = 9.766 \times 10^{46}", "= 500000"],
    "one-hot": ["(0, 1, 0)", "(2, 0.3) = E_{1}"],
    "tiny-attention": [r"\Sigma"],
    "causal-mask": [r"(0,\ 0,\ 0,\ -\infty,\ -\infty)", r"\tfrac{1}{3} = 0.3333", "= 15"],
    "softmax": ["0.665", "0.245", "0.0900"],
    "sigmoid": ["0.785835"],
    "five-words": ["0.607", "0.4993", "4.699", "0.273"],
    "temperature": ["0.819", "0.607", "0.419"],
    "softmax-twice": ["0.4993", "1.229", "0.9048"],
    "sentence-loss": ["0.1054 + 0.2231", "= 0.3285", "0.1643", "1.179", "0.105 + 0.223 = 0.328", "0.329"],
    "one-target": ["1.4076", "0.245"],
    "batch-loss": ["0.3143", "0.4170", "0.2116"],
    "perplexity": ["2.404", "4.120"],
    "gradient": ["-0.7553", "1.408", "0.5959"],
    "shift": [r"1 \times 5 \times 50", "3.912", "… 8 15 16 23"],
    "windows": [r"\{0, \dots, 7\}", "0.1250"],
    "signal": [r"0.15 \cdot 20 = 3", "0.03876", "6.667", "19"],
    "fill-blank": ["0.1054", "2.996"],
    "crop": [r"\min(8, 4) = 4", "lept"],
    "generation": ["0.3989", "0.9701"],
    "scaling": ["0.08349", "0.1632", "1.937"],
    "balance": [r"3.219\times10^{10}", "1.931", "1.984"],
}  # fmt: skip

# slug -> inputs that change every line with a number in it
EDITS: dict[str, dict[str, Any]] = {
    "vocabulary": {"vocabulary_text": "hello tokens", "vocabulary_words": "token"},
    "chain-rule": {"chain_probs": "0.7, 0.6"},
    "joint-space": {"joint_v": 1000, "joint_t": 3},
    "one-hot": {"one_hot_table": "1, 2\n3, 4\n5, 6", "one_hot_index": 2},
    "tiny-attention": {"tiny_embedding": "1, 2\n-1, 0.5\n0, 1"},
    "causal-mask": {"mask_length": 7, "mask_row": 4},
    "softmax": {"softmax_logits": "3, 1, 0.5"},
    "sigmoid": {"sigmoid_z": -0.4},
    "five-words": {"five_logits": "1, 2, 3, 4, 5", "five_target": 1},
    "temperature": {"temperature": 3.0},
    "softmax-twice": {"five_logits": "1, 2, 3, 4", "five_words": "a, b, c, d", "five_target": 1},
    "sentence-loss": {"chain_tokens": "a, b", "chain_probs": "0.3"},
    "one-target": {"target_logits": "2, 1.5, 0", "target_index": 2},
    "batch-loss": {"batch_logits": "1, 1\n0, 2\n1, 0", "batch_targets": "0, 1, 0"},
    "perplexity": {"perplexity_probs": "0.5, 0.25"},
    "gradient": {"target_logits": "2, 1.5, 0", "gradient_rate": 2.0},
    "shift": {"shift_ids": "1 2 3\n4 5 6", "shift_v": 80},
    "windows": {"windows_ids": "1 2 3 4 5 6", "windows_t": 2, "windows_b": 2},
    "signal": {"signal_n": 12, "signal_p": 0.3},
    "fill-blank": {"blank_probs": "0.2, 0.3, 0.5", "blank_target": 2},
    "crop": {"crop_text": "a b c", "crop_t": 2},
    "generation": {"write_start": "cat", "write_temperature": 0.5, "write_seed": 3},
    "scaling": {"scale_n": "1e9", "scale_d": "2e10", "scale_constants": "2, 300, 0.3, 500, 0.2"},
    "balance": {"balance_c": "1e20", "balance_n": "1e8"},
}

WRONG = [
    ("chain-rule", "chain_probs", "0.9, 1.2", "between 0 and 1"),
    ("chain-rule", "chain_probs", "", "empty"),
    ("chain-rule", "chain_probs", "0.9, $x$", "not a finite number"),
    ("chain-rule", "chain_probs", "0.9, nan", "not a finite number"),
    ("chain-rule", "chain_probs", "0.9", "need 2 probabilities"),
    ("sentence-loss", "chain_probs", "0.9, -0.1", "between 0 and 1"),
    ("vocabulary", "vocabulary_text", " ", "text is empty"),
    ("one-hot", "one_hot_table", "1, 2\n3", "equally many"),
    ("one-hot", "one_hot_table", "", "empty"),
    ("tiny-attention", "tiny_ids", "0, 9", "no row 9"),
    ("tiny-attention", "tiny_bias", "1", "b needs 3"),
    ("softmax", "softmax_logits", "1, two", "not a finite number"),
    ("five-words", "five_logits", "1, 2", "Give each word one"),
    ("batch-loss", "batch_targets", "0, 3", "last one is 2"),
    ("batch-loss", "batch_targets", "0", "1 targets for 2 rows"),
    ("batch-loss", "batch_logits", "1, 2\n3", "different lengths"),
    ("perplexity", "perplexity_probs", "2", "between 0 and 1"),
    ("shift", "shift_ids", "4", "at least 2 ids"),
    ("shift", "shift_ids", "4, -8", "whole numbers"),
    ("windows", "windows_ids", "4", "tokens"),
    ("fill-blank", "blank_probs", "0.9, 0.05, 0.06", "add up to 1.01"),
    ("crop", "crop_text", "", "text is empty"),
    ("generation", "write_start", "dog", "no row for “dog”"),
    ("generation", "write_table", "1, 2", "6 rows of 6"),
    ("scaling", "scale_n", "0", "above 0"),
    ("scaling", "scale_constants", "1, 2", "Five numbers"),
    ("balance", "scale_constants", "1, 2, -1, 1, 1", "α must be above 0"),
    ("balance", "balance_n", "1e308", "above 0 and finite"),
    ("scaling", "scale_constants", "1, 2, 100, 1, 1", "so large"),
    ("tiny-attention", "tiny_bias", "1000, 0, 0", "too large to write"),
    ("tiny-attention", "tiny_embedding", "1e300, 1e300\n-1e300, 1\n0, 0", "too large to write"),
]


class Seen(NamedTuple):
    """An example as it opens.

    Attributes:
        text: its formulas, tables and captions.
        lines: of the formulas, those that end in a number.
        inputs: what its widgets hold.
    """

    text: str
    lines: list[str]
    inputs: dict[str, Any]


def shown(at: AppTest) -> str:
    """All formulas, tables and captions of a page."""
    tables = [str(cell) for table in at.table for cell in table.value.to_numpy().ravel()]
    return "\n".join([*(f.value for f in at.latex), *tables, *(c.value for c in at.caption)])


def numeric_lines(at: AppTest) -> list[str]:
    """Lines of the formulas that end in a number, which is computed from what is typed."""
    lines = [line for f in at.latex for line in f.value.split(r"\\[8pt]")]
    return [line for line in lines if re.search(r"= *-?[\d.]+[^=]*$", line)]


def opened(open_page: OpenPage, slug: str, **state: Any) -> AppTest:
    at = open_page("examples", example=slug, **state)
    assert not at.exception, at.exception[0].value
    return at


def turn(at: AppTest, slug: str, **state: Any) -> AppTest:
    """Another example on a page that is open: one start of the app serves many."""
    for key, value in ({"example": slug} | state).items():
        at.session_state[key] = value
    at.run()
    assert not at.exception, f"{slug}: {at.exception[0].value}"
    assert at.selectbox(key="example").value == slug
    return at


def model_for(slug: str) -> str:
    """The small model that an example can read."""
    return "tiny-mlm" if slug == "fill-blank" else "tiny-clm"


def warned(at: AppTest) -> list[str]:
    return [w.value.replace("\\", "") for w in at.warning]


_FIRST: dict[str, Seen] = {}


def first(open_page: OpenPage) -> dict[str, Seen]:
    """All examples as they open, looked at once for all tests."""
    if not _FIRST:
        at = open_page("examples")
        for slug in EXAMPLES:
            turn(at, slug)
            assert not at.warning and at.latex, slug
            widgets = [*at.text_input, *at.text_area, *at.number_input]
            _FIRST[slug] = Seen(shown(at), numeric_lines(at), {str(w.key): w.value for w in widgets})
    return _FIRST


def test_examples_open_with_the_printed_numbers(open_page: OpenPage) -> None:
    assert list(PRINTED) == sorted(PRINTED, key=list(EXAMPLES).index) and PRINTED.keys() == EXAMPLES.keys()
    for slug, seen in first(open_page).items():
        assert [f"{slug}: {wanted}" for wanted in PRINTED[slug] if wanted not in seen.text] == []


def test_examples_whose_inputs_are_words_open_in_every_other_language(open_page: OpenPage) -> None:
    for language in [name for name in LANGUAGES if name != "en"]:
        at = open_page("examples", lang=language)
        assert at.title[0].value == "Ejemplos resueltos"
        for slug in WORDED:
            turn(at, slug)
            assert not at.warning and at.latex, slug
            assert shown(at) != first(open_page)[slug].text


def test_every_line_follows_the_inputs(open_page: OpenPage) -> None:
    assert EDITS.keys() == EXAMPLES.keys()
    before, at = first(open_page), open_page("examples")
    for slug, edits in EDITS.items():
        after = numeric_lines(turn(at, slug, **{f"example_{key}": value for key, value in edits.items()}))
        assert not at.warning, warned(at)
        assert before[slug].lines and after
        assert [f"{slug}: {line}" for line in after if line in before[slug].lines] == []


def test_what_does_not_fit_is_a_sentence(open_page: OpenPage) -> None:
    at, fits = open_page("examples"), first(open_page)
    for slug in dict.fromkeys(row[0] for row in WRONG):
        for _, key, value, says in (row for row in WRONG if row[0] == slug):
            turn(at, slug, **fits[slug].inputs | {f"example_{key}": value})
            assert [says in sentence for sentence in warned(at)] == [True], (slug, key, value, warned(at))
            assert component(at, f"examples_flow_{EXAMPLES[slug].flow}")  # the page goes on below it
        assert not turn(at, slug, **fits[slug].inputs).warning


def test_probabilities_of_0_and_1_are_no_error(open_page: OpenPage) -> None:
    for slug in ("chain-rule", "sentence-loss"):
        at = opened(open_page, slug, example_chain_probs="1, 0")
        assert not at.warning and r"\infty" in shown(at)
    at = opened(open_page, "perplexity", example_perplexity_probs="1, 1, 1")
    assert r"e^{0} = 1" in shown(at)


def test_softmax_is_shown_safe_at_1000_and_the_naive_one_as_not_finite(open_page: OpenPage) -> None:
    at = opened(open_page, "softmax")
    at.button(key="example_softmax_logits_1000, 999, 998").click().run()
    assert not at.exception and "0.665" in shown(at) and "$\\infty$" in shown(at)
    assert "not finite" in at.warning[0].value


def test_temperature_0_takes_the_likeliest(open_page: OpenPage) -> None:
    at = opened(open_page, "temperature", example_temperature=0.0)
    assert "p_{0} &= 1" in shown(at) and not at.warning


def test_next_and_previous_walk_in_a_circle(open_page: OpenPage) -> None:
    slugs = list(EXAMPLES)
    at = opened(open_page, slugs[0])
    at.button(key="examples_previous").click().run()
    assert at.selectbox(key="example").value == slugs[-1]
    at.button(key="examples_next").click().run()
    at.button(key="examples_next").click().run()
    assert at.selectbox(key="example").value == slugs[1]


def test_the_address_names_the_example(open_page: OpenPage) -> None:
    at = open_page("examples", query={"example": "perplexity"})
    assert at.selectbox(key="example").value == "perplexity"


def test_a_step_appends_what_was_picked_and_again_begins_anew(open_page: OpenPage) -> None:
    at = opened(open_page, "generation")

    def text() -> list[str]:
        groups = component(at, "example_write_strip")["groups"]
        return ["".join(part[0] for part in chip["parts"]) for group in groups for chip in group["chips"]]

    assert text() == ["the"] and "mat** ◀" in shown(at)
    at.button(key="example_write_step").click().run()
    assert text() == ["the", "mat"]
    at.button(key="example_write_step").click().run()
    assert len(text()) == 3 and text()[:2] == ["the", "mat"]
    at.button(key="example_write_again").click().run()
    assert text() == ["the"]


def test_new_random_numbers_fill_the_tiny_model(open_page: OpenPage) -> None:
    at = opened(open_page, "tiny-attention")
    before = shown(at)
    at.button(key="example_tiny_random").click().run()
    assert not at.exception and not at.warning and shown(at) != before


def test_a_model_whose_training_was_not_kept_has_no_budget(open_page: OpenPage, models: Pair) -> None:
    at = opened(open_page, "balance", model="tiny-clm", real=True)
    assert "was not kept" in at.info[0].value and r"5.76\times10^{23}" in shown(at)


def test_real_probabilities_are_those_of_the_model(open_page: OpenPage, models: Pair) -> None:
    import torch

    checkpoint = models[0]
    ids = checkpoint.tokenizer.encode(session.DEFAULT_TEXT)
    with torch.no_grad():
        probs = torch.softmax(checkpoint.model(torch.tensor([ids]))[0].double(), -1)
    at = opened(open_page, "softmax", model="tiny-clm", real=True)
    best = probs[-1].topk(5).values.tolist()
    column = [str(x) for x in at.table[0].value["$p$"]]
    assert [float(x) for x in column[:5]] == pytest.approx(best, rel=6e-3)
    assert sum(map(float, column)) == pytest.approx(1, abs=4e-3)  # the rest is one entry more
    at = opened(open_page, "shift", model="tiny-clm", real=True)
    loss = torch.nn.functional.nll_loss(probs[:-1].log(), torch.tensor(ids[1:])).item()
    assert f"= {loss:.4g}" in shown(at).replace("&", "")


def test_without_a_model_the_toy_numbers_stay_and_a_way_out_is_there(
    open_page: OpenPage, shelf: Path
) -> None:
    at = open_page("examples", real=True)
    for slug in KINDS:
        turn(at, slug, real=True)
        assert "no model yet" in at.info[0].value and at.latex, slug


def test_a_model_of_the_other_kind_is_said_and_the_fitting_one_offered(
    open_page: OpenPage, models: Pair
) -> None:
    at = opened(open_page, "fill-blank", model="tiny-clm", real=True)
    assert "masked model" in at.info[0].value and "0.1054" in shown(at)
    at.button(key="example_use_tiny-mlm").click().run()
    assert not at.exception and not at.info and "0.1054" not in shown(at)
    at = opened(open_page, "chain-rule", model="tiny-mlm", real=True)
    assert "causal model" in at.info[0].value and at.button(key="example_use_tiny-clm")


def test_a_text_that_is_too_short_keeps_the_toy_numbers(open_page: OpenPage, models: Pair) -> None:
    at = open_page("examples", model="tiny-clm")
    for text, slugs in (("a", TOY), ("", KINDS)):
        for slug in slugs:
            turn(at, slug, model=model_for(slug), real=True, text=text)
            assert at.latex and not at.warning, slug
            assert at.info or text, slug
    at.button(key="example_use_text").click().run()
    assert not at.exception and not at.info and at.latex


@pytest.mark.parametrize("text", ["Once " * 3000, "👩‍👩‍👧 $x$ <b> *s* " * 3], ids=["long", "marks"])
def test_real_numbers_of_long_and_strange_texts(open_page: OpenPage, models: Pair, text: str) -> None:
    toy, at = first(open_page), open_page("examples", model="tiny-clm")
    for slug in TOY:
        turn(at, slug, model=model_for(slug), real=True, text=text)
        assert at.latex and not at.warning and not at.info, slug
        assert shown(at) != toy[slug].text, slug
