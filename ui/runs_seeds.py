"""What the seed alone changes, and whether a difference between two settings is more than that."""

from collections.abc import Sequence

import streamlit as st

from engine.run_sets import CHECKED_ON, shared_axis
from engine.seed_spread import contrast
from ui import resources, run_choice, runs_choice, session, worked_runs
from ui.runs_choice import RunSet
from ui.runs_tables import Result, written
from ui.words import counted, literal
from viz import format_number
from wording import words

say = words("ui.runs_seeds")

MORE = 4


def draw(sets: Sequence[RunSet], found: Sequence[Result]) -> None:
    """A sentence on each set of one objective, a button for more seeds, and two sets compared."""
    masked = sets[0].objective == "mlm"
    st.subheader(say("title_of_masked") if masked else say("title"))
    st.markdown(say("why"))
    for each, result in zip(sets, found, strict=True):
        _one(each, result)
    if len(sets) > 1:
        _two(sets, found, sets[0].objective)


def _one(each: RunSet, result: Result) -> None:
    what, does = st.columns([3, 2], vertical_alignment="center")
    ended = sum(not info.active for info in each.infos)
    given = {"tag": literal(each.tag), "seeds": counted(len(each.infos), "seed"), "ended": ended}
    said = [say("some_ended", **given) if each.active else say("all_ended", **given)]
    if result.best.n:
        said.append(say("best_loss", loss=literal(written(result.best))))
    what.markdown(" ".join(said))
    if not each.mine:
        does.caption(say("watch_only"))
        return
    with does.container(horizontal=True, horizontal_alignment="right"):
        groups = {info.group for info in each.infos if info.active and info.group}
        for group in sorted(groups):
            st.button(say("stop_repeats"), key=f"runs_stop_{each.id}", on_click=_stop, args=(group,))
        if not groups:
            st.button(
                say("repeat", more=MORE), key=f"runs_repeat_{each.id}", icon=":material/casino:",
                on_click=repeat, args=(each,),
            )  # fmt: skip


def repeat(each: RunSet) -> None:
    """Start the same run with more seeds. For `on_click`."""
    from engine.repeats import more_seeds

    try:
        resources.run_store().start_many(more_seeds(each.infos[0], each.seeds, MORE), session.owner())
    except (ValueError, PermissionError) as error:
        run_choice.problem(str(error))
    else:
        runs_choice.add(each.id)


def _stop(group: str) -> None:
    try:
        resources.run_store().stop_group(group, session.owner())
    except (ValueError, PermissionError) as error:
        run_choice.problem(str(error))


def _two(sets: Sequence[RunSet], found: Sequence[Result], key: str) -> None:
    """The two best against each other, or those that are chosen."""
    by_tag = {each.tag: i for i, each in enumerate(sets)}
    measured = [tag for tag, i in by_tag.items() if found[i].best.n]
    measured.sort(key=lambda tag: -found[by_tag[tag]].best.n)
    if len(measured) < 2:
        return
    first, second = measured[:2]
    if len(measured) > 2:
        left, right = st.columns(2)
        first = str(
            left.selectbox(say("compare"), measured, key=f"runs_first_{key}", persist_state="session")
        )
        others = [tag for tag in measured if tag != first]
        second = str(right.selectbox(say("with"), others, key=f"runs_second_{key}", persist_state="session"))
    pair = [by_tag[first], by_tag[second]]
    shared = shared_axis([sets[i].settings for i in pair], "val_loss", compared=True)
    if len(shared.kept) < 2 or len({sets[i].settings[CHECKED_ON] for i in pair}) > 1:
        st.info(say("cant_be_compared"))
        return
    fair = shared.quantity == "bits_per_byte"
    unit = say("bits_per_byte") if fair else say("nats")
    one, two = (found[i].bits_per_byte if fair else found[i].best for i in pair)
    if not (one.n and two.n):
        st.info(say("no_bits_per_byte"))
        return
    for reason in shared.reasons:
        st.caption(reason)
    against = contrast(one, two)
    a, b = literal(first), literal(second)
    size = format_number(abs(against.difference))
    lower = b if against.difference < 0 else a
    if against.clear is None:
        st.info(say("one_seed_each", lower=lower, size=size, unit=unit))
        return
    chance = format_number(against.margin)
    if against.clear:
        st.success(say("more_than_the_seed", lower=lower, size=size, unit=unit, chance=chance))
    else:
        st.warning(say("may_be_chance", lower=lower, size=size, unit=unit, chance=chance))
    st.latex(worked_runs.margin(against, one, two))
    st.caption(say("s_and_t", first=one.n, second=two.n))
