"""Fill blanks: several hidden tokens at once, filled in six ways, and how often each way is right."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

import viz
from engine.fill import some_places, words_of
from ui import fill_data, fill_right, fill_steps, hiding, lesson, resources
from ui.components import show, token_strip
from ui.fill_data import WAYS, Fills
from ui.hiding import Both
from ui.words import counted
from viz.fill import fill_grid

PART, SEED, SWEEPS, EVERY = (
    "masking_fill_part",
    "masking_fill_seed",
    "masking_fill_sweeps",
    "masking_fill_every",
)
GRID, STEPS, OFTEN = "All ways", "Step by step", "How often right"
SCROLLS = 60  # tokens; a longer text scrolls, so that the picture stays in sight
KEEP: dict[str, Any] = {"persist_state": "session"}
BEAR = (
    "Once upon a time, there was a kind bear called Rosa. She lived on a hill and loved picnics. "
    "One cold night, Rosa saw a star fall from the sky."
)
TWICE = (
    "There was once a brave dragon called Max. He would read all night long. One cold night, Max heard a "
    "loud noise in the garden."
)


def _take(text: str, words: str, first: bool, part: str, way: str = "") -> None:
    """Take another text, hide some words of it, and look at one part of the view. For `on_click`."""
    hiding.story(text, words, first)
    st.session_state[PART] = part
    if way:
        fill_steps.choose(way)
        st.session_state[SWEEPS] = 20


def _part(part: str) -> None:
    st.session_state[PART] = part


TRY = (
    lesson.Step(
        "Four blanks in a row: in one pass each fits the text, but not its neighbours.",
        "Hide “a kind bear called”", _take, (BEAR, "a kind bear called", True, GRID),
    ),
    lesson.Step(
        "A name hidden both times: Gibbs resampling draws one given the other, and can hardly leave it.",
        "Watch Gibbs with two names", _take, (TWICE, "Max", False, STEPS, "gibbs"),
    ),
    lesson.Step(
        "Which way is right most often? Ask 20 stories that no model has seen.",
        "Go to the measurement", _part, (OFTEN,),
    ),
)  # fmt: skip


def draw(both: Both) -> None:
    """Draw the view."""
    st.session_state.setdefault(PART, GRID)
    part = st.segmented_control(
        "Shown",
        [GRID, STEPS, OFTEN],
        key=PART,
        required=True,
        label_visibility="collapsed",
        wrap=True,
        **KEEP,
    )
    if part != OFTEN:
        _blanks(both)
    if part == OFTEN:
        fill_right.draw(both)
    elif not both.hidden:
        st.info("Nothing is hidden. Press a token above, or hide five by chance.")
    elif len(both.hidden) > fill_data.MOST:
        st.info(
            f"{len(both.hidden):,} tokens are hidden. One after the other, up to {fill_data.MOST} are filled "
            "here: press tokens to show them again, or let chance choose five."
        )
    else:
        made = _fills(both)
        if part == STEPS:
            fill_steps.draw(both, made)
        else:
            if len(both.hidden) == 1:
                st.caption("With one blank the first three ways are the same. Hide five to see them part.")
            _grid(both, made)
            _totals(both, made)
        if made.why:
            st.info(lesson.literal(made.why))
    lesson.try_this(*TRY, key="masking_fill_try")


def _blanks(both: Both) -> None:
    """The text, whose tokens can be pressed, and buttons that hide several."""
    text = both.text
    if text.unused:
        st.caption(
            f"Using the last {len(text.seen):,} of {len(text.tokens):,} tokens: the model can’t see more."
        )
    hiding.look_at(both.hidden)
    long = len(text.seen) > SCROLLS
    with st.container(height=180 if long else "content", border=long):
        token_strip(
            text.segments, key=hiding.STRIP, hidden=both.hidden, on_press=hiding.press,
            label="Press a token to hide it or to show it again",
        )  # fmt: skip
    st.session_state.setdefault(SEED, 1)
    st.session_state.setdefault(SWEEPS, 10)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for label, kind, about in (
            ("Hide 5", "any", "Five tokens anywhere."),
            ("Hide 5 in a row", "row", "Five neighbours."),
            ("Hide a word", "word", "All tokens of one word."),
        ):
            st.button(
                label, key=f"masking_fill_{kind}", on_click=_hide, args=(both, kind), help=about,
                disabled=not text.seen,
            )  # fmt: skip
        st.button("Hide none", key="masking_fill_none", on_click=hiding.hide, args=((),))
        st.number_input(
            "Seed",
            0,
            2**31,
            key=SEED,
            width=115,
            help="Of what chance hides, and of Gibbs resampling.",
            **KEEP,
        )
        st.slider("Sweeps of Gibbs", 1, 20, key=SWEEPS, width=150, **KEEP)


def _hide(both: Both, kind: str) -> None:
    """Hide some tokens by chance, others with each press. For `on_click`."""
    seed = int(st.session_state.get(SEED, 1)) + int(st.session_state.get("_masking_fill_presses", 0))
    st.session_state["_masking_fill_presses"] = st.session_state.get("_masking_fill_presses", 0) + 1
    n, first = len(both.text.seen), int(len(both.text.seen) > 1)  # a causal model can't guess the first
    if kind == "word":
        words = [word for word in words_of([t.data for t in both.text.seen]) if word[0] >= first]
        places: Sequence[int] = words[some_places(len(words), 1, seed)[0]] if words else []
    else:
        places = some_places(n, 5, seed, first=first, in_a_row=kind == "row")
    hiding.hide(places)


def _fills(both: Both) -> Fills:
    """Every way's fill; of one blank, all tokens are tried if that is quick or wanted."""
    return fill_data.fills(
        both, int(st.session_state[SEED]), int(st.session_state[SWEEPS]), bool(st.session_state.get(EVERY))
    )


def _grid(both: Both, made: Fills) -> None:
    """The picture: what each way put into each blank; one part for each model, as a telephone is narrow."""
    kinds = {"mlm": "Masked model", "clm": "Causal model"}
    parts = {kind: [way for way in made.found if WAYS[way].objective == kind] for kind in kinds}
    shown = [kind for kind in kinds if parts[kind]]
    for column, kind in zip(st.columns([len(parts[kind]) + 1 for kind in shown]), shown, strict=True):
        with column:
            st.markdown(f"**{kinds[kind]}**")
            show(_part_of_grid(both, made, parts[kind]), key=f"masking_fill_grid_{kind}")
    st.caption(
        "Framed: the hidden token. Gibbs shows its last draw, not the likeliest token. For “rescored” the "
        "colour is the share among the fillers that were tried. The mask itself is never a filler."
    )


def _part_of_grid(both: Both, made: Fills, ways: list[str]) -> Any:
    places, typed, ids = both.hidden, set(both.text.typed), both.text.ids
    data_of = resources.tokenizer(both.masked).token_bytes
    last = {way: made.found[way].last for way in ways}
    rows = [[last[way][place] for way in ways] for place in places]
    return fill_grid(
        places,
        ["?" if place in typed else viz.visible(both.text.seen[place].data) for place in places],
        [WAYS[way].short for way in ways],
        [[viz.visible(data_of(choice.id)) for choice in row] for row in rows],
        [[fill_data.probability(choice) for choice in row] for row in rows],
        [[each.place not in typed and each.id == ids[each.place] for each in row] for row in rows],
    )


def _totals(both: Both, made: Fills) -> None:
    """Each way's text as a whole: how many are right, and how probable it is under one and the same judge."""
    found = fill_data.judged(both, made)
    table: dict[str, list[Any]] = {"way": [WAYS[way].name for way in made.found]}
    known = len(both.hidden) - len(both.text.typed)
    if known:
        table["right"] = [f"{judged.n_right} of {known}" for judged in found]
    table["ln p, its own"] = [_log(judged.own) for judged in found]
    if any(judged.causal is not None for judged in found):
        table["ln p, causal model"] = [_log(judged.causal) for judged in found]
    if any(judged.possible is not None for judged in found):
        table["possible story"] = ["yes" if judged.possible else "no" for judged in found]
        table["ln p, exact"] = [_log(judged.exact, "−∞") for judged in found]
    config = {name: st.column_config.TextColumn(alignment="right") for name in table if name != "way"}
    st.dataframe(table, hide_index=True, column_config=config, key="masking_fill_table")
    n = counted(fill_data.sweeps(len(both.hidden), int(st.session_state[SWEEPS])), "sweep")
    st.caption(
        "Its own ln p: of the fillers, by the way that chose them; each has its own distribution, so these "
        "can’t be compared. The causal model’s (given the first token) and the exact one are of the whole "
        f"text and judge all alike. Gibbs made {n}; it has no ln p of its own, nor has a causal "
        "model that did not try every filling."
    )


def _log(x: float | None, otherwise: str = "–") -> str:
    return otherwise if x is None else f"{x:.3f}".replace("-", "−")
