"""The result of a study: its picture, the conclusion, the numbers."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

import viz
from engine import findings
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
X_TITLES = {"context": "context length", "shape": "shape"}


def draw(study: str, runs: list[Outcome], source: str, further: float) -> None:
    """Draw the result of a study whose runs are done.

    Args:
        study: its name.
        runs: its runs, in order.
        source: "own" or "shipped", for the keys.
        further: size of the larger run of a scaling study.
    """
    key = f"experiments_{source}_{study}"
    few, _ = findings.split_larger(runs)
    try:
        finding = findings.find(study, few)
        law = experiment_law.read(study, runs, further) if study in experiment_law.X_TITLES else None
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
            st.caption(say("often_comes_out_otherwise"))
        if law is not None:
            experiment_law.say(law)
        if study in _WORKED:
            with st.expander(say("worked_out_todays_numbers")):
                _WORKED[study](few)
    _numbers(study, runs, key)


def _curves(study: str, runs: Sequence[Outcome]) -> "go.Figure":
    lines, title = curve_lines(study, list(runs))
    floors = [run.floor for run in runs if not math.isnan(run.floor)]
    return run_curves(
        [RunLine(name, x, y, i) for i, (name, x, y) in enumerate(lines)],
        x_title="step", y_title=title, unit=say("bits_per_byte") if study == "tokenizer" else "nats",
        floor=floors[0] if floors and study != "tokenizer" else None, log_y=study == "learning-rate",
    )  # fmt: skip


def _held_out(runs: Sequence[Outcome], key: str) -> None:
    show(_curves("held-out", runs), key=key)


def _worked_gap(runs: Sequence[Outcome]) -> None:
    small, names = runs[0], ("fresh", "training")
    st.markdown(say("gap_end", label=literal(small.label)))
    st.latex(worked_experiments.gap(small.last("val_loss"), small.last("train_loss"), names))


def _contamination(runs: Sequence[Outcome], key: str) -> None:
    doses, found = findings.leak_curves(runs)
    show(leak_figure(doses, found["leaked"], found["clean"], _source_perplexity()), key=key)


def _worked_perplexity(runs: Sequence[Outcome]) -> None:
    st.markdown(say("test_text_all_leaked"))
    st.latex(worked_experiments.perplexity(runs[-1].also("leaked")))


@st.cache_resource(show_spinner="Asking the story grammar …")
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
        names = [run.label for run in runs]
        show(loss_at(names, losses, x_title=X_TITLES[study], floor=runs[0].floor, best=best), key=key)

    return picture


def _tokenizer(runs: Sequence[Outcome], key: str) -> None:
    floors = (
        [floor_of(run.records, "bits_per_byte") or math.nan for run in runs],
        [run.floor for run in runs],
    )
    per_byte, per_token = ([run.last(name) for run in runs] for name in ("bits_per_byte", "val_loss"))
    show(two_measures([run.label for run in runs], per_byte, per_token, floors=floors), key=key)


def _worked_bits(runs: Sequence[Outcome]) -> None:
    best = min(runs, key=lambda run: run.last("bits_per_byte"))
    loss, per = best.last("val_loss"), best.last("bits_per_byte")
    st.markdown(f"{literal(best.label)}:")
    st.latex(worked_experiments.bits_per_byte(loss, loss / (math.log(2) * per)))


def _objectives(runs: Sequence[Outcome], key: str) -> None:
    for column, run in zip(st.columns(2), runs, strict=True):
        causal = run.model.objective == "clm"
        marks = [
            viz.Reference(math.log(run.model.vocab_size), "guessing", "start"),
            viz.Reference(run.floor, say("floor"), "floor"),
        ]
        series = [viz.Series(say("fresh_stories"), *run.line("val_loss"), role="valid")]
        with column:
            about = "" if causal else "about "  # each token is hidden by chance
            st.markdown(say("tokens_scored", label=literal(run.label), about=about, signals=findings.signals(run)))
            fig = viz.loss_curve(series, references=marks, objective=run.model.objective)
            fig.update_yaxes(title_text=say("loss_nats_per_token") if causal else say("loss_nats_per_hidden"),
                             selector={"overlaying": None})  # fmt: skip
            show(fig, key=f"{key}_{run.model.objective}")


def _worked_progress(runs: Sequence[Outcome]) -> None:
    for column, run in zip(st.columns(2), runs, strict=True):
        with column:
            st.markdown(f"{literal(run.label)}:")
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
    with st.expander(say("all_numbers_curves")):
        st.dataframe(
            _table(study, runs), hide_index=True, key=f"{key}_table", placeholder="–",
            column_config={
                name: st.column_config.NumberColumn(format="localized")
                for name in ("weights", say("tokens_text"), say("steps_done"), say("tokens_scored_2"))
            },
        )  # fmt: skip
        if study not in ("held-out", "learning-rate", "objectives"):
            show(_curves(study, runs), key=f"{key}_curves")


def _table(study: str, runs: Sequence[Outcome]) -> dict[str, list[object]]:
    """Columns of the table. The two objectives never share one of a loss or perplexity."""
    columns: dict[str, list[object]] = {
        "run": [run.label for run in runs],
        "weights": [run.parameters for run in runs],
        "tokens of text": [run.train_tokens for run in runs],
        "steps done": [run.step for run in runs],
    }
    if study == "objectives":
        columns["tokens scored"] = [round(findings.signals(run)) for run in runs]
        columns["way to its floor (%)"] = [round(100 * findings.progress(run), 1) for run in runs]
        return columns
    for title, name in ((say("training_loss_nats"), "train_loss"), (say("loss_fresh_stories_nats"), "val_loss")):
        columns[title] = [_rounded(run.last(name)) for run in runs]
    if study == "text-size":
        columns["lowest loss on fresh stories (nats)"] = [_rounded(run.best()) for run in runs]
    columns["bits per byte"] = [_rounded(run.last("bits_per_byte")) for run in runs]
    if study == "contamination":
        for name, values in findings.leak_curves(runs)[1].items():
            columns[f"perplexity, {name}"] = [_rounded(value) for value in values]
    return columns


def _rounded(x: float) -> float | None:
    return None if math.isnan(x) else round(x, 4)
