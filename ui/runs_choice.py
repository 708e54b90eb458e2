"""Which runs are looked at side by side: those that repeat each other with other seeds count as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine import run_sets
from engine.run_sets import CHECKED_ON, SEED, Settings
from ui import resources, run_choice, runs_words, session
from ui.words import counted, objective_name
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.runs_choice")

MOST = len(runs_words.LETTERS)
AT_FIRST = 4
_KEY, _TOUCHED, _ADDED = "runs_chosen", "_runs_touched", "_runs_added"


@dataclass(frozen=True, eq=False)
class RunSet:
    """A run, or several that differ in nothing but the seed.

    Attributes:
        infos: its runs, the oldest first.
        settings: of the first.
        letter: its place among the chosen ones; "" before it is chosen.
        tag: a short name that no other chosen one has.
    """

    infos: "tuple[RunInfo, ...]"
    settings: Settings
    letter: str = ""
    tag: str = ""

    @property
    def id(self) -> str:
        """The id of its first run."""
        return self.infos[0].id

    @property
    def objective(self) -> str:
        """`"clm"` or `"mlm"`."""
        return self.infos[0].measure

    @property
    def active(self) -> bool:
        """Whether any of its runs goes on."""
        return any(info.active for info in self.infos)

    @property
    def mine(self) -> bool:
        """Whether they belong to this person."""
        return self.infos[0].owned_by(session.owner())

    @property
    def seeds(self) -> list[int]:
        """Of its runs."""
        return [info.train.seed for info in self.infos]


def offered() -> list[RunSet]:
    """This person's runs and the one opened by a link, in sets, the newest first."""
    mine = resources.run_store().list(session.owner())
    mine.sort(key=lambda info: (info.created, info.id))
    settings = [run_sets.settings(info) for info in mine]
    groups = run_sets.same_but_seed(settings)
    sets = [RunSet(tuple(mine[i] for i in group), settings[group[0]]) for group in groups]
    linked = run_choice.shown()
    if linked is not None and not linked.owned_by(session.owner()):
        sets.append(RunSet((linked,), run_sets.settings(linked)))
    return sorted(sets, key=lambda each: each.infos[-1].created, reverse=True)


def draw(sets: Sequence[RunSet]) -> list[RunSet]:
    """The choice; gives what is chosen, with letters and tags."""
    by_id = {each.id: each for each in sets}
    state = st.session_state
    chosen = list(state.get(_KEY, [])) if state.get(_TOUCHED) else _first(sets)
    chosen += state.pop(_ADDED, [])
    leads = {info.id: each.id for each in sets for info in each.infos}  # a run stands for its set
    state[_KEY] = list(dict.fromkeys(leads[run_id] for run_id in chosen if run_id in leads))[:MOST]
    st.multiselect(
        say("label"),
        list(by_id),
        format_func=lambda run_id: _option(by_id[run_id]) if run_id in by_id else "",
        key=_KEY,
        on_change=_touch,
        max_selections=MOST,
        persist_state="session",
        placeholder=say("placeholder"),
        help=say("help"),
    )
    looked_at = [by_id[run_id] for run_id in state[_KEY]]
    for info in (info for each in looked_at for info in each.infos):
        resources.run_store().opened(info.id)
    return lettered(looked_at)


def _touch() -> None:
    st.session_state[_TOUCHED] = True


def add(*run_ids: str) -> None:
    """Look at these too, from the next run of the page on. For callbacks."""
    st.session_state[_ADDED] = [*st.session_state.get(_ADDED, []), *run_ids]
    _touch()


def _first(sets: Sequence[RunSet]) -> list[str]:
    """The run that is looked at, and the newest few that share its axis."""
    shown = st.query_params.get("run")
    begun = [each for each in sets if any(info.step for info in each.infos)] or list(sets)
    first = next((s for s in sets if shown in {info.id for info in s.infos} and s in begun), None)
    first = first or next(iter(begun), None)
    if first is None:
        return []
    same = [s for s in begun if s is first or _kind(s) == _kind(first)]
    return [first.id, *[s.id for s in same if s is not first][: AT_FIRST - 1]]


def _kind(each: RunSet) -> tuple[Any, ...]:
    return (
        each.objective,
        each.settings[CHECKED_ON],
        each.settings["tokenizer", "tokenizer"],
        each.settings["training", "mask_prob"],
    )


def _option(each: RunSet) -> str:
    info = each.infos[0]
    return " · ".join(
        [
            info.name,
            *([] if each.objective == "clm" else [objective_name(each.objective)]),
            f"{info.train.optimizer} {info.train.learning_rate:g}",
            counted(info.steps, "step"),
            say("seed", seed=info.train.seed) if len(each.infos) == 1 else counted(len(each.infos), "seed"),
        ]
    )


def lettered(sets: Sequence[RunSet]) -> list[RunSet]:
    """The same sets with a letter and a tag each: the name, or what tells them apart if names repeat."""
    names = [each.infos[0].name for each in sets]
    result = []
    for i, each in enumerate(sets):
        letter, own = runs_words.LETTERS[i], names[i]
        namesakes = [other for other, name in zip(sets, names, strict=True) if name == own]
        if len(namesakes) > 1:
            own = _apart(namesakes, namesakes.index(each)) or say("seed", seed=each.seeds[0])
        result.append(RunSet(each.infos, each.settings, letter, f"{letter} {own}"))
    return result


def _apart(sets: Sequence[RunSet], i: int) -> str:
    """The first two settings by which one set differs from others of its name, in words."""
    rows = run_sets.differences([each.settings for each in sets])
    said = [row for row in rows if (row.part, row.name) != SEED]
    if any(row.name == "tokenizer" for row in said):
        said = [row for row in said if row.name != "vocab_size"]  # another one has another size
    return ", ".join(runs_words.brief(row, i) for row in said[:2])
