"""Every figure on a page gives away its numbers and its picture."""

import json

from streamlit.testing.v1 import AppTest

from tests.pages.conftest import component, plotly


def two_figures() -> None:
    import viz
    from ui.components import show

    show(viz.surprisal_bars(["a", "a"], [1.0, 2.0]), key="first")
    show(viz.distribution_bars(["=1", "b"], [0.5, 0.5], tail=0, n_tail=0), key="second", on_press=print)


def test_each_figure_has_its_own_buttons() -> None:
    at = AppTest.from_function(two_figures).run()
    assert not at.exception
    assert plotly(at, "first") and plotly(at, "second")
    for key in ("first", "second"):
        told = component(at, f"save_{key}")
        assert (told["chart"], told["name"]) == (key, key)
        assert told["words"]["label"] == "Save the picture" and told["words"]["png"] == "Picture (PNG)"
    labels = [e.proto.label for e in at.get("download_button")]
    assert labels == ["Numbers (CSV)"] * 2


def test_a_figure_keeps_its_alt_text() -> None:
    at = AppTest.from_function(two_figures).run()
    charts = at.get("plotly_chart")
    assert all(json.loads(chart.proto.spec)["layout"]["meta"]["alt"] for chart in charts)
