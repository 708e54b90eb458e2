"""Quiet lines above a page: who set it up, which class it belongs to, what of a link was not understood."""

import streamlit as st

from ui import class_links, link_hidden
from ui.model_refs import ModelRef
from ui.words import literal
from viz import clip
from wording import words

say = words("ui.link_notice")


def draw(n_bad: int) -> None:
    """Before the page.

    Args:
        n_bad: how many hidden things of the link are unknown.
    """
    if n_bad:
        with st.container(key="link_odd_names"):
            st.caption(say("odd_names", n=n_bad))
    link_hidden.notice()
    class_links.notice()


def missing(model: str, shown: ModelRef) -> None:
    """Above the page: the model that was asked for is not here, and which one is looked at in its place."""
    with st.container(key="link_missing_model"):
        st.warning(say("missing_model", model=literal(clip(model, 60)), shown=literal(shown.label)))


def ignored(n_bad: int) -> None:
    """After the page: how many settings of the link could not be used."""
    if n_bad:
        with st.container(key="link_ignored"):
            st.caption(say("ignored", n=n_bad))
