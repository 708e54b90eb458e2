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
from viz.masking import fate_color, fate_map

SEED, EPOCH = "masking_batch_seed", "masking_epoch"
SHARE = 0.15
EPOCHS = 12
DRAWS = 1000
WIDEST = 48  # columns of the map of epochs
SCROLLS = 60  # tokens


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
    st.write(
        "Training chooses each token with a chance of 15 %. Of the chosen, 80 % become the mask, 10 % a "
        "random token, 10 % stay. The model must give back every chosen one; nothing else is scored."
    )
    if len(both.text.typed) == len(both.text.seen):
        st.info("Every token here is hidden already. Type a word to see what training would hide of it.")
        return
    fixed = _controls()
    seed, epoch = int(st.session_state[SEED]), int(st.session_state[EPOCH])
    of_epoch = partial(
        draw_masks, both.text.ids, mask_prob=SHARE, mask_id=both.mask_id, seed=seed, only_mask=fixed
    )
    row = of_epoch(epoch=0 if fixed else epoch)
    _row(both, row)
    rows = [of_epoch(epoch=0 if fixed else e) for e in range(1, EPOCHS + 1)]
    _epochs(both, rows, epoch, fixed)
    how: dict[str, Any] = {"mask_prob": SHARE, "mask_id": both.mask_id, "seed": seed}
    now = draw_masks(both.text.ids, **how, epoch=epoch)
    counts = count_fates(both.text.ids, now, **how, n_draws=DRAWS)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _table(both, counts)
    with right:
        _nothing(both, counts)
    lesson.try_this(
        lesson.Step("The next epoch: the same row, other masks.", "Next epoch", _epoch, (1,)),
        lesson.Step("A row of four tokens: chance often picks none.", "Four tokens", _four_tokens, (both,)),
        lesson.Step(
            r"A special token in the text: \[MASK\] is never chosen.",
            "A special token", session.set_text, ("Once upon a time, there was a [MASK] called Nora.",),
        ),
        key="batch_try",
    )  # fmt: skip


def _controls() -> bool:
    """The epoch, the seed, and whether the masks are those of an evaluation."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.segmented_control(
            "Masks", ["Training", "Evaluation"], default="Training", required=True, key="masking_masks",
            persist_state="session", help="Evaluation hides the same tokens each time, and only with the "
            "mask: so that two evaluations differ by the model and not by luck.",
        )  # fmt: skip
        st.slider("Epoch", 1, EPOCHS, key=EPOCH, persist_state="session", width=220)
        st.number_input("Seed", 0, 2**31, key=SEED, persist_state="session", width=140)
        st.button("Draw again", key="masking_again", on_click=_again)
    return kind == "Evaluation"


def _row(both: Both, row: MaskDraw) -> None:
    """The input of the row, and under each token its fate and its target."""
    tokenizer = resources.tokenizer(both.masked)
    given = [Token(i, tokenizer.token_bytes(i), "", 0, 0, 0) for i in row.inputs]
    fates = [
        "−100" if fate == UNSCORED else f"{fate} → {viz.clip(viz.visible(tokenizer.token_bytes(target)), 10)}"
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
            label="Input of one training row, each token with its fate and target",
        )
    st.caption(
        "Above: what the model is given. Below: its fate → the target. Where nothing is asked the target is "
        f"−100, which the loss leaves out: {counted(len(row.scored), 'target')} of "
        f"{counted(len(given), 'position')} here."
    )


def _epochs(both: Both, rows: list[MaskDraw], epoch: int, fixed: bool) -> None:
    """The same row in one epoch after the other."""
    seen = both.text.seen[:WIDEST]
    names = [viz.visible(token.data) for token in seen]
    fig = fate_map(
        names,
        [row.fates[: len(seen)] for row in rows],
        [f"epoch {i + 1}" if not fixed else f"evaluation {i + 1}" for i in range(len(rows))],
        chosen=epoch - 1,
    )
    show(fig, key="masking_epochs")
    n = len(both.text.seen) - len(both.text.typed)
    if fixed:
        words = "An evaluation hides the same tokens every time: its loss moves only when the model does."
    else:
        met = len({i for row in rows for i in row.scored})
        words = (
            f"M is the mask, R a random token, K kept. New masks in each epoch: in {EPOCHS} epochs {met} of "
            f"{counted(n, 'token')} {'was' if met == 1 else 'were'} a target at least once. On average it "
            f"takes {viz.format_number(epochs_to_meet(n, SHARE))} epochs until each one was."
        )
    if len(seen) < len(both.text.seen):
        words += f" Drawn are the first {len(seen)} tokens."
    st.caption(words)


def _table(both: Both, counts: FateCounts) -> None:
    """Many draws of the row against what is promised."""
    st.markdown(f"**{DRAWS:,} draws of this row, against chance**")
    st.table(
        {
            "fate": [count.fate for count in counts.rows],
            "in this draw": [f"{count.here:,}" for count in counts.rows],
            f"in {DRAWS:,} draws": [f"{count.many:,}" for count in counts.rows],
            "expected": [f"{count.expected:,.1f}" for count in counts.rows],
            "bounds": [f"{count.low:,} … {count.high:,}" for count in counts.rows],
            "inside": ["yes" if count.inside else "no" for count in counts.rows],
        },
        hide_index=True,
    )
    fit = counts.fit
    st.caption(
        f"Of honest draws, at most one set in {1 / counts.false_alarm:,.0f} would have any of these counts "
        "(or that of the empty rows) outside its bounds. All four together: χ² = "
        f"{viz.format_number(fit.chi_square)} with {fit.degrees} degrees of freedom, p = "
        f"{viz.format_number(fit.p_value)}. A random token that happens to be the right one counts as kept."
    )
    if both.text.typed:
        st.caption(
            f"\\[MASK\\] itself is a special token: {counts.special_chosen} of "
            f"{DRAWS * len(both.text.typed):,} were chosen, and no random token is ever one."
        )


def _nothing(both: Both, counts: FateCounts) -> None:
    """What happens if chance picks nothing."""
    n = len(both.text.seen) - len(both.text.typed)
    st.markdown("**If chance picks nothing**")
    st.latex(worked_masking.none_chosen(n, SHARE))
    low, high = counts.empty_bounds
    st.write(
        f"This is the chance that a row of {counted(n, 'token')} has no target. Of {DRAWS:,} rows "
        f"{counts.empty:,} had none; expected {counts.empty_expected:,.1f}, bounds {low:,} … {high:,}."
    )
    st.caption(
        "The loss is a mean over the targets of a whole batch, so an empty row does no harm. Of an empty "
        "batch it would be 0 / 0, which is not a number and would destroy the weights. So if a whole batch "
        "has no target, one token is picked evenly by chance: the row above always has one."
    )
