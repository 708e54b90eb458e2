"""One study on the screen: the question, the prediction, one's own runs, and the result."""

from typing import TYPE_CHECKING

import streamlit as st

from engine import experiments, findings, study_laws
from engine.outcomes import Outcome, Shipped, outcomes, read_shipped
from engine.predictions import Answer, Predictions
from ui import experiment_result, experiment_runs, people, resources, run_choice, session
from ui.experiment_words import StudyWords, words_of
from ui.words import duration, literal
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo

say = words("ui.experiment_view")

CLOSE = 10.0  # percentage points: so near a predicted number counts as right


def draw(study: str) -> None:
    """Draw a study: nothing of its result is shown before the prediction."""
    words = words_of(study)
    resources.run_store().warm()  # the first run begins at once
    st.subheader(words.question)
    st.markdown(words.setup)
    predicted = _predictions().get(study)
    if predicted is None:
        _ask(study, words)
    own = experiment_runs.mine(study)
    active = any(info.active for info in own)
    found = {} if predicted is None or active else _found(study, own)
    source = _source(study, found) if found else ""
    if predicted is not None:
        _kept(study, words, predicted, found.get(source))
    if source and not experiment_runs.unfinished(study, own):
        _result(study, found[source], source)  # the picture first
        _run_it(study, own, predicted is not None)
        return
    _run_it(study, own, predicted is not None)
    if active:
        experiment_runs.watch(study, own, curves=predicted is not None)
    elif source:
        _result(study, found[source], source)
    elif predicted is not None:
        st.info(say("no_result"))


def _run_it(study: str, own: "list[RunInfo]", ready: bool) -> None:
    """The buttons, and what kept the last press from working."""
    _buttons(study, own, ready)
    experiment_runs.show_problem()
    run_choice.show_room()


# ---- the prediction


def _predictions() -> Predictions:
    return Predictions(resources.run_store().home, session.owner())


def commit(study: str) -> None:
    """Keep what was chosen. For `on_click`."""
    answer = st.session_state.get(f"experiments_guess_{study}")
    if answer is None:
        experiment_runs.problem(say("say_first"))
    else:
        with people.keeping():
            _predictions().commit(study, answer)


def take_back(study: str) -> None:
    """Forget a prediction. For `on_click`."""
    with people.keeping():
        _predictions().take_back(study)


def _ask(study: str, words: StudyWords) -> None:
    """The question, and the button that keeps the answer."""
    key = f"experiments_guess_{study}"
    with st.container(border=True):
        st.markdown(say("first_your_prediction", ask=literal(words.ask)))
        if words.choices:
            st.radio(
                words.ask, list(words.choices), format_func=words.choices.__getitem__, index=None, key=key,
                label_visibility="collapsed", persist_state="session",
            )  # fmt: skip
        else:
            st.number_input(
                say("how_many_percent"), min_value=0.0, max_value=100.0, value=None, step=5.0, key=key,
                format="%.0f", placeholder=say("from_0_to_100"), width=220, persist_state="session",
            )  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                say("my_prediction"), key=f"experiments_commit_{study}", icon=":material/lock:",
                type="primary", on_click=commit, args=(study,),
                # a number counts when its box is left, and the press on this button is what leaves it
                disabled=bool(words.choices) and st.session_state.get(key) is None,
            )  # fmt: skip
            st.markdown(say("result_after"))


def _kept(study: str, words: StudyWords, predicted: Answer, runs: list[Outcome] | None) -> None:
    """What was predicted and, if there is a result, what came."""
    with st.container(border=True):
        st.markdown(f":small[{literal(words.ask)}]")
        first, second, last = st.columns([3, 3, 1], vertical_alignment="center")
        first.markdown(say("predicted_answer", said=literal(words.said(predicted))))
        if runs is not None:
            with second:
                _came(study, words, predicted, runs)
        last.button(
            say("change"), key=f"experiments_again_{study}", type="tertiary", on_click=take_back,
            args=(study,), help=say("change_help"),
        )  # fmt: skip


def _came(study: str, words: StudyWords, predicted: Answer, runs: list[Outcome]) -> None:
    """The answer of the results beside the prediction."""
    try:
        finding = findings.find(study, study_laws.split_larger(runs)[0])
    except ValueError:
        st.markdown(say("no_answer_came"))
        return
    if isinstance(predicted, str):
        right = predicted == finding.answer
        word = say("as_predicted") if right else say("not_as_predicted")
    else:
        off = abs(float(predicted) - float(finding.answer))
        right, word = off <= CLOSE, say("points_off", n=round(off))
    icon = ":material/check_circle:" if right else ":material/compare_arrows:"
    st.markdown(say("what_came", word=word, icon=icon, said=literal(words.said(finding.answer))))


# ---- one's own runs


def _buttons(study: str, own: "list[RunInfo]", ready: bool) -> None:
    """Start, stop, go on, repeat: whichever fits."""
    active = [info for info in own if info.active]
    with st.container(horizontal=True, vertical_alignment="center"):
        if active:
            st.button(
                say("stop"), key="experiments_stop", icon=":material/stop:",
                on_click=experiment_runs.stop, args=(own[0].group,),
            )  # fmt: skip
            return
        if experiment_runs.unfinished(study, own):
            st.button(
                say("go_on"), key="experiments_go_on", icon=":material/play_arrow:", type="primary",
                on_click=experiment_runs.go_on, args=(study,),
            )  # fmt: skip
            st.markdown(say("runs_done", done=sum(map(experiment_runs.done, own)), n=len(own)))
            return
        seed = own[0].train.seed + 1 if own else 0
        specs = list(experiments.study_specs(study, seed))
        n = duration(experiment_runs.seconds(specs))
        st.button(
            say("run_again") if own else say("run_here"), key="experiments_start",
            icon=":material/play_arrow:", type="secondary" if own or not ready else "primary",
            disabled=not ready, on_click=experiment_runs.start, args=(study, seed),
            help=None if ready else say("run_here_help"),
        )  # fmt: skip
        st.markdown(say("runs_here", n=len(specs), time=n))
        _larger_button(study, own)


def _larger_button(study: str, own: "list[RunInfo]") -> None:
    labels = [info.label for info in own]
    if not own or experiments.LARGER in labels:
        return
    spec = experiments.larger_spec(study, own[0].train.seed)
    if spec is None:
        return
    n = duration(experiment_runs.seconds([spec]))
    st.button(
        say("train_larger", time=n), key="experiments_larger", icon=":material/science:",
        type="primary", on_click=experiment_runs.start_larger, args=(study, own[0].train.seed),
    )  # fmt: skip


# ---- the result


@st.cache_resource(show_spinner=False)
def _shipped(study: str) -> Shipped | None:
    return read_shipped(study)


def _found(study: str, own: "list[RunInfo]") -> dict[str, list[Outcome]]:
    """The results that there are: of one's own runs, and those that came with the app."""
    found: dict[str, list[Outcome]] = {}
    mine = outcomes(resources.run_store(), own)
    few, _ = study_laws.split_larger(mine)
    if len(few) == len(experiments.study_specs(study)) and all(run.done for run in few):
        found["own"] = mine
    try:
        shipped = _shipped(study)
    except ValueError as error:
        st.warning(literal(str(error)))
        shipped = None
    if shipped is not None:
        found["shipped"] = list(shipped.outcomes)
    return found


def _source(study: str, found: dict[str, list[Outcome]]) -> str:
    """Whose runs are shown."""
    if len(found) == 1:
        return next(iter(found))
    chosen = st.segmented_control(
        say("whose_runs"), list(found), format_func=lambda name: say(f"source.{name}"), default="own",
        required=True, key=f"experiments_source_{study}", persist_state="session",
        label_visibility="collapsed",
    )  # fmt: skip
    return str(chosen)


def _result(study: str, runs: list[Outcome], source: str) -> None:
    """The result of one's own runs, or the one that came with the app, which says so."""
    further = _further(study, runs)
    shipped = _shipped(study) if source == "shipped" else None
    if shipped is not None and further:
        runs = _hidden_at_first(study, runs)
    experiment_result.draw(study, runs, source, further)
    if shipped is not None:
        st.caption(
            say(
                "made_on",
                made=shipped.made,
                n=len(shipped.outcomes),
                time=duration(shipped.seconds),
                machine=literal(say.table("machine").get(shipped.machine, shipped.machine)),
                seed=shipped.seed,
            )
        )


def _hidden_at_first(study: str, runs: list[Outcome]) -> list[Outcome]:
    """The larger run stays out of sight until it is asked for: first the law has to foretell it."""
    few, larger = study_laws.split_larger(runs)
    if larger is None:
        return few
    shown = st.toggle(say("show_larger"), key=f"experiments_reveal_{study}", persist_state="session")
    return runs if shown else few


def _further(study: str, runs: list[Outcome]) -> float:
    """Size of the larger run of a scaling study; 0 for other studies."""
    _, larger = study_laws.split_larger(runs)
    if larger is not None:
        return study_laws.size_of(study, larger)
    spec = experiments.larger_spec(study)
    if spec is None:
        return 0.0
    return experiments.size_of_spec(study, spec)
