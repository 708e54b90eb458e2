"""The Masking page in another language: every view says it whole, and what was chosen stays."""

import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import wording
from tests.pages.conftest import OpenPage, Pair

STORY = "Once upon a time, there was a princess called Nora. She"
PARTS = [
    ("one-sentence", {}),
    ("masked-batch", {"masking_masks": "evaluation"}),
    ("what-is-paid", {"masking_against": "targets-scored"}),
    ("not-comparable", {"masking_limit": "one-number-each"}),
    ("not-comparable", {"masking_limit": "two-orders"}),
    ("not-comparable", {"masking_limit": "by-hand", "masking_table": "joint"}),
    ("fill-blanks", {"masking_fill_part": "all-ways"}),
    ("fill-blanks", {"masking_fill_part": "step-by-step", "masking_fill_way": "gibbs"}),
    ("fill-blanks", {"masking_fill_part": "step-by-step", "masking_fill_way": "rescored"}),
    ("fill-blanks", {"masking_fill_part": "how-often-right"}),
    ("meaning", {"masking_meaning_part": "two-texts"}),
    ("meaning", {"masking_meaning_part": "all-uses"}),
    ("meaning", {"masking_meaning_part": "nearest-sentences", "masking_meaning_pooling": "last"}),
    ("train-a-pair", {"pair_size": "small"}),
]
ENGLISH = re.compile(r"\b(the|and|of|is|are|which|with|every|hidden|nothing)\b", re.IGNORECASE)


def said(at: AppTest) -> list[str]:
    """What the page itself says: not the texts that the models read."""
    labels = [*at.main.button, *at.main.slider, *at.main.number_input, *at.main.toggle, *at.main.text_area]
    texts = [*at.main.caption, *at.main.subheader, *at.main.info, *at.main.markdown, *at.main.title]
    found = [str(e.label) for e in labels] + [str(e.value) for e in texts]
    return [text.replace(r"\[MASK\]", "") for text in found]


@pytest.mark.parametrize(("view", "state"), PARTS)
def test_each_view_is_said_in_spanish_and_what_was_chosen_stays(
    open_page: OpenPage, models: Pair, monkeypatch: pytest.MonkeyPatch, view: str, state: dict[str, Any]
) -> None:
    monkeypatch.setenv("LOUPE_LANGUAGE", "es")  # the driver sends choices in words, as a browser does
    at = open_page("masking", text=STORY, hide=view, lang="es", **state)
    assert not at.exception and not at.error
    at.run()
    assert not at.exception and not at.error
    assert at.title[0].value == "Enmascarado"
    for text in said(at):
        own = re.sub("[“«][^”»]*[”»]", "", text)  # words of the stories stand in quotation marks
        assert not ENGLISH.search(own), own
    kept = {key: at.session_state[key] for key in ("hide", "text", *state)}
    hidden = hidden_places(at)
    at.session_state["lang"] = "en"
    at.run()
    assert not at.exception and not at.error
    assert at.title[0].value == "Masking"
    assert {key: at.session_state[key] for key in kept} == kept
    assert hidden_places(at) == hidden and kept["hide"] == view and kept.items() >= state.items()


def hidden_places(at: AppTest) -> object:
    return at.session_state["_masking_hidden"] if "_masking_hidden" in at.session_state else None  # noqa: SIM401


def test_an_error_of_the_engine_is_told_in_the_language_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.config import ModelConfig
    from engine.corpus import encodings, own_text, python_docs, title
    from engine.download import Download, _Failed
    from engine.vocabularies import VOCABULARIES

    source = next(iter(VOCABULARIES.values())).sources[0]
    late = Download(source, "failed", failed=_Failed("silent", host="example.org", patience=10.0))
    assert late.message == "example.org did not answer within 10 seconds."
    monkeypatch.setattr(wording, "_current", lambda: "es")
    with pytest.raises(ValueError, match="d_model 10 no es divisible entre n_head 3"):
        ModelConfig(vocab_size=10, d_model=10, n_head=3)
    assert late.message == "example.org no respondió en 10 segundos."  # the thread kept no words
    assert (own_text("a").name, own_text("a").title) == ("Your text", "Tu texto")  # a run keeps the one name
    assert own_text("a", name="My {book}").title == "My {book}"
    assert title(python_docs().name, "python-docs") == "Documentación de Python"
    assert encodings()["shift_jis"] == "Japonés (Shift JIS)"
