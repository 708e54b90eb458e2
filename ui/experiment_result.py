"""The result of a study: its picture, the conclusion, the numbers."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

import viz
from engine import findings, study_laws
from engine.outcomes import Outcome
from engine.reading import floor_of
from ui import experiment_law, worked_experiments
from ui.components import show
from ui.experiment_runs import curve_lines
from ui.words import literal
from viz.experiments import leak_figure, loss_at, two_measures
from viz.runs import RunLine, run_curves
from wording import words

if TYPE_CHECKING:
    import plotly.graph_objects as go

say = words("ui.experiment_result")

NARROW = "\u202f"  # a space at which no line ends


def draw(study: str, runs: list[Outcome], source: str, further: float) -> None:
    """Draw the result of a study whose runs are done.

    Args:
        study: its name.
        runs: its runs, in order.
        source: "own" or "shipped", for the keys.
        further: size of the larger run of a scaling study.
    """
    key = f"experiments_{source}_{study}"
    few, _ = study_laws.split_larger(runs)
    try:
        finding = findings.find(study, few)
        law = experiment_law.read(study, runs, further) if study in experiment_law.STUDIES else None
    except ValueError as error:
        st.warning(literal(str(error)))
        show(_curves(study, runs), key=key)
    else:
        if law is not None:
            experiment_law.picture(law, key)
        else:
            _PICTURES[study](few, key)
        st.markdown(f"**{literal(finding.words)}**".replace(" %", NARROW + "%"))
        if not finding.usual:
            st.caption(say("often_otherwise"))
        if law is not None:
            experiment_law.tell(law)
        if study in _WORKED:
            with st.expander(say("worked_out")):
                _WORKED[study](few)
    _numbers(study, runs, key)


def _curves(study: str, runs: Sequence[Outcome]) -> "go.Figure":
    lines, title = curve_lines(study, list(runs))
    floors = [run.floor for run in runs if not math.isnan(run.floor)]
    return run_curves(
        [RunLine(name, x, y, i) for i, (name, x, y) in enumerate(lines)],
        x_title=say("step"), y_title=title,
        unit=say("bits_per_byte") if study == "tokenizer" else say("nats"),
        floor=floors[0] if floors and study != "tokenizer" else None, log_y=study == "learning-rate",
    )  # fmt: skip


def _held_out(runs: Sequence[Outcome], key: str) -> None:
    show(_curves("held-out", runs), key=key)


def _worked_gap(runs: Sequence[Outcome]) -> None:
    small, names = runs[0], (say("fresh"), say("training"))
    st.markdown(say("gap_at_the_end", run=literal(small.name)))
    st.latex(worked_experiments.gap(small.last("val_loss"), small.last("train_loss"), names))


def _contamination(runs: Sequence[Outcome], key: str) -> None:
    doses, found = findings.leak_curves(runs)
    show(leak_figure(doses, found["leaked"], found["clean"], _source_perplexity()), key=key)


def _worked_perplexity(runs: Sequence[Outcome]) -> None:
    st.markdown(say("all_leaked"))
    st.latex(worked_experiments.perplexity(runs[-1].also("leaked")))


@st.cache_resource(show_spinner=say.later("asking"))
def _source_perplexity() -> float:
    """What the true source scores on the test text that leaks."""
    from engine.experiments import source_loss

    return math.exp(source_loss())


def _rates(runs: Sequence[Outcome], key: str) -> None:
    show(_curves("learning-rate", runs), key=key)


def _by_setting(study: str) -> Callable[[Sequence[Outcome], str], None]:
    def picture(runs: Sequence[Outcome], key: str) -> None:
        losses = [run.last("val_loss") for run in runs]
        best = min(range(len(runs)), key=losses.__getitem__)
        names = [run.name for run in runs]
        show(loss_at(names, losses, x_title=say(f"x_title.{study}"), floor=runs[0].floor, best=best), key=key)

    return picture


def _tokenizer(runs: Sequence[Outcome], key: str) -> None:
    floors = (
        [floor_of(run.records, "bits_per_byte") or math.nan for run in runs],
        [run.floor for run in runs],
    )
    per_byte, per_token = ([run.last(name) for run in runs] for name in ("bits_per_byte", "val_loss"))
    show(two_measures([run.name for run in runs], per_byte, per_token, floors=floors), key=key)


def _worked_bits(runs: Sequence[Outcome]) -> None:
    best = min(runs, key=lambda run: run.last("bits_per_byte"))
    loss, per = best.last("val_loss"), best.last("bits_per_byte")
    st.markdown(f"{literal(best.name)}:")
    st.latex(worked_experiments.bits_per_byte(loss, loss / (math.log(2) * per)))


def _objectives(runs: Sequence[Outcome], key: str) -> None:
    for column, run in zip(st.columns(2), runs, strict=True):
        causal = run.model.objective == "clm"
        marks = [
            viz.Reference(math.log(run.model.vocab_size), say("guessing"), "start"),
            viz.Reference(run.floor, say("its_floor"), "floor"),
        ]
        series = [viz.Series(say("fresh_stories"), *run.line("val_loss"), role="valid")]
        with column:
            # each token is hidden by chance
            scored = say("tokens_scored.exactly", n=findings.signals(run))
            if not causal:
                scored = say("tokens_scored.about", n=findings.signals(run))
            st.markdown(f"**{literal(run.name)}**: {scored}")
            fig = viz.loss_curve(series, references=marks, objective=run.model.objective)
            fig.update_yaxes(title_text=say("loss_per_token") if causal else say("loss_per_hidden_token"),
                             selector={"overlaying": None})  # fmt: skip
            show(fig, key=f"{key}_{run.model.objective}")


def _worked_progress(runs: Sequence[Outcome]) -> None:
    for column, run in zip(st.columns(2), runs, strict=True):
        with column:
            st.markdown(f"{literal(run.name)}:")
            start = math.log(run.model.vocab_size)
            st.latex(worked_experiments.progress(start, run.last("val_loss"), run.floor))


_PICTURES: dict[str, Callable[[Sequence[Outcome], str], None]] = {
    "held-out": _held_out,
    "contamination": _contamination,
    "learning-rate": _rates,
    "context": _by_setting("context"),
    "shape": _by_setting("shape"),
    "tokenizer": _tokenizer,
    "objectives": _objectives,
}


_WORKED: dict[str, Callable[[Sequence[Outcome]], None]] = {
    "held-out": _worked_gap,
    "contamination": _worked_perplexity,
    "tokenizer": _worked_bits,
    "objectives": _worked_progress,
}


def _numbers(study: str, runs: list[Outcome], key: str) -> None:
    """All runs in a table, and their curves."""
    titles = say.table("column")
    with st.expander(say("all_numbers_curves")):
        st.dataframe(
            {titles[name]: values for name, values in _table(study, runs).items()},
            hide_index=True, key=f"{key}_table", placeholder="–",
            column_config={
                titles[name]: st.column_config.NumberColumn(format="localized")
                for name in ("weights", "train_tokens", "step", "scored")
            },
        )  # fmt: skip
        if study not in ("held-out", "learning-rate", "objectives"):
            show(_curves(study, runs), key=f"{key}_curves")


def _table(study: str, runs: Sequence[Outcome]) -> dict[str, list[object]]:
    """Columns of the table. The two objectives never share one of a loss or perplexity."""
    columns: dict[str, list[object]] = {
        "run": [run.name for run in runs],
        "weights": [run.parameters for run in runs],
        "train_tokens": [run.train_tokens for run in runs],
        "step": [run.step for run in runs],
    }
    if study == "objectives":
        columns["scored"] = [round(findings.signals(run)) for run in runs]
        columns["way"] = [round(100 * findings.progress(run), 1) for run in runs]
        return columns
    for name in ("train_loss", "val_loss"):
        columns[name] = [_rounded(run.last(name)) for run in runs]
    if study == "text-size":
        columns["lowest"] = [_rounded(run.best()) for run in runs]
    columns["bits_per_byte"] = [_rounded(run.last("bits_per_byte")) for run in runs]
    if study == "contamination":
        for name, values in findings.leak_curves(runs)[1].items():
            columns[name] = [_rounded(value) for value in values]
    return columns


def _rounded(x: float) -> float | None:
    return None if math.isnan(x) else round(x, 4)
