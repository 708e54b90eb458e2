"""From the settings of a fine-tuning to its run: the start, the texts that were known before, the rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from engine import corpus as texts
from engine.corpus import Corpus, split
from engine.folders import read_json
from engine.pair_files import Pair, Preference
from engine.plan import Plan, TooShortError, make_plan
from ui import resources, training_settings, tuning_settings
from ui.model_refs import ModelRef
from wording import words

if TYPE_CHECKING:
    from engine.config import Aim, TrainConfig
    from engine.run_spec import RunSpec
    from engine.tuning_start import Start

say = words("ui.tuning_spec")

LONGEST_ROW: "dict[Aim, int]" = {
    "text": 128,
    "answers": 256,
    "preferences": 256,
}  # tokens: longer rows take longer
SHORTEST_ROW, SHORTEST_HELD_OUT = 8, 24
FEW, MOST_CHARACTERS = 20, 4000  # of pairs, for an estimate
OF_STORIES = (
    "stories",
    "answers",
    "preferences",
    "",
)  # kinds of texts for which nothing else was known before


def start_of(ref: ModelRef) -> "Start":
    """A model as the start of a run.

    Raises:
        ValueError: one sentence, if it is gone.
    """
    from engine.tuning_start import describe

    return describe(ref.folder, "hub" if ref.kind == "hub" else "checkpoint", ref.name).start


def known_before(ref: ModelRef) -> dict[str, str]:
    """Texts on which forgetting is measured, by name: the stories, and what an own run learned itself.

    Only those that the model's vocabulary can spell.
    """
    found = {texts.NAMES["stories"]: texts.stories().val_text or ""}
    if ref.kind == "run" and ref.corpus not in OF_STORIES:
        name, text = _text_of_run(str(Path(ref.folder).parent.parent))
        if text.strip():
            found[name] = text
    tokenizer = resources.tokenizer(ref)
    return {name: text for name, text in found.items() if _can_spell(tokenizer.hash, text, tokenizer)}


@st.cache_data(max_entries=32, show_spinner=False)
def _can_spell(vocabulary: str, text: str, _tokenizer: Any) -> bool:
    try:
        return len(_tokenizer.encode(text)) > 1
    except ValueError:  # characters that it does not know
        return False


@st.cache_data(max_entries=16, show_spinner=False)
def _text_of_run(folder: str) -> tuple[str, str]:
    """Name and validation text of a run; a text without one counts as a whole."""
    about = read_json(Path(folder) / "run.json").get("corpus", {})
    try:
        text = (Path(folder) / "corpus.txt").read_text("utf-8")
        own = Path(folder) / "corpus_val.txt"
        val = own.read_text("utf-8") if own.exists() else None
        train, held_out = split(Corpus("", "pasted", text, val), float(about["val_share"]))
    except (OSError, ValueError, KeyError):
        return "", ""
    return texts.title(str(about["name"]), str(about["kind"])), held_out or train


def row_length(aim: "Aim", ref: ModelRef) -> int:
    """Most tokens of a row: no more than the model reads."""
    return min(LONGEST_ROW[aim], ref.context_length)


def usual_length(aim: "Aim", ref: ModelRef, rows: Sequence[Pair | Preference]) -> int:
    """Tokens of the longest among the first few pairs; no more than a row may have."""
    tokenizer, most = resources.tokenizer(ref), row_length(aim, ref)
    try:
        found = [
            sum(len(tokenizer.encode(part[:MOST_CHARACTERS])) for part in _parts(row)) for row in rows[:FEW]
        ]
    except ValueError:  # characters that it does not know: the picture says so
        return most
    return min(max(found, default=most), most)


def _parts(row: Pair | Preference) -> tuple[str, str]:
    if isinstance(row, Pair):
        return row.prompt, row.answer
    return row.prompt, max(row.chosen, row.rejected, key=len)


def plan_of(text: Corpus, ref: ModelRef) -> tuple[Plan, int]:
    """How a text is split, and the length of its rows: shorter ones where the text is short.

    Raises:
        ValueError: if it is too short for any, with the numbers.
    """
    tokenizer, length = resources.tokenizer(ref), row_length("text", ref)
    found: tuple[Plan, int] = _plan(tokenizer.hash, text.sha256, length, tokenizer, text)
    return found


@st.cache_resource(max_entries=16, show_spinner=say.later("cutting"))
def _plan(vocabulary: str, fingerprint: str, length: int, _tokenizer: Any, _text: Corpus) -> tuple[Plan, int]:
    try:
        found = make_plan(_text, _tokenizer, length)
    except TooShortError as error:
        if error.fitting is None:
            raise
        length = max(SHORTEST_ROW, error.fitting // 2)  # so that rows can begin at several places
        found = make_plan(_text, _tokenizer, length)
    if found.lost_tokens > SHORTEST_HELD_OUT:  # what was to be held out fills shorter rows
        length = found.lost_tokens - 1
        found = make_plan(_text, _tokenizer, length)
    return found, length


def framing_of(ref: ModelRef) -> Literal["plain", "chat"]:
    """How a prompt and an answer become a row for this model: as a chat where it knows that form."""
    from engine.framing import has_chat

    try:
        return "chat" if has_chat(resources.tokenizer(ref)) else "plain"
    except ValueError:  # a vocabulary of few characters can't even spell the signs of a chat
        return "plain"


def config_for(aim: "Aim", ref: ModelRef, length: int) -> "TrainConfig":
    """The chosen way to learn with rows of this length.

    Raises:
        ValueError: if a number is out of its range.
    """
    shape = resources.load(ref).model.config
    return tuning_settings.train_config(
        aim, ref, shape.n_layer, row_length=length if length < shape.context_length else None,
        framing="plain" if aim == "text" else framing_of(ref),
    )  # fmt: skip


def seconds(aim: "Aim", ref: ModelRef, length: int) -> float:
    """How long the run will take, judged by the runs on this machine."""
    from dataclasses import replace

    shape = resources.load(ref).model.config
    both = 2 if aim == "preferences" else 1  # answers to each prompt
    config = config_for(aim, ref, length)
    shorter = replace(shape, context_length=length) if shape.positions == "rotary" else shape
    return both * training_settings.seconds(shorter, config)


def tell_memory(aim: "Aim", ref: ModelRef, length: int) -> None:
    """Say what memory a run takes, if it starts from a large model."""
    if not ref.large:
        return
    from engine.tuning_size import need_of

    need = need_of(resources.load(ref).model.config, config_for(aim, ref, length), length)
    st.caption(say("memory", memory=need.total / 1e9))


def spec(aim: "Aim", ref: ModelRef, text: Corpus, length: int, val_share: float = 0.0) -> "RunSpec":
    """The run that Start starts.

    Raises:
        ValueError: one sentence, if there can't be such a run.
    """
    from engine.run_spec import RunSpec

    checkpoint = resources.load(ref)
    return RunSpec(
        name=say("name", start=ref.name, text=text.title),
        corpus=text,
        tokenizer=checkpoint.tokenizer,
        model=checkpoint.model.config,
        train=config_for(aim, ref, length),
        val_share=val_share,
        also_scored=known_before(ref),
        start=start_of(ref),
    )
