"""How a masked batch is made: every token's fate, other masks in each epoch, and counts against chance."""

import secrets
from functools import partial
from typing import Any

import streamlit as st

import viz
from engine.mask_draws import (
    MASK,
    UNSCORED,
    FateCounts,
    MaskDraw,
    count_fates,
    draw_masks,
    epochs_to_meet,
)
from engine.tokenizers import Token
from ui import lesson, resources, session, worked_masking
from ui.components import show, token_strip
from ui.hiding import Both
from ui.words import counted
from viz.masking import fate_color, fate_map, fate_name
from wording import words

say = words("ui.masking_batch")

SEED, EPOCH = "masking_batch_seed", "masking_epoch"
SHARE = 0.15
EPOCHS = 12
DRAWS = 1000
WIDEST = 48  # columns of the map of epochs
SCROLLS = 60  # tokens
SPECIAL = "Once upon a time, there was a [MASK] called Nora."


def _again() -> None:
    st.session_state[SEED] = secrets.randbelow(1_000_000)


def _epoch(step: int) -> None:
    st.session_state[EPOCH] = (int(st.session_state.get(EPOCH, 1)) - 1 + step) % EPOCHS + 1


def _four_tokens(both: Both) -> None:
    """Keep the first four tokens of the example. For `on_click`."""
    ids = resources.tokenizer(both.masked).encode(session.DEFAULT_TEXT)[:4]
    session.set_text(resources.tokenizer(both.masked).decode(ids))


def draw(both: Both) -> None:
    """Draw the view."""
    st.session_state.setdefault(SEED, 1)
    st.session_state.setdefault(EPOCH, 1)
    st.write(say("training_chooses_each_token"))
    if len(both.text.typed) == len(both.text.seen):
        st.info(say("every_token_here_hidden"))
        return
    fixed = _controls()
    seed, epoch = int(st.session_state[SEED]), int(st.session_state[EPOCH])
    how: dict[str, Any] = {
        "mask_prob": SHARE, "mask_id": both.mask_id, "n_ids": both.n_ids, "special_ids": both.special_ids,
        "seed": seed,
    }  # fmt: skip
    of_epoch = partial(draw_masks, both.text.ids, only_mask=fixed, **how)
    row = of_epoch(epoch=0 if fixed else epoch)
    _row(both, row)
    rows = [of_epoch(epoch=0 if fixed else e) for e in range(1, EPOCHS + 1)]
    _epochs(both, rows, epoch, fixed)
    now = draw_masks(both.text.ids, **how, epoch=epoch)
    counts = count_fates(both.text.ids, now, **how, n_draws=DRAWS)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _table(both, counts)
    with right:
        _nothing(both, counts)
    lesson.try_this(
        lesson.Step(say("next_epoch_same_row"), say("next_epoch"), _epoch, (1,)),
        lesson.Step(say("row_four_tokens_chance"), say("four_tokens"), _four_tokens, (both,)),
        lesson.Step(
            say("special_token_text_mask"),
            say("special_token"), session.set_text, (SPECIAL,),
        ),
        key="batch_try",
    )  # fmt: skip


def _controls() -> bool:
    """The epoch, the seed, and whether the masks are those of an evaluation."""
    kinds = say.table("kinds")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.segmented_control(
            say("masks"), list(kinds), default="training", required=True, key="masking_masks",
            format_func=kinds.__getitem__, persist_state="session", help=say("evaluation_hides_same_tokens"),
        )  # fmt: skip
        st.slider(say("epoch"), 1, EPOCHS, key=EPOCH, persist_state="session", width=220)
        st.number_input(say("seed"), 0, 2**31, key=SEED, persist_state="session", width=140)
        st.button(say("draw_again"), key="masking_again", on_click=_again)
    return kind == "evaluation"


def _row(both: Both, row: MaskDraw) -> None:
    """The input of the row, and under each token its fate and its target."""
    tokenizer = resources.tokenizer(both.masked)
    given = [Token(i, tokenizer.token_bytes(i), "", 0, 0, 0) for i in row.inputs]
    fates = [
        "−100"
        if fate == UNSCORED
        else f"{fate_name(fate)} → {viz.clip(viz.visible(tokenizer.token_bytes(target)), 10)}"
        for fate, target in zip(row.fates, row.targets, strict=True)
    ]
    long = len(given) > SCROLLS
    with st.container(height=210 if long else "content", border=long):
        token_strip(
            [[token] for token in given],
            key="masking_batch",
            values=fates,
            colors=[fate_color(fate) for fate in row.fates],
            hidden=[i for i, fate in enumerate(row.fates) if fate == MASK],
            label=say("input_one_training_row"),
        )
    st.caption(
        say(
            "above_what_model_given",
            n_scored=counted(len(row.scored), "target"),
            n_given=counted(len(given), "position"),
        )
    )


def _epochs(both: Both, rows: list[MaskDraw], epoch: int, fixed: bool) -> None:
    """The same row in one epoch after the other."""
    seen = both.text.seen[:WIDEST]
    names = [viz.visible(token.data) for token in seen]
    fig = fate_map(
        names,
        [row.fates[: len(seen)] for row in rows],
        [say("nth_evaluation", n=i + 1) if fixed else say("nth_epoch", n=i + 1) for i in range(len(rows))],
        chosen=epoch - 1,
    )
    show(fig, key="masking_epochs")
    n = len(both.text.seen) - len(both.text.typed)
    if fixed:
        told = [say("evaluation_hides_same_tokens_2")]
    else:
        met = len({i for row in rows for i in row.scored})
        told = [
            say("letters"),
            say("new_masks", n=met, epochs=EPOCHS, tokens=counted(n, "token")),
            say("until_all", epochs=viz.format_number(epochs_to_meet(n, SHARE))),
        ]
    if len(seen) < len(both.text.seen):
        told.append(say("drawn_first_tokens", n_seen=len(seen)))
    st.caption(" ".join(told))


def _table(both: Both, counts: FateCounts) -> None:
    """Many draws of the row against what is promised."""
    st.markdown(say("draws_of_row", draws=DRAWS))
    st.table(
        {
            say("column.fate"): [fate_name(count.fate) for count in counts.rows],
            say("column.here"): [f"{count.here:,}" for count in counts.rows],
            say("column.many", draws=DRAWS): [f"{count.many:,}" for count in counts.rows],
            say("column.expected"): [f"{count.expected:,.1f}" for count in counts.rows],
            say("column.bounds"): [f"{count.low:,} … {count.high:,}" for count in counts.rows],
            say("column.inside"): [say("yes") if count.inside else say("no") for count in counts.rows],
        },
        hide_index=True,
    )
    fit = counts.fit
    st.caption(
        say(
            "honest_draws_most_one",
            sets=1 / counts.false_alarm,
            chi_square=viz.format_number(fit.chi_square),
            degrees=fit.degrees,
            p_value=viz.format_number(fit.p_value),
        )
    )
    if both.text.typed:
        st.caption(
            say(
                "mask_itself_special_token",
                chosen=counts.special_chosen,
                draws=DRAWS * len(both.text.typed),
            )
        )


def _nothing(both: Both, counts: FateCounts) -> None:
    """What happens if chance picks nothing."""
    n = len(both.text.seen) - len(both.text.typed)
    st.markdown(say("if_chance_picks_nothing"))
    st.latex(worked_masking.none_chosen(n, SHARE))
    low, high = counts.empty_bounds
    st.write(
        say(
            "chance_row_has_no",
            n=counted(n, "token"),
            draws=DRAWS,
            empty=counts.empty,
            empty_expected=counts.empty_expected,
            low=low,
            high=high,
        )
    )
    st.caption(say("loss_mean_over_targets"))
