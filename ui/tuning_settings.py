"""How a model learns further: which of its numbers, how many steps, how fast; one set for each view."""

from typing import Any

import streamlit as st

from engine.config import Aim, TrainConfig
from engine.plan import rhythm
from engine.tuning_plan import BATCH_SIZE, BETA, RATES, STEPS
from ui.model_refs import ModelRef
from wording import words

say = words("ui.tuning_settings")

LARGEST_STEPS = 5000
ROWS = BATCH_SIZE  # in a step
MOST_MOMENTS = {False: 12, True: 0}  # kept on the way, of a small and of a large model
AIMS: tuple[Aim, ...] = ("text", "answers", "preferences")
DEFAULTS: dict[str, dict[str, Any]] = {
    aim: {"part": "whole", "blocks": 1, "steps": STEPS[aim], "rate": RATES[aim], "seed": 0} for aim in AIMS
}
DEFAULTS["preferences"]["beta"] = BETA


def key(aim: str, name: str) -> str:
    """Session key of a setting's widget."""
    return f"tuning_{name}_{aim}"


def value(aim: str, name: str) -> Any:
    """A setting as it stands."""
    return st.session_state.get(key(aim, name), DEFAULTS[aim][name])


def fill(aim: str, **settings: Any) -> None:
    """Change settings. For callbacks."""
    for name, new in settings.items():
        st.session_state[key(aim, name)] = new


def last_blocks(aim: str, ref: ModelRef, n_layer: int) -> int | None:
    """How many of the last blocks learn; None for the whole model, which of a large one is too much."""
    if value(aim, "part") == "whole" and not ref.large:
        return None
    return max(1, min(int(value(aim, "blocks")), n_layer))


def draw(aim: str, ref: ModelRef, n_layer: int) -> None:
    """The widgets.

    Args:
        aim: "text", "answers" or "preferences".
        ref: the start.
        n_layer: its blocks.
    """
    for name, default in DEFAULTS[aim].items():
        st.session_state.setdefault(key(aim, name), default)
    parts = say.table("part")
    if ref.large:
        del parts["whole"]
        st.caption(say("large"))
    if value(aim, "part") not in parts:
        fill(aim, part=next(iter(parts)))
    st.segmented_control(
        say("label.part"), list(parts), format_func=lambda name: parts.get(name, str(name)),
        key=key(aim, "part"), persist_state="session", required=True, wrap=True, help=say("help.part"),
    )  # fmt: skip
    if value(aim, "part") != "whole":
        fill(aim, blocks=last_blocks(aim, ref, n_layer))
        st.number_input(
            say("label.blocks", n=n_layer), 1, n_layer, key=key(aim, "blocks"), persist_state="session"
        )
    a, b = st.columns(2)
    a.number_input(
        say("label.steps"), 1, LARGEST_STEPS, step=50, key=key(aim, "steps"), persist_state="session"
    )
    b.number_input(
        say("label.seed"), 0, 999_999, key=key(aim, "seed"), persist_state="session", help=say("help.seed")
    )
    st.number_input(
        say("label.rate"), 1e-6, 1.0, step=1e-4, format="%g", key=key(aim, "rate"), persist_state="session",
        help=say("help.rate"),
    )  # fmt: skip
    if "beta" in DEFAULTS[aim]:
        st.number_input(
            say("label.beta"), 0.01, 10.0, step=0.05, format="%g", key=key(aim, "beta"),
            persist_state="session", help=say("help.beta"),
        )  # fmt: skip


def train_config(aim: Aim, ref: ModelRef, n_layer: int, **more: Any) -> TrainConfig:
    """The chosen way to learn.

    Args:
        aim: "text", "answers" or "preferences".
        ref: the start.
        n_layer: its blocks.
        more: further settings.

    Raises:
        ValueError: if a number is out of its range.
    """
    steps = int(value(aim, "steps"))
    more |= {**rhythm(steps), "moments": MOST_MOMENTS[ref.large]}
    if "beta" in DEFAULTS[aim]:
        more["beta"] = float(value(aim, "beta"))
    return TrainConfig(
        steps=steps,
        batch_size=ROWS,
        learning_rate=float(value(aim, "rate")),
        warmup_steps=min(10, steps // 10),
        seed=int(value(aim, "seed")),
        aim=aim,
        last_blocks=last_blocks(aim, ref, n_layer),
        **more,
    )
