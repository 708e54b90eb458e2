"""The flows that everything here is about, as pictures whose boxes lead to the page where each happens."""

from collections.abc import Collection
from typing import Any, NamedTuple

import streamlit as st

from ui import nav
from ui.components.diagram import boxes
from viz import objective_color
from wording import words

say = words("ui.diagram")


class Box(NamedTuple):
    """One step of a flow: where it happens, and the shape or symbol of what comes out of it."""

    page: str
    query: dict[str, str]
    below: str = ""


# flow -> box -> where it leads; the words stand in the text files under the same names
FLOW = {
    "text": Box("tokens", {}, "“…”"),
    "tokens": Box("tokens", {}, "T"),
    "ids": Box("examples", {"example": "vocabulary"}, "4 8 15"),
    "embeddings": Box("embeddings", {}, "T × d"),
    "attention": Box("attention", {}, "T × T"),
    "logits": Box("inside", {"inside": "logit-lens"}, "T × V"),
    "softmax": Box("examples", {"example": "softmax"}, "eᶻ / Σ eᶻ"),
    "probability": Box("next_token", {}, "Σ p = 1"),
}
MASKED = {
    "hide": Box("masking", {"hide": "masked-batch"}, "15 %"),
    "both-sides": Box("examples", {"example": "causal-mask"}, "T × T"),
    "fill": Box("masking", {"hide": "fill-blanks"}, "p(xₜ | …)"),
    "masked-loss": Box("masking", {"hide": "what-is-paid"}, "≈ 0.15 T"),
}
CAUSAL = {
    "shift": Box("examples", {"example": "shift"}, "yₜ = xₜ₊₁"),
    "left-only": Box("examples", {"example": "causal-mask"}, "1 … t"),
    "next": Box("next_token", {}, "p(xₜ | x₁…)"),
    "causal-loss": Box("next_token", {"look": "surprise"}, "T − 1"),
}
START = {"sentence": Box("masking", {}, "x₁ … xₙ")}
TRAINING = {
    "batch": Box("examples", {"example": "windows"}, "B × T"),
    "forward": Box("training", {"watch": "one-step"}, "B × T × V"),
    "loss": Box("examples", {"example": "batch-loss"}, "−ln p"),
    "backward": Box("examples", {"example": "gradient"}, "∂L/∂θ"),
    "update": Box("training", {"watch": "one-step"}, "θ ← θ − η∇"),
}
WRITING = {
    "crop": Box("examples", {"example": "crop"}, "≤ T"),
    "predict": Box("next_token", {}, "p(xₜ | x₁…)"),
    "pick": Box("generation", {"lab": "draws"}, "u ∈ [0, 1)"),
    "append": Box("examples", {"example": "generation"}, "T + 1"),
}
NAMES = ("flow", "objectives", "training", "writing")
_ALL = FLOW | MASKED | CAUSAL | START | TRAINING | WRITING


def diagram(name: str, lit: Collection[str] = (), *, key: str = "") -> None:
    """Draw a flow; a press on a box opens the page where it happens.

    Args:
        name: "flow" (text to probability), "objectives" (masked against causal), "training" or "writing" (the
            two loops).
        lit: names of the boxes that light up, such as "softmax".
        key: of the component, if a page draws the same flow twice.

    Raises:
        ValueError: for another name, or a box that is not in that flow.
    """
    parts: dict[str, dict[str, Any]] = {
        "flow": {"lanes": [_lane(FLOW, lit)]},
        "objectives": {
            "lanes": [
                _lane(MASKED, lit, color=objective_color("mlm"), label=say("lane.masked")),
                _lane(CAUSAL, lit, color=objective_color("clm"), label=say("lane.causal")),
            ],
            "start": _box("sentence", START["sentence"], lit),
        },
        "training": {"lanes": [_lane(TRAINING, lit)], "back": say("repeat")},
        "writing": {"lanes": [_lane(WRITING, lit)], "back": say("repeat")},
    }
    if name not in parts:
        raise ValueError(f"There is no flow {name!r}: take one of {', '.join(NAMES)}.")
    if unknown := set(lit) - set(boxes_of(name)):
        raise ValueError(f"The flow {name!r} has no box {', '.join(sorted(unknown))}.")
    pressed = boxes(**parts[name], key=key or f"diagram_{name}", label=say(f"label.{name}"))
    if pressed in _ALL:
        to = _ALL[pressed]
        st.switch_page(next(info.file for info in nav.PAGES if info.name == to.page), query_params=to.query)


def boxes_of(name: str) -> dict[str, Box]:
    """The boxes of a flow by their names."""
    flows = {"flow": FLOW, "objectives": START | MASKED | CAUSAL, "training": TRAINING, "writing": WRITING}
    return flows[name]


def _lane(row: dict[str, Box], lit: Collection[str], **more: str) -> dict[str, Any]:
    return {"boxes": [_box(name, box, lit) for name, box in row.items()], **more}


def _box(name: str, box: Box, lit: Collection[str]) -> dict[str, Any]:
    return {
        "name": name,
        "title": say(f"box.{name}"),
        "below": box.below,
        "leads": say("leads", page=nav.title(box.page)),
        "lit": name in lit,
    }
