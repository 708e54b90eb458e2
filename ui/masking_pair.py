"""Train a pair on a text of one's own: two runs that differ by their objective alone, then use them here."""

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus
from engine.parameter_parts import parameter_count
from engine.plan import OPTIMIZER, SIZES, Size, make_plan, make_tokenizer
from engine.tokenizers import Tokenizer
from ui import lesson, masking_meaning, model_refs, nav, resources, session, training_settings
from ui.text_choice import TextChoice, usable
from ui.words import STATES, counted, duration, literal, state_name
from viz import format_number
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo
    from engine.runs import RunSpec

say = words("ui.masking_pair")

TEXT = TextChoice("pair", ("pasted", "uploaded", "python-docs", "stories"))
GROUP = "pair-"
KINDS = {"clm": "causal", "mlm": "masked"}  # labels of the runs in their group
LONG = 20_000  # bytes from which on a vocabulary of pieces is learned; a shorter text is cut into characters
STEPS = (100, 200, 400, 800, 1500, 3000)
EXCERPT = 120  # characters of the text that are shown to the new pair
PROBLEM = "_pair_problem"
PAGE_FIRST_VIEW = "one-sentence"
NURSERY = (
    "The cat sat on the mat. The dog sat on the log. The cat saw the dog and the dog saw the cat. The cat "
    "ran up the tree and the dog ran round the tree. The bird in the tree sang to the cat. The cat sat in "
    "the tree and the dog sat on the mat. The bird saw the mat and the dog, and sang to the dog. Then the "
    "dog ran up the log and the cat ran down the tree. "
) * 12


def draw() -> None:
    """Draw the view."""
    st.write(say("two_runs_same_text"))
    left, right = st.columns([3, 2], gap="large")
    st.session_state.setdefault(TEXT.key("paste"), "")
    with left:
        TEXT.draw()
    with right:
        _settings()
    try:
        size, steps = _chosen()
        text, tokenizer = _text()
        st.caption(_in_words(text, tokenizer, size, steps))
        ready = True
    except ValueError as error:
        st.caption(literal(str(error)))
        ready = False
    st.button(
        say("train_both"), key="pair_start", type="primary", icon=":material/play_arrow:",
        on_click=_start, disabled=not ready,
    )  # fmt: skip
    if message := st.session_state.pop(PROBLEM, ""):
        st.error(literal(message))
    _follow()
    lesson.try_this(
        lesson.Step(
            say("nursery_text_small_enough"), say("take"), _paste, (NURSERY,)
        ),
        lesson.Step(
            say("pythons_help_texts_names"),
            say("take_them"), _kind, ("python-docs",),
        ),
        key="pair_try",
    )  # fmt: skip


def _paste(text: str) -> None:
    _kind("pasted")
    st.session_state[TEXT.key("paste")] = text


def _kind(kind: str) -> None:
    st.session_state[TEXT.key("text")] = kind


def _settings() -> None:
    sizes = say.table("size")
    st.segmented_control(
        say("size_both"), [size.name for size in SIZES[:3]], default=SIZES[0].name, required=True,
        key="pair_size", format_func=sizes.__getitem__, persist_state="session",
    )  # fmt: skip
    st.select_slider(say("steps_both"), STEPS, 400, key="pair_steps", persist_state="session")


def _chosen() -> tuple[Size, int]:
    name = st.session_state.get("pair_size", SIZES[0].name)
    return next(size for size in SIZES if size.name == name), int(st.session_state.get("pair_steps", 400))


def _text() -> tuple[Corpus, Tokenizer]:
    """The text and its vocabulary.

    Raises:
        ValueError: if there is no text yet.
    """
    text = TEXT.corpus()
    usable(text)
    return text, _vocabulary(text.sha256, text)


@st.cache_resource(max_entries=8, show_spinner=say.later("learning"))
def _vocabulary(fingerprint: str, _corpus: Corpus) -> Tokenizer:
    return make_tokenizer("bpe" if len(_corpus.text.encode()) > LONG else "characters", _corpus, 512)


def _configs(tokenizer: Tokenizer, size: Size, steps: int) -> tuple[dict[str, ModelConfig], TrainConfig]:
    """The shape of each of the two, and how both learn."""
    shapes = {
        objective: ModelConfig(
            vocab_size=tokenizer.model_vocab_size(objective),
            context_length=size.context_length,
            n_layer=size.n_layer,
            n_head=size.n_head,
            d_model=size.d_model,
            objective=objective,  # type: ignore[arg-type]
            positions="rotary",
        )
        for objective in KINDS
    }
    training = TrainConfig(
        steps=steps,
        batch_size=size.batch_size,
        optimizer=OPTIMIZER,
        learning_rate=training_settings.RATES[OPTIMIZER],
        eval_every=max(5, steps // 24),
        checkpoint_every=max(50, steps // 5),
        moments=24,
    )
    return shapes, training


def specs(text: Corpus, tokenizer: Tokenizer, size: Size, steps: int) -> "list[RunSpec]":
    """The two runs: equal but for the objective and the mask's row.

    Raises:
        ValueError: if the text is too short, with the numbers.
    """
    from engine.runs import RunSpec

    shapes, training = _configs(tokenizer, size, steps)
    plan = make_plan(text, tokenizer, size.context_length)
    mark = hashlib.sha256(f"{text.sha256} {size.name} {steps}".encode()).hexdigest()[:8]
    return [
        RunSpec(
            name=say(f"run.{objective}", text=text.title),
            corpus=text,
            tokenizer=tokenizer,
            model=shapes[objective],
            train=training,
            val_share=plan.val_share,
            group=GROUP + mark,
            label=label,
        )
        for objective, label in KINDS.items()
    ]


def _in_words(text: Corpus, tokenizer: Tokenizer, size: Size, steps: int) -> str:
    """What would be trained, and how long it takes."""
    shapes, training = _configs(tokenizer, size, steps)
    plan = make_plan(text, tokenizer, size.context_length)
    n = [parameter_count(shape) for shape in shapes.values()]
    each = duration(training_settings.seconds(shapes["clm"], training))
    return say(
        "what_is_trained",
        tokens=counted(plan.train_tokens, "token"),
        kinds=counted(tokenizer.vocab_size, "kind"),
        causal=n[0],
        masked=n[1],
        more=n[1] - n[0],
        each=each,
        notice=plan.notice,
    )


def _start() -> None:
    """Start both runs. For `on_click`; pressed twice they are the same two."""
    try:
        text, tokenizer = _text()
        resources.run_store().start_many(specs(text, tokenizer, *_chosen()), session.owner())
    except ValueError as error:
        st.session_state[PROBLEM] = str(error)


def newest() -> "dict[str, RunInfo]":
    """The newest pair of this person, by objective; empty if there is none."""
    mine = [info for info in resources.run_store().list(session.owner()) if info.group.startswith(GROUP)]
    if not mine:
        return {}
    found: dict[str, RunInfo] = {}
    for info in mine:
        if info.group == mine[0].group:
            found.setdefault(info.model.objective, info)
    return found


def _follow() -> None:
    """How far the newest pair is; looks again every second while one of them learns."""
    pair = newest()
    if not pair:
        return
    active = any(info.active for info in pair.values())
    st.subheader(say("newest_pair"))
    ready = _ready(pair)
    st.fragment(_bars, run_every=1.0 if active else None)(active, ready)
    with st.container(horizontal=True, vertical_alignment="center"):
        if active:
            group = next(iter(pair.values())).group
            st.button(say("stop_both"), key="pair_stop", icon=":material/stop:",
                      on_click=partial(resources.run_store().stop_group, group, session.owner()))  # fmt: skip
        st.button(
            say("use_them_here"), key="pair_use", icon=":material/search:", on_click=_use, disabled=not ready,
            help=say("soon_both_have_ended"),
        )  # fmt: skip
        nav.link("training", say("watch_one_training_page"), run=pair["mlm" if "mlm" in pair else "clm"].id)


def _ready(pair: "dict[str, RunInfo]") -> bool:
    """Whether both have ended with something saved: while they learn, each view would show other weights."""
    return len(pair) == 2 and all(info.has_checkpoint and not info.active for info in pair.values())


def _bars(was_active: bool, was_ready: bool) -> None:
    """A bar for each run; the page runs again once when both can be used, and when the last one ends."""
    pair = newest()
    for objective, column in zip(KINDS, st.columns(2, gap="medium"), strict=True):
        info = pair.get(objective)
        if info is None:
            continue
        with column:
            color, icon = STATES.get(info.state, ("gray", ":material/help:"))
            st.progress(
                min(info.step / max(info.steps, 1), 1.0),
                text=say(
                    f"bar.{objective}",
                    state=f":{color}[{icon} {state_name(info.state)}]",
                    step=info.step,
                    steps=info.steps,
                ),
            )
            st.caption(_latest(info))
    ended = was_active and not any(info.active for info in pair.values())
    if ended or _ready(pair) != was_ready:
        st.rerun()


def _latest(info: "RunInfo") -> str:
    """Its newest loss under its own name, how long it will take, and what went wrong."""
    evals = [r for r in resources.run_store().history(info.id) if r["kind"] == "eval"]
    words = [literal(info.message)] if info.message else []
    if evals:
        for key in ("val_loss", "train_loss"):
            if evals[-1].get(key) is not None:
                number = format_number(float(evals[-1][key]))
                words.append(say(f"latest.{info.model.objective}_{key}", loss=number))
                break
    if info.active and info.eta_s:
        words.append(say("about_left", left=duration(info.eta_s)))
    if info.queue_place:
        words.append(say("number_queue", place=info.queue_place))
    return " ".join(words) or say("no_number_yet")


def _use() -> None:
    """Look at a piece of the learned text with the new pair. For `on_click`."""
    pair = newest()
    refs = {ref.id: ref for ref in model_refs.available_models(session.owner())}
    chosen = {objective: refs.get(f"run:{info.id}") for objective, info in pair.items()}
    causal, masked = chosen.get("clm"), chosen.get("mlm")
    if causal is None or masked is None:
        st.session_state[PROBLEM] = say("two_models_have_not")
        return
    session.choose_model(causal.id)
    st.session_state["partner"] = masked.id
    st.session_state["hide"] = PAGE_FIRST_VIEW
    for key in (masking_meaning.FIRST, masking_meaning.SECOND, masking_meaning.WORD):
        st.session_state.pop(key, None)  # texts for the old models, which the new vocabulary may not spell
    if excerpt := _excerpt(pair["clm"]):
        session.set_text(excerpt)


def _excerpt(info: "RunInfo") -> str:
    """The beginning of the text that a run learned from, cut at a space."""
    try:
        with (info.folder / "corpus.txt").open(encoding="utf-8") as file:
            text = file.read(EXCERPT + 1)
    except OSError:
        return ""
    if len(text) <= EXCERPT:
        return text.strip()
    return text[:EXCERPT].rpartition(" ")[0].strip() or text[:EXCERPT]
