"""What a teacher's link hides: parts of the frame, single controls, views. A student may bring them back.

The parameter `hidden` names them, separated by dots. Hidden things are not drawn by the browser at all, so
the keyboard can't reach them either; hidden views are not offered.
"""

import re

import streamlit as st

from ui import address
from wording import words

NAME = "hidden"
MOST = 60  # names in a link
LOCKED = "locked"  # the student is not offered to bring everything back
_GIVEN, _SHOWN = "_link_hidden", "_link_hidden_shown"
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
say = words("ui.link_hidden")

# Parts of the frame, and where they are.
PARTS = {
    "model": ".st-key-model, .st-key-model_badge",
    "text": ".st-key-text, .st-key-text_repaired",
    "lang": ".st-key-lang",
    "menu": '[data-testid="stTopNav"], [data-testid="stSidebarNav"], [data-testid="stSidebarNavSeparator"]',
    "sidebar": '[data-testid="stSidebar"], [data-testid="stExpandSidebarButton"]',
    "try": '[class*="st-key-try_this"]',
}
# What nobody may hide: the notices, and what belongs to the frame's own work.
_NEVER = re.compile(r"(link|class_link|people|frame)_.*")


def read(raw: str) -> tuple[list[str], int]:
    """The names of a parameter that can be used, and how many can't.

    >>> read("model.view-table.model.<b>.link_notice")
    (['model', 'view-table'], 2)
    """
    given = raw[:6000].split(".")
    good = [name for name in dict.fromkeys(given) if _SLUG.fullmatch(name) and not _NEVER.fullmatch(name)]
    n_bad = len([name for name in given if name and name not in good]) + (len(raw) > 6000)
    return good[:MOST], n_bad + max(len(good) - MOST, 0)


def written(names: list[str]) -> str:
    """Names as the parameter holds them."""
    return ".".join(dict.fromkeys(names))


def names() -> list[str]:
    """What is hidden now."""
    given = st.session_state.get(_GIVEN)
    return [] if not given or st.session_state.get(_SHOWN) == given else read(given)[0]


def begin() -> int:
    """Take over what the address hides, and hide it. The frame does this before it draws anything.

    Returns:
        How much of the parameter was not understood.
    """
    is_news, linked = address.news(NAME)
    state = st.session_state
    if is_news:
        state[_GIVEN] = linked
    given = state.get(_GIVEN)
    address.write(NAME, given)
    address.hide(names())
    if css := style(names()):
        st.html(f"<style>{css}</style>")
    return read(given)[1] if given else 0


def style(hidden: list[str]) -> str:
    """The rule that takes things off the screen and out of the keyboard's way."""
    places = [PARTS.get(name, f".st-key-{name}") for name in hidden if name != LOCKED]
    places += [".st-key-link_open"] if places else []  # a student has no class to send it to
    return f"{', '.join(places)} {{ display: none !important; }}" if places else ""


def notice() -> None:
    """Say that the view was set up, and offer everything."""
    given = st.session_state.get(_GIVEN)
    if not given or not read(given)[0]:
        return
    hides = bool(names())
    with st.container(horizontal=True, vertical_alignment="center", key="link_notice"):
        st.caption(say("set_up") if hides else say("all_shown"), width="content")
        if not hides:
            st.button(say("hide_again"), key="link_hide", type="tertiary", on_click=_show, args=(None,))
        elif LOCKED not in names():
            st.button(say("show_all"), key="link_show", type="tertiary", on_click=_show, args=(given,))


def _show(given: str | None) -> None:
    st.session_state[_SHOWN] = given
