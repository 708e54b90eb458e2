"""The link that opens what is on the screen now, and what a teacher can choose about it."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ui import address, language, link_address, link_hidden, link_qr, link_settings, nav, resources, session
from ui.components.controls import Control, controls
from ui.words import literal
from wording import LANGUAGES, words

say = words("ui.link_panel")
OWN = ""  # each student's own language; no class
_OURS = (link_settings.NAME, link_hidden.NAME, language.KEY, "class", "projector")
_FRAME = ("model", "text", "lang", "menu", "sidebar", "try")


def button() -> None:
    """The way to the panel, in the sidebar of each page. Called after the page, whose state it takes."""
    if st.button(say("open"), key="link_open", icon=":material/share:", width="stretch"):
        _dialog()()


def _dialog() -> Any:
    return st.dialog(say("title"), width="large", icon=":material/share:")(draw)


def query(page: str, hidden: list[str], spoken: str = OWN, code: str = OWN) -> dict[str, str]:
    """What of a link stands after its question mark: all that is on the screen now.

    Args:
        page: name of the page's script.
        hidden: names for `link_hidden`.
        spoken: a language; each student's own if empty.
        code: of a class to join, if any.
    """
    asked = {name: value for name, value in st.query_params.items() if name not in _OURS}
    model = session.model()
    if model is not None:
        asked["model"] = model.id  # also where it is the first of the list: elsewhere another may be
    text = session.text()
    if text != session.DEFAULT_TEXT:
        asked["text"] = text
    asked[link_settings.NAME] = link_settings.written(link_settings.current(page))
    asked[link_hidden.NAME] = link_hidden.written(hidden)
    asked |= {language.KEY: spoken, "class": code}
    return {name: value for name, value in asked.items() if value}


def draw() -> None:
    """The panel."""
    page = address.page()
    st.markdown(say("what", page=literal(nav.title(page))))
    left, right = st.columns([3, 2], gap="large")
    with left:
        hidden = _what_students_see(controls(key="link_controls"))
        spoken, code = _language(), _class()
        url = _where()
    asked = query(page, hidden, spoken, code)
    whole = link_address.link(url, page, asked)
    with right:
        _code(whole)
    _warn(asked, whole)
    st.code(whole, language=None, wrap_lines=True)
    if st.session_state.get("link_large"):
        _large(whole)


def _what_students_see(found: list[Control]) -> list[str]:
    """Boxes for the frame, the controls and the views; gives the names of what is not ticked."""
    names: list[str] = []
    with st.expander(say("students_see"), key="link_see"):
        st.caption(say("untick"))
        names += _boxes(say("frame"), {name: say(f"part.{name}") for name in _FRAME})
        views = address.choices()
        shown = {
            address.option_name(key, name): f"{label}: {option}"
            for key, (label, options) in views.items()
            if key not in ("model", "lang") and len(options) > 1
            for name, option in options.items()
        }
        names += _boxes(say("controls"), {one.key: one.label for one in found})
        names += _boxes(say("views"), shown)
        if names and not st.toggle(say("may_show_all"), True, key="link_may_show"):
            names.append(link_hidden.LOCKED)
    return names


def _boxes(title: str, shown: Mapping[str, str]) -> list[str]:
    if not shown:
        return []
    st.markdown(f"**{title}**")
    with st.grid(2, min_column_width=180, gap="xsmall"):
        return [
            name
            for name, label in shown.items()
            if not st.checkbox(literal(label), True, key=f"link_see_{name}")
        ]


def _language() -> str:
    names = {OWN: say("own_language"), **LANGUAGES}
    return str(
        st.selectbox(say("language"), list(names), format_func=lambda name: names[name], key="link_language")
    )


def _class() -> str:
    from ui import class_links

    made = class_links.store().of(session.owner())
    if not made:
        return OWN
    names = {OWN: say("no_class"), **{one.code: class_links.title(one) for one in made}}
    return str(
        st.selectbox(say("class"), list(names), format_func=lambda code: names.get(code, code), key="link_class")
    )


def _where() -> str:
    """The server's address; on a server for this machine alone, the one in the network, to be changed."""
    own = link_address.base()
    if not link_address.is_local(own):
        return own
    typed = st.text_input(
        say("address"), link_address.in_network(own), key="link_address", max_chars=200, help=say("address_help")
    )
    st.caption(say("only_here", command="streamlit run app.py --server.address 0.0.0.0"))
    found = link_address.checked(typed)
    if found is None:
        st.warning(say("no_address"))
    return found or own


def _code(link: str) -> None:
    made = link_qr.code(link)
    if made is None:
        st.info(say("no_code", n=len(link), most=link_qr.MOST))
        return
    with st.container(key="link_qr", width=240):
        st.html(link_qr.svg(made, title=say("qr_title")))
    with st.container(horizontal=True):
        for kind in ("png", "svg"):
            st.download_button(
                kind.upper(), link_qr.file(made, kind), f"loupe-link.{kind}", f"image/{'svg+xml' if kind == 'svg' else kind}",
                key=f"link_{kind}", on_click="ignore", icon=":material/download:",
            )  # fmt: skip
    st.toggle(say("large"), key="link_large", help=say("large_help"))


def _large(link: str) -> None:
    made = link_qr.code(link)
    if made is not None:
        with st.container(key="link_qr_large"):
            st.html(link_qr.svg(made, title=say("qr_title")))


def _warn(asked: Mapping[str, str], link: str) -> None:
    """What of the screen a link can't bring along, each with another way."""
    model = session.model()
    if "text" in asked and len(link) > link_address.LONGEST:
        st.warning(say("too_long", n=len(link), most=link_address.LONGEST))
    if model is not None and model.id not in {ref.id for ref in resources.shipped_models()}:
        st.warning(say("own_model", model=literal(model.label)))
