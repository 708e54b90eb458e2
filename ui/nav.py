"""The list of pages, links between them, and the guard of deep links."""

from typing import Any, NamedTuple

import streamlit as st

_MARK = "_from_app"


class PageInfo(NamedTuple):
    """One page: its file is pages/<name>.py and its address /<name>."""

    name: str
    title: str
    icon: str
    help: str

    @property
    def file(self) -> str:
        """Path of the script, from app.py."""
        return f"pages/{self.name}.py"


PAGES = (
    PageInfo("home", "Home", "🏠", "What this is, and one sentence on its way through a model."),
    PageInfo("tokens", "Tokens", "🧩", "How a text becomes numbers, and how different vocabularies cut it."),
    PageInfo("embeddings", "Embeddings", "🧭", "How ids become vectors, and which tokens are alike."),
    PageInfo(
        "next_token", "Next token", "🎯", "What the model expects at every position, and how surprised it is."
    ),
    PageInfo("attention", "Attention", "👀", "Which earlier tokens each head looks at."),
    PageInfo("inside", "Inside", "🔬", "What each layer would say, what each part adds to the guess."),
    PageInfo("compare", "Compare", "⚖️", "Two models on one text: where each is the more surprised."),
    PageInfo("training", "Training", "📈", "Train your own model and watch it learn."),
    PageInfo("experiments", "Experiments", "🧪", "Small studies: a prediction first, then the result."),
    PageInfo("masking", "Masking", "🎭", "Guessing hidden words, against guessing the next one."),
    PageInfo("generation", "Generation", "💬", "Let the model write, and see every draw."),
)


def pages() -> list[Any]:
    """What `st.navigation` takes. The first page is the home page."""
    return [
        st.Page(info.file, title=info.title, icon=info.icon, url_path=info.name, help=info.help)
        for info in PAGES
    ]


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
        st.navigation(pages())
        st.rerun()


def link(name: str, label: str | None = None, **query: str) -> None:
    """A link to a page, by the name of its script. `query` goes into the address."""
    info = next(info for info in PAGES if info.name == name)
    st.page_link(info.file, label=label or info.title, icon=info.icon, query_params=query or None)
