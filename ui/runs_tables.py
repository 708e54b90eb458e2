"""The chosen runs as tables: how they ended, and only those settings in which they differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine import reading, run_sets
from engine.parameter_parts import parameter_count
from engine.seed_spread import Spread, spread
from ui import resources, runs_words
from ui.runs_choice import RunSet
from ui.words import counted, literal, state_name
from viz import format_number
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.runs_tables")


@dataclass(frozen=True)
class Result:
    """How a set of runs ended; each number over its seeds."""

    best: Spread
    last: Spread
    best_step: Spread
    bits_per_byte: Spread
    gap: Spread
    tokens: Spread
    seconds: Spread
    joules: Spread


def result(each: RunSet) -> Result:
    """The numbers of a set of runs, as far as they were measured."""
    columns: dict[str, list[float]] = {name: [] for name in Result.__dataclass_fields__}
    for info in counted_runs(each):
        records = resources.run_store().history(info.id)
        now = reading.read(records, info.n_choices)
        _, bits = reading.quantity(records, "bits_per_byte")
        found = {
            "best": now.best_loss if now else math.nan,
            "last": now.loss if now else math.nan,
            "best_step": now.best_step if now else math.nan,
            "bits_per_byte": min((b for b in bits.tolist() if math.isfinite(b)), default=math.nan),
            "gap": now.best_loss - now.floor if now and now.gap is not None and now.floor else math.nan,
            "tokens": info.step * info.train.batch_size * info.train.longest_row(info.model.context_length),
            "seconds": max((r.get("seconds", 0.0) for r in records), default=math.nan),
            "joules": _joules(info),
        }
        for name, value in found.items():
            columns[name].append(float(value))
    return Result(**{name: spread(values) for name, values in columns.items()})


def counted_runs(each: RunSet) -> "Sequence[RunInfo]":
    """The runs of a set whose numbers may be put together: those that ended and got furthest.

    A seed that is half way, or was stopped early, would look like a spread that is not one.
    """
    ended = [info for info in each.infos if not info.active and info.step]
    furthest = max((info.step for info in ended), default=0)
    return [info for info in ended if info.step == furthest] or each.infos


def _joules(info: "RunInfo") -> float:
    return math.nan if info.joules is None else info.joules


def results(sets: Sequence[RunSet], found: Sequence[Result], quantity: str) -> None:
    """One row a set: its numbers, the mean over seeds where there are several.

    Args:
        sets: of one objective.
        found: their results.
        quantity: in which they can be compared; bits per byte stand first where losses can't be.
    """
    objective = sets[0].objective
    columns: dict[str, list[Any]] = {
        "run": [each.tag for each in sets],
        "state": [_state(each) for each in sets],
        "seeds": [len(each.infos) for each in sets],
        f"best_{objective}": [_mean(r.best) for r in found],
        "std": [_number(r.best.std) for r in found],
        "best_step": [_mean(r.best_step) for r in found],
        "last": [_mean(r.last) for r in found],
        "bits_per_byte": [_mean(r.bits_per_byte) for r in found],
        "gap": [_mean(r.gap) for r in found],
        "weights": [parameter_count(each.infos[0].model) for each in sets],
        "tokens": [_mean(r.tokens) for r in found],
        "seconds": [_mean(r.seconds) for r in found],
        "joules": [_mean(r.joules) for r in found],
    }
    empty = {name for name, values in columns.items() if all(v is None for v in values)}
    if objective != "clm":
        empty.add("bits_per_byte")
    if quantity == "bits_per_byte":
        first = ["run", "state", "bits_per_byte"]
        columns = {name: columns[name] for name in [*first, *(n for n in columns if n not in first)]}
    if all(len(each.infos) == 1 for each in sets):
        empty |= {"seeds", "std"}
    whole = {"seeds", "best_step", "weights", "tokens", "seconds"}
    titles = say.table("column")
    st.dataframe(
        {titles[name]: values for name, values in columns.items() if name not in empty},
        hide_index=True,
        height="content",
        key=f"runs_results_{objective}",
        placeholder="–",
        column_config={
            titles[name]: st.column_config.NumberColumn(format="localized" if name in whole else "%.4g")
            for name in columns
            if name not in empty | {"run", "state"}
        },
        alt=say("how_they_ended"),
    )
    st.caption(say(f"losses.{objective}"))


def _state(each: RunSet) -> str:
    states = [info.state for info in each.infos]
    if len(set(states)) == 1:
        return state_name(states[0])
    if each.active:
        return say("ended", n=sum(not info.active for info in each.infos), all=len(states))
    return ", ".join(f"{states.count(state)} {state_name(state)}" for state in dict.fromkeys(states))


def _mean(s: Spread) -> float | None:
    return _number(s.mean)


def _number(x: float) -> float | None:
    return x if math.isfinite(x) else None


def differences(sets: Sequence[RunSet]) -> None:
    """A table of what differs, and a line of what is alike. Several seeds of one set are no difference."""
    st.subheader(say("what_differs"))
    settings = [_own(each) for each in sets]
    rows = run_sets.differences(settings)
    same = run_sets.alike(settings)
    if rows:
        table: dict[str, list[str]] = {
            "": [runs_words.part(row.part) for row in rows],
            say("setting"): [runs_words.name(row.name) for row in rows],
        }
        cells = [runs_words.cells(row) for row in rows]
        for i, each in enumerate(sets):
            table[each.tag] = [row[i] for row in cells]
        st.dataframe(table, hide_index=True, height="content", key="runs_differences",
                     alt=say("differences_alt"))  # fmt: skip
    elif len(sets) > 1:
        st.markdown(say("nothing_differs"))
    else:
        st.markdown(say("nothing_to_compare"))
    main = literal(runs_words.alike(same, main=True))
    alike = say("alike_in_all", settings=counted(len(same) - 1, "setting"), main=main)
    st.caption(alike if len(sets) > 1 else say("its_settings", main=main))
    with st.expander(say("rest_alike") if len(sets) > 1 else say("rest_settings")):
        st.markdown(literal(runs_words.alike(same, main=False)))


def _own(each: RunSet) -> run_sets.Settings:
    """Settings of a set, its seeds as one value."""
    if len(each.infos) == 1:
        return each.settings
    return {**each.settings, run_sets.SEED: ", ".join(map(str, sorted(each.seeds)))}


def written(s: Spread) -> str:
    """A number over seeds in words: `1.43` or `1.43 (1.41 to 1.46, standard deviation 0.02)`."""
    if s.n < 2:
        return format_number(s.mean, 4)
    mean, low, high = (format_number(x, 4) for x in (s.mean, s.low, s.high))
    return say("over_seeds", mean=mean, low=low, high=high, std=format_number(s.std))
