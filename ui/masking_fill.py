"""Fill blanks: several hidden tokens at once, filled in six ways, and how often each way is right."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

import viz
from engine.fill import some_places, words_of
from ui import fill_data, fill_right, fill_steps, gap_strip, hiding, lesson, resources
from ui.components import show, token_strip
from ui.fill_data import WAYS, Fills
from ui.hiding import Both
from ui.words import counted
from viz.fill import fill_grid
from wording import words

say = words("ui.masking_fill")

PART, SEED, SWEEPS, EVERY = (
    "masking_fill_part",
    "masking_fill_seed",
    "masking_fill_sweeps",
    "masking_fill_every",
)
GRID, STEPS, OFTEN = "all-ways", "step-by-step", "how-often-right"
SCROLLS = 60  # tokens; a longer text scrolls, so that the picture stays in sight
KEEP: dict[str, Any] = {"persist_state": "session"}
BEAR = (
    "Once upon a time, there was a kind bear called Rosa. She lived on a hill and loved picnics. "
    "One cold night, Rosa saw a star fall from the sky."
)
FOUR = "a kind bear called"
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


def _try() -> list[lesson.Step]:
    return [
        lesson.Step(
            say("four_in_a_row"),
            say("hide_words", words=FOUR), _take, (BEAR, FOUR, True, GRID),
        ),
        lesson.Step(
            say("name_both_times"),
            say("watch_gibbs"), _take, (TWICE, "Max", False, STEPS, "gibbs"),
        ),
        lesson.Step(say("which_way"), say("go_to_measurement"), _part, (OFTEN,)),
    ]  # fmt: skip


def draw(both: Both) -> None:
    """Draw the view."""
    st.session_state.setdefault(PART, GRID)
    parts = say.table("parts")
    part = st.segmented_control(
        say("shown"),
        list(parts),
        key=PART,
        format_func=parts.__getitem__,
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
        st.info(say("nothing_hidden_press_token"))
    elif len(both.hidden) > fill_data.MOST:
        st.info(say("tokens_hidden_one_after", n_hidden=len(both.hidden), most=fill_data.MOST))
    else:
        made = _fills(both)
        if part == STEPS:
            fill_steps.draw(both, made)
        else:
            if len(both.hidden) == 1:
                st.caption(say("one_blank_first_three"))
            _grid(both, made)
            _totals(both, made)
        if made.why:
            st.info(lesson.literal(made.why))
    lesson.try_this(*_try(), key="masking_fill_try")


def _blanks(both: Both) -> None:
    """The text, whose tokens can be pressed, and buttons that hide several."""
    text = both.text
    if text.unused:
        st.caption(say("using_last_tokens_model", n_seen=len(text.seen), n_tokens=len(text.tokens)))
    hiding.look_at(both.hidden)
    long = len(text.seen) > SCROLLS
    with st.container(height=180 if long else "content", border=long):
        token_strip(
            text.segments, key=hiding.STRIP, hidden=both.hidden, on_press=hiding.press,
            label=say("press_token_hide_show"),
        )  # fmt: skip
    gap_strip.frame_note(both)
    st.session_state.setdefault(SEED, 1)
    st.session_state.setdefault(SWEEPS, 10)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for label, kind, about in (
            (say("hide_5"), "any", say("five_tokens_anywhere")),
            (say("hide_5_row"), "row", say("five_neighbours")),
            (say("hide_word"), "word", say("all_tokens_one_word")),
        ):
            st.button(
                label, key=f"masking_fill_{kind}", on_click=_hide, args=(both, kind), help=about,
                disabled=not text.seen,
            )  # fmt: skip
        st.button(say("hide_none"), key="masking_fill_none", on_click=hiding.hide, args=((),))
        st.number_input(
            say("seed"),
            0,
            2**31,
            key=SEED,
            width=115,
            help=say("what_chance_hides_gibbs"),
            **KEEP,
        )
        st.slider(say("sweeps_gibbs"), 1, 20, key=SWEEPS, width=150, **KEEP)


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
    kinds = {"mlm": say("masked_model"), "clm": say("causal_model")}
    parts = {kind: [way for way in made.found if WAYS[way].objective == kind] for kind in kinds}
    shown = [kind for kind in kinds if parts[kind]]
    for column, kind in zip(st.columns([len(parts[kind]) + 1 for kind in shown]), shown, strict=True):
        with column:
            st.markdown(f"**{kinds[kind]}**")
            show(_part_of_grid(both, made, parts[kind]), key=f"masking_fill_grid_{kind}")
    st.caption(say("framed_hidden_token_gibbs"))


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
    table: dict[str, list[Any]] = {say("column.way"): [WAYS[way].name for way in made.found]}
    known = len(both.hidden) - len(both.text.typed)
    if known:
        table[say("column.right")] = [say("n_of_all", n=judged.n_right, all=known) for judged in found]
    table[say("column.own")] = [_log(judged.own) for judged in found]
    if any(judged.causal is not None for judged in found):
        table[say("column.causal")] = [_log(judged.causal) for judged in found]
    if any(judged.possible is not None for judged in found):
        table[say("column.possible")] = [say("yes") if judged.possible else say("no") for judged in found]
        table[say("column.exact")] = [_log(judged.exact, "−∞") for judged in found]
    config = {name: st.column_config.TextColumn(alignment="right") for name in list(table)[1:]}
    st.dataframe(table, hide_index=True, column_config=config, key="masking_fill_table")
    n = counted(fill_data.sweeps(len(both.hidden), int(st.session_state[SWEEPS])), "sweep")
    st.caption(say("own_ln_p_fillers", n=n))


def _log(x: float | None, otherwise: str = "–") -> str:
    return otherwise if x is None else f"{x:.3f}".replace("-", "−")
