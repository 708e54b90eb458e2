"""The model as a stack of parts: which of them learn, which are frozen, how many numbers each has."""

import math
from itertools import groupby

import streamlit as st

import viz
from engine.config import ModelConfig
from engine.hub_layout import our_shapes
from engine.trained_part import learns, trained_parameters
from ui.components import show
from viz.tuning import Part, block_stack
from wording import words

say = words("ui.tuning_parts")

MOST_ROWS = 8  # blocks that have a bar each; of more, equal neighbours share one


def draw(config: ModelConfig, last_blocks: int | None, *, key: str) -> None:
    """The picture and its sum.

    Args:
        config: of the start.
        last_blocks: how many blocks at the end learn; None for the whole model.
        key: of the chart.
    """
    show(block_stack(parts(config, last_blocks)), key=key)
    learning, total = trained_parameters(config, last_blocks), trained_parameters(config)
    counts = {"learning": viz.format_count(learning), "total": viz.format_count(total)}
    if last_blocks is None:
        st.caption(say("all_learn", **counts))
        return
    st.caption(say("some_learn", **counts, share=learning / total))
    if config.tie_head:
        st.caption(say("tied"))


def parts(config: ModelConfig, last_blocks: int | None) -> list[Part]:
    """The parts, from the first, which reads the ids, to the last; their counts add up to the whole model."""
    sizes: dict[str, int] = {}
    learning: dict[str, bool] = {}
    for name, shape in our_shapes(config).items():
        part = _part(name)
        sizes[part] = sizes.get(part, 0) + math.prod(shape)
        learning[part] = learns(name, config, last_blocks)
    blocks = [(f"blocks.{i}", sizes[f"blocks.{i}"]) for i in range(config.n_layer)]
    rows = [Part(say("embedding"), sizes["embedding"], learning["embedding"])]
    rows += _blocks([(size, learning[part]) for part, size in blocks])
    if "final_norm" in sizes:
        rows.append(Part(say("final_norm"), sizes["final_norm"], learning["final_norm"]))
    head = learning.get("head", learning["embedding"])
    return [*rows, Part(say("head_tied" if config.tie_head else "head"), sizes.get("head", 0), head)]


def _part(name: str) -> str:
    first, second = (*name.split("."), "")[:2]
    if first == "blocks":
        return f"blocks.{second}"
    if first.startswith("head"):
        return "head"
    return "final_norm" if first == "final_norm" else "embedding"


def _blocks(blocks: list[tuple[int, bool]]) -> list[Part]:
    """A row for each block, or one for equal neighbours where there are many."""
    if len(blocks) <= MOST_ROWS:
        return [Part(say("block", i=i), size, on) for i, (size, on) in enumerate(blocks, 1)]
    rows, at = [], 1
    for (size, on), group in groupby(blocks):
        n = len(list(group))
        name = say("block", i=at) if n == 1 else say("blocks", first=at, last=at + n - 1)
        rows.append(Part(name, n * size, on))
        at += n
    return rows
