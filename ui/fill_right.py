"""How often each way of filling is right, on stories that no model has learned from; measured on demand."""

import time
from contextlib import suppress

import streamlit as st

from engine import fill, fill_scores
from engine.fill import some_places
from engine.fill_scores import CAUSAL_WAYS, EXACT, KEPT, MASKED_WAYS, SWEEPS, TRIED, StoryScore, WayScore
from ui import resources
from ui.components import show
from ui.fill_data import WAYS
from ui.hiding import Both
from ui.lesson import literal
from ui.model_refs import ModelRef
from ui.words import duration
from viz import format_number
from viz.fill import right_shares
from wording import words

say = words("ui.fill_right")

STORIES, BLANKS, ROW, SEED = (
    "masking_right_stories", "masking_right_blanks", "masking_right_row", "masking_right_seed",
)  # fmt: skip
_ASKED = "_masking_right_asked"
Settings = tuple[int, int, bool, int]
Scores = dict[str, StoryScore]


def draw(both: Both) -> None:
    """Draw the settings, and the measurement once it was asked for."""
    if resources.oracle_for(both.masked) is None:
        st.info(say("measured_stories_whose_true"))
        return
    settings = _settings()
    causal = both.causal if both.same_tokens else None
    asked: set[object] = st.session_state.setdefault(_ASKED, set())
    about = (both.masked.identity, causal.identity if causal else "", settings)
    if about not in asked:
        st.write(say("every_way_fills_same"))
        st.button(say("measure"), key="masking_right_go", type="primary", on_click=asked.add, args=(about,))
        return
    try:
        found = _measure(both.masked, causal, settings)
    except ValueError as error:
        st.warning(literal(str(error)))
        return
    _picture(found)
    _table(found, settings, causal)


def _settings() -> Settings:
    for key, value in ((STORIES, 20), (BLANKS, 5), (ROW, False), (SEED, 1)):
        st.session_state.setdefault(key, value)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.select_slider(say("stories"), [10, 20, 30, 50], key=STORIES, persist_state="session", width=150)
        st.slider(say("blanks_each"), 1, 10, key=BLANKS, persist_state="session", width=150)
        st.number_input(say("seed_stories"), 0, 2**31, key=SEED, persist_state="session", width=150)
        st.toggle(
            say("all_row"), key=ROW, persist_state="session", help=say("neighbours_not_tokens_anywhere")
        )
    state = st.session_state
    return int(state[STORIES]), int(state[BLANKS]), bool(state[ROW]), int(state[SEED])


@st.cache_resource(max_entries=8, show_spinner=say.later("telling"))
def _rows(vocabulary: ModelRef, n: int, seed: int, context_length: int) -> list[list[int]]:
    return fill_scores.held_out_rows(resources.tokenizer(vocabulary), n, seed, context_length)


@st.cache_resource(max_entries=1000, show_spinner=False)
def _one_story(
    masked: ModelRef, causal: ModelRef | None, ids: tuple[int, ...], hidden: tuple[int, ...], seed: int
) -> Scores:
    """Every way on one story; the exact answer is left out where it would take too long."""
    oracle = resources.oracle_for(masked)
    assert oracle is not None  # asked before
    guesses = fill.masked_guesses(resources.load(masked).model, resources.tokenizer(masked).mask_id)
    scores = {
        way: fill_scores.score_masked(way, guesses, oracle, ids, hidden, seed=seed) for way in MASKED_WAYS
    }
    if causal is not None:
        model = resources.load(causal).model
        scores |= {way: fill_scores.score_causal(way, model, oracle, ids, hidden) for way in CAUSAL_WAYS}
    with suppress(ValueError):  # too many ways to tell the story: said beside the picture
        scores[EXACT] = fill_scores.score_exact(oracle, ids, hidden)
    return scores


def _measure(masked: ModelRef, causal: ModelRef | None, settings: Settings) -> dict[str, WayScore]:
    """Score all stories, with progress; what is measured once is kept."""
    n, n_blanks, in_a_row, seed = settings
    limit = min(masked.context_length, causal.context_length if causal else masked.context_length)
    rows = _rows(masked, n, seed, limit)
    bar, began = st.empty(), time.monotonic()
    scores: list[Scores] = []
    for i, ids in enumerate(rows):
        hidden = some_places(len(ids), n_blanks, seed * 1000 + i, first=1, in_a_row=in_a_row)
        scores.append(_one_story(masked, causal, tuple(ids), tuple(hidden), seed * 1000 + i))
        done = i + 1
        left = (time.monotonic() - began) / done * (len(rows) - done)
        if left > 0.5:
            bar.progress(
                done / len(rows), say("stories_about_left", done=done, all=len(rows), left=duration(left))
            )
    bar.empty()
    ways = [way for way in WAYS if any(way in each for each in scores)]
    return {way: fill_scores.together([each[way] for each in scores if way in each]) for way in ways}


def _picture(found: dict[str, WayScore]) -> None:
    best = found[EXACT].best if EXACT in found else None
    fig = right_shares(
        [WAYS[way].name for way in found],
        [WAYS[way].objective for way in found],
        [[score.share, score.low, score.high] for score in found.values()],
        [
            [score.n_possible / score.n_stories, score.possible_low, score.possible_high]
            for score in found.values()
        ],
        best=best,
    )
    show(fig, key="masking_right_shares")
    if best is None:
        return
    ways = [way for way in found if way != EXACT]
    top = max(ways, key=lambda way: found[way].share)
    whole = max(ways, key=lambda way: found[way].n_possible)
    n, share = found[whole].n_possible, format_number(100 * found[top].share)
    st.write(
        say(
            "most_tokens_right_here",
            top=WAYS[top].name,
            share=share,
            whole=WAYS[whole].name,
            n=n,
            stories=found[whole].n_stories,
        )
    )


def _table(found: dict[str, WayScore], settings: Settings, causal: ModelRef | None) -> None:
    n_stories = max(score.n_stories for score in found.values())
    st.dataframe(
        {
            say("column.way"): [WAYS[way].name for way in found],
            say("column.right"): [say("n_of_all", n=s.n_right, all=s.n_places) for s in found.values()],
            say("column.interval"): [say("interval", low=s.low, high=s.high) for s in found.values()],
            say("column.possible"): [
                say("n_of_all", n=s.n_possible, all=s.n_stories) for s in found.values()
            ],
            say("column.truth"): [
                "–" if s.true_nats is None else f"{s.true_nats:.4f}" for s in found.values()
            ],
        },
        hide_index=True,
        column_config={
            say("column.truth"): st.column_config.TextColumn(alignment="right"),
        },
        key="masking_right_table",
    )
    notes = [
        say("stories_of_seed", n=n_stories, seed=settings[3]),
        say("intervals_wilsons_tokens_taken"),
        say("gibbs_resampling_last_draw", sweeps=SWEEPS),
        say("rescoring_tries_fillings_keeps", tried=TRIED, kept=KEPT),
        say("last_column_p_hidden"),
        say("average_nobody_gets_more"),
    ]
    if EXACT not in found:
        notes.append(say("exact_answer_would_take"))
    elif (n := found[EXACT].n_stories) < n_stories:
        notes.append(say("exact_answer_stories_others", n=n))
    if causal is None:
        notes.append(say("there_no_causal_model"))
    st.caption(" ".join(notes))
