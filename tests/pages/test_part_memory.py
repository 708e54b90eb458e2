"""A part of a page lives on after its run, but not what one pass over a text computed for it."""

import gc
import weakref
from typing import Any

import pytest
import streamlit as st
from streamlit.runtime.fragment import MemoryFragmentStorage

from tests.pages.conftest import OpenPage
from ui import passes
from ui.again import Again


@pytest.mark.parametrize("page", ["attention", "embeddings", "inside", "next_token"])
def test_no_part_keeps_a_pass_that_the_caches_let_go(
    open_page: OpenPage, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, read = [], []
    register, trace = MemoryFragmentStorage.register, passes._trace

    def noted(self: Any, key: str, fragment: Any, **how: Any) -> None:
        parts.append(fragment)
        register(self, key, fragment, **how)

    def counted(asked: Any) -> Any:
        made = trace(asked)
        read.append(weakref.ref(made))
        return made

    monkeypatch.setattr(MemoryFragmentStorage, "register", noted)
    monkeypatch.setattr(passes, "_trace", counted)
    at = open_page(page, text="A text that no other test reads, on the page " + page)
    assert not at.exception and parts and read
    st.cache_resource.clear()
    gc.collect()
    assert not [one for one in read if one() is not None]


def test_it_is_made_again_only_if_it_is_gone() -> None:
    class Large:
        pass

    made = []

    def make() -> Large:
        made.append(1)
        return Large()

    first = make()
    again = Again(first, make)
    assert again.get() is first and len(made) == 1
    del first
    gc.collect()
    second = again.get()
    assert again.get() is second and len(made) == 2
