"""The list of pages, links between them, and the guard of deep links."""

from typing import Any, NamedTuple, NoReturn

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

import wording
from ui import address
from wording import words

_MARK, _PAGES = "_from_app", "_pages"
_EVERYWHERE = ("lang", "model", "text")  # in the address of every page
say = words("ui.nav")


class PageInfo(NamedTuple):
    """One page: its file is pages/<name>.py and its address /<name>."""

    name: str
    section: str
    icon: str

    @property
    def file(self) -> str:
        """Path of the script, from app.py."""
        return f"pages/{self.name}.py"

    @property
    def title(self) -> str:
        """Its name in the menu."""
        return title(self.name)

    @property
    def help(self) -> str:
        """What can be found out there."""
        return say(f"help.{self.name}")


PAGES = (
    PageInfo("home", "learn", "🏠"),
    PageInfo("lessons", "learn", "🎓"),
    PageInfo("examples", "learn", "✏️"),
    PageInfo("exercises", "learn", "✅"),
    PageInfo("guess", "learn", "🎲"),
    PageInfo("glossary", "learn", "📖"),
    PageInfo("tokens", "look", "🧩"),
    PageInfo("embeddings", "look", "🧭"),
    PageInfo("next_token", "look", "🎯"),
    PageInfo("attention", "look", "👀"),
    PageInfo("inside", "look", "🔬"),
    PageInfo("compare", "look", "⚖️"),
    PageInfo("generation", "look", "💬"),
    PageInfo("models", "look", "📦"),
    PageInfo("training", "train", "📈"),
    PageInfo("tuning", "train", "🎛️"),
    PageInfo("experiments", "train", "🧪"),
    PageInfo("masking", "train", "🎭"),
    PageInfo("teacher", "teach", "🧑‍🏫"),
    PageInfo("selftest", "teach", "🩺"),
)


def pages() -> dict[str, list[Any]]:
    """What `st.navigation` takes: the pages by section. The first page is the home page.

    A session keeps them, in its language: to make one, Streamlit looks at every folder on the way to its
    file. They are not shared between sessions, since each notes whether it may be run now.
    """
    spoken, kept = st.session_state.get(_PAGES, ("", {}))
    if spoken != wording.language():
        kept = _made()
        st.session_state[_PAGES] = (wording.language(), kept)
    return dict(kept)


def _made() -> dict[str, list[Any]]:
    sections: dict[str, list[Any]] = {}
    for info in PAGES:
        entry = st.Page(info.file, title=info.title, icon=info.icon, url_path=info.name, help=info.help)
        sections.setdefault(say(f"section.{info.section}"), []).append(entry)
    return sections


def title(name: str) -> str:
    """A page's name in the menu, by the name of its script."""
    return say(f"title.{name}")


def name_of(page: Any) -> str:
    """The name of the script of what `st.navigation` gave."""
    return str(page.url_path or PAGES[0].name)


def mark_app() -> None:
    """Note that app.py has run in this script run. The first line of app.py."""
    st.session_state[_MARK] = True


def require_app() -> None:
    """Go through app.py first. The first line of every page.

    Until some session has run app.py, Streamlit answers a link to a page by running that page alone, without
    the sidebar: a folder named pages/ switches that on. Naming the pages once ends that for the server. The
    mark is used up by each page run, so that a page run alone is always noticed.
    """
    if not st.session_state.pop(_MARK, False):
        st.navigation(pages(), position="top")
        st.rerun()


def end_page() -> NoReturn:
    """End a page early; app.py still draws what stands around it, which `st.stop` would forbid."""
    raise StopException


def file_of(name: str) -> str:
    """Path of a page's script, for `st.switch_page`."""
    return next(info.file for info in PAGES if info.name == name)


def kept_everywhere() -> dict[str, str]:
    """What the address says that is true for all pages: language, model and text."""
    return {key: st.query_params[key] for key in _EVERYWHERE if key in st.query_params}


def link(name: str, label: str | None = None, *, icon: str | None = None, **query: str) -> None:
    """A link to a page, by the name of its script. `query` goes into the address; "" is no icon.

    A link to the page that it stands on keeps what is true for all pages: a name that is missing in the new
    address would be taken as wiped out there.
    """
    info = next(info for info in PAGES if info.name == name)
    query = {**kept_everywhere(), **query} if name == address.page() else query
    st.page_link(
        info.file, label=label or info.title, icon=info.icon if icon is None else icon or None,
        query_params=query or None,
    )  # fmt: skip
