"""The link that opens what is on the screen now, and what a teacher can choose about it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import streamlit as st

from ui import address, language, link_address, link_hidden, link_qr, link_settings, model_refs, nav, session
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
    asked["text"] = text if text != session.DEFAULT_TEXT and not _is_long(text) else ""
    asked[link_settings.NAME] = link_settings.written(link_settings.current(page))
    asked[link_hidden.NAME] = link_hidden.written(hidden)
    asked |= {language.KEY: spoken, "class": code}
    return {name: value for name, value in asked.items() if value}


def _is_long(text: str) -> bool:
    return len(quote(text)) > link_address.LONGEST


def draw() -> None:
    """The panel."""
    page = address.page()
    st.markdown(say("what", page=literal(nav.title(page))))
    top = st.container()
    left, right = st.columns([3, 2], gap="large")
    with left:
        hidden = _what_students_see(controls(key="link_controls"))
        spoken, room = _language(), _class()
        url = where("link_address")
    asked = query(page, hidden, spoken, room)
    whole = link_address.link(url, page, asked)
    with right:
        wanted = code(whole, prefix="link")
    _warn(asked, whole)
    st.code(whole, language=None, wrap_lines=True)
    if wanted:
        with top:
            large(whole, prefix="link")


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
        st.selectbox(
            say("class"), list(names), format_func=lambda code: names.get(code, code), key="link_class"
        )
    )


def where(key: str) -> str:
    """The server's address; on a server for this machine alone, the one in the network, to be changed."""
    own = link_address.base()
    if not link_address.is_local(own):
        return own
    typed = st.text_input(
        say("address"), link_address.in_network(own), key=key, max_chars=200, help=say("address_help")
    )
    if link_address.serves_only_here():
        st.caption(say("only_here", command="streamlit run app.py --server.address 0.0.0.0"))
    found = link_address.checked(typed)
    if found is None:
        st.warning(say("no_address"))
    return found or own


def code(link: str, *, prefix: str) -> bool:
    """The QR code of a link, its files, and whether it is wanted large.

    Args:
        link: the link.
        prefix: of the session keys.
    """
    made = link_qr.code(link)
    if made is None:
        st.info(say("no_code", n=len(link), most=link_qr.MOST))
        return False
    with st.container(key=f"{prefix}_qr", width=240):
        st.image(link_qr.svg(made), alt=say("qr_title"), width="stretch")
    with st.container(horizontal=True):
        for kind, mime in (("png", "image/png"), ("svg", "image/svg+xml")):
            st.download_button(
                kind.upper(), link_qr.file(made, kind), f"loupe-link.{kind}", mime, key=f"{prefix}_{kind}",
                on_click="ignore", icon=":material/download:",
            )  # fmt: skip
    return st.toggle(say("large"), key=f"{prefix}_qr_large_on", help=say("large_help"))


def large(link: str, *, prefix: str) -> None:
    """The QR code as wide as its place."""
    made = link_qr.code(link)
    if made is not None:
        with st.container(key=f"{prefix}_qr_large"):
            st.image(link_qr.svg(made), alt=say("qr_title"), width="stretch")


def _warn(asked: Mapping[str, str], link: str) -> None:
    """What of the screen a link can't bring along, each with another way."""
    model = session.model()
    text = session.text()
    if _is_long(text):
        st.warning(say("long_text", n=len(quote(text)), most=link_address.LONGEST))
        st.download_button(
            say("text_file"), text, "text.txt", "text/plain", key="link_text", on_click="ignore"
        )
    elif len(link) > link_address.LONGEST:
        st.warning(say("too_long", n=len(link), most=link_address.LONGEST))
    if model is not None and model.id not in {ref.id for ref in model_refs.shipped_models()}:
        st.warning(say("own_model", model=literal(model.label)))
