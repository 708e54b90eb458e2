"""Who is the teacher of this server: a session is asked for the secret once, and keeps that it was right."""

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine import teacher_secret
from engine.owners import owner_hash
from engine.teacher_secret import Guard
from ui import link_address, resources, session
from ui.words import literal
from wording import words

_GIVEN, _PROBLEM = "_teacher_right", "_teacher_right_problem"
say = words("ui.teacher_gate")


# Of this process, by data folder. No cache of Streamlit's: any browser may have all of those forgotten, which
# would let guesses start anew and end every teacher's right.
_GUARDS: dict[str, Guard] = {}
_RIGHTS: dict[tuple[str, str], object] = {}


def _guard() -> Guard:
    home = str(resources.home().absolute())
    return _GUARDS.get(home) or _GUARDS.setdefault(home, Guard(home))


def _right() -> object:
    """What a session holds that gave this secret: an object of the server, which no browser can send."""
    key = (str(_guard().home), _guard().mark())
    return _RIGHTS.get(key) or _RIGHTS.setdefault(key, object())


def is_teacher() -> bool:
    """Whether this session gave the secret, and it is still the same."""
    given = st.session_state.get(_GIVEN)
    if given is None:
        return False
    try:
        return given is _right()
    except ValueError:  # its file is gone and can't be made
        return False


def leave() -> None:
    """Be no teacher any more. For `on_click`."""
    st.session_state.pop(_GIVEN, None)


def ask(key: str) -> None:
    """Draw the field for the secret; nothing for who gave it.

    Args:
        key: begins the keys of the widgets.
    """
    if is_teacher():
        return
    with st.form(f"{key}_secret_form", clear_on_submit=True, width=520):
        st.markdown(say("what"))
        typed = f"{key}_secret"
        st.text_input(
            say("secret"), type="password", key=typed, max_chars=teacher_secret.LONGEST, autocomplete="off"
        )
        st.form_submit_button(
            say("give"), type="primary", key=f"{key}_secret_give", on_click=_try, args=(typed,)
        )
        if problem := st.session_state.pop(_PROBLEM, ""):
            st.error(literal(problem))
    st.caption(_where())


def _where() -> str:
    """Where the secret stands; whoever sits at the machine itself is told the whole path."""
    if teacher_secret.from_environment():
        return say("chosen", variable=teacher_secret.VARIABLE)
    if link_address.from_here():
        return say("file_here", file=literal(str(teacher_secret.path(resources.home()))))
    return say("file", name=teacher_secret.FILE)


def _try(key: str) -> None:
    typed = str(st.session_state.get(key) or "")
    st.session_state[key] = ""  # it stays neither here nor in the browser
    ctx = get_script_run_ctx()
    try:
        who = ctx.session_id if ctx else ""
        _guard().check(typed, who, address=link_address.sender(), browser=owner_hash(session.owner()))
        st.session_state[_GIVEN] = _right()
    except ValueError as error:
        st.session_state[_PROBLEM] = str(error)
