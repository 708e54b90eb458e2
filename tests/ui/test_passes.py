"""What passes over texts, and moments of models, may take of the memory that all people share."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import streamlit as st

from engine.trace_size import trace_bytes
from tests.pages.tiny import save_tiny
from ui import hiding, model_refs, passes, resources
from ui.model_refs import ModelRef

TEXT = "Once upon a time, there was a"


@pytest.fixture(autouse=True)
def nothing_is_kept() -> None:
    st.cache_resource.clear()


def model(folder: Path, objective: str = "clm") -> ModelRef:
    save_tiny(folder, objective, objective=objective)
    ref = model_refs.checkpoint_ref(f"run:{objective}", objective, folder / objective)
    assert ref is not None
    return ref


def test_a_pass_takes_as_many_bytes_as_are_counted(tmp_path: Path) -> None:
    trace = passes.traced(model(tmp_path), TEXT)
    arrays = [getattr(trace, field.name) for field in fields(trace)]
    floats = [array for array in arrays if isinstance(array, np.ndarray) and array.dtype == np.float32]
    assert sum(array.nbytes for array in floats) == trace_bytes(trace.config, len(trace.ids))


def test_passes_are_kept_up_to_a_number_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = model(tmp_path)
    first = passes.traced(ref, TEXT)
    assert passes.traced(ref, TEXT) is first
    st.cache_resource.clear()
    most = 3 * trace_bytes(first.config, len(first.ids)) + 1
    monkeypatch.setattr(passes, "KEPT_BYTES", most)
    for n in range(4):
        passes.traced(ref, TEXT, ablate=((0, n % 2), (1, n // 2)))
        kept = passes._traces().held().values()
        assert sum(trace_bytes(one.config, len(one.ids)) for one in kept) <= most
    assert len(kept) == 3


def test_logits_around_gaps_are_kept_up_to_a_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, ids = model(tmp_path, "mlm"), (5, 6, 7, 8)
    monkeypatch.setattr(hiding, "READ_BYTES", 2 * hiding.from_both_sides(ref, ids, (0,)).nbytes)
    st.cache_resource.clear()
    for place in range(4):
        hiding.from_both_sides(ref, ids, (place,))
    assert list(hiding._both_sides(False).held()) == [(ref, ids, (2,)), (ref, ids, (3,))]


def test_moments_are_kept_up_to_a_number_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refs = [model(tmp_path / str(n)) for n in range(3)]
    monkeypatch.setattr(resources, "MOMENT_BYTES", 2 * 4 * refs[0].n_params)
    for ref in refs:
        resources.load_moment(ref)
    assert list(resources._moments().held()) == refs[1:]


def test_all_moments_of_the_models_that_come_with_loupe_are_kept() -> None:
    both = [ref for ref in model_refs.shipped_models() if ref.corpus == "stories"]
    moments = [moment for ref in both for moment in model_refs.history(ref)]
    assert len(moments) <= resources.MOST_MOMENTS
    assert sum(4 * moment.n_params for moment in moments) <= resources.MOMENT_BYTES
