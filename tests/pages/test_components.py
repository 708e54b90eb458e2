"""What the components send to the browser, and how a selection lives from run to run."""

import json
import re
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import component, unpacked


def strip_page() -> None:
    from types import SimpleNamespace

    import streamlit as st

    from ui.components import current, select, token_strip

    data = [b"the", b" cat", b"<b>", b"\n", b"$x$"]
    if "short" in st.session_state:
        data = data[:2]
    segments = [[SimpleNamespace(id=i, data=d)] for i, d in enumerate(data)]
    segments.append([SimpleNamespace(id=8, data=b"\xf0\x9f\x98"), SimpleNamespace(id=9, data=b"\x80")])
    st.button("choose 4", on_click=select, args=("strip", 4))
    before = current("strip", -1)
    if "away" not in st.session_state:
        chosen = token_strip(segments, key="strip", selected=1, hidden={0}, greyed={2}, values=["1"] * 7)
        st.text(f"before {before} chosen {chosen}")


def grid_page() -> None:
    import numpy as np
    import streamlit as st

    from ui.components import head_grid

    weights = np.zeros((2, 3, 4, 4), dtype=np.float32)
    weights[1, 2] = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    objective = st.session_state.get("objective", "clm")
    chosen = head_grid(weights, ["a", "b", "<i>", "d"], objective=objective, key="grid", selected=(1, 2))
    st.text(f"chosen {chosen}")


def curve_page() -> None:
    import math

    import numpy as np

    import viz
    from ui.components import live_curve

    losses = np.linspace(6, 1, 5000)
    losses[10] = math.nan
    losses[11] = math.inf
    lines = [
        viz.Series("train <b>", np.arange(5000), losses, "train"),
        viz.Series("validation", [], [], "valid"),
    ]
    live_curve(lines, [viz.Reference(math.log(512), "start", "start")], key="curve", objective="mlm")


def run(page: Any) -> AppTest:
    return AppTest.from_function(page, default_timeout=90).run()


def sent(at: AppTest) -> Any:
    assert not at.exception
    return json.loads(at.get("bidi_component")[0].proto.json)


def text(at: AppTest) -> str:
    return str(at.text[0].value)


def test_strip_sends_text_as_text_and_groups_graphemes():
    data = sent(run(strip_page))
    chips = [chip for group in data["groups"] for chip in group["chips"]]
    assert [chip["i"] for chip in chips] == list(range(7))
    assert chips[1]["parts"] == [["·", True], ["cat", False]]
    assert chips[2]["parts"] == [["<b>", False]]
    assert [len(group["chips"]) for group in data["groups"]] == [1, 1, 1, 1, 1, 2]
    assert data["groups"][5]["whole"] == "😀"
    assert chips[5]["parts"] == [["⟨F0 9F 98⟩", True]]
    assert chips[0]["hidden"]
    assert chips[2]["greyed"]


def test_first_selection_and_a_click():
    at = run(strip_page)
    assert text(at) == "before -1 chosen 1"
    first = sent(at)
    at.session_state["strip"] = {"selected": 3}  # what the browser says after a click
    at.run()
    assert text(at) == "before 3 chosen 3"
    assert sent(at) == first  # the click is not echoed: nothing is sent again, nothing can be undone


def test_a_button_selects_and_the_browser_is_told():
    at = run(strip_page)
    rev = sent(at)["rev"]
    at.button[0].click().run()
    assert text(at) == "before 4 chosen 4"
    assert sent(at)["selected"] == 4
    assert sent(at)["rev"] > rev


def test_selection_outlives_a_page_change():
    at = run(strip_page)
    at.session_state["strip"] = {"selected": 3}
    at.run()
    at.session_state["away"] = True
    at.run()
    del at.session_state["away"]
    at.run()
    assert text(at) == "before 3 chosen 3"
    assert sent(at)["selected"] == 3


def test_a_selection_beyond_a_shorter_text_falls_back():
    at = run(strip_page)
    at.session_state["strip"] = {"selected": 6}
    at.run()
    at.session_state["short"] = True
    at.run()
    assert text(at).endswith("chosen 1")
    assert sent(at)["selected"] == 1


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_grid_sends_one_byte_a_weight(objective):
    at = AppTest.from_function(grid_page, default_timeout=90)
    at.session_state["objective"] = objective
    data = sent(at.run())
    assert data["shape"] == [2, 3, 4]
    last = unpacked(data)[1, 2]
    assert last[np.tril_indices(4)].tolist() == [255, 128, 128, 85, 85, 85, 64, 64, 64, 64]  # 255/1, /2, …
    assert last[np.triu_indices(4, 1)].tolist() == [0] * 6
    assert text(at) == "chosen (1, 2)"


def test_grid_takes_a_click():
    at = run(grid_page)
    at.session_state["grid"] = {"selected": {"layer": 0, "head": 1}}
    at.run()
    assert text(at) == "chosen (0, 1)"


def pressed_curve_page() -> None:
    import streamlit as st

    import viz
    from ui.components import live_curve

    line = viz.Series("gradient norm", [0, 10, 20], [2.0, 1.0, 0.5], "raw")
    found = live_curve(
        [line], key="curve", y_title="gradient norm", unit="", perplexity_axis=False, log_x=True,
        cursor=st.session_state.get("at"), marks=[0, 20],
        on_point=lambda step: st.session_state.update(at=step),
    )  # fmt: skip
    st.text(f"pressed {found} at {st.session_state.get('at')}")


def test_curve_of_another_quantity_has_no_perplexity_and_can_be_pressed():
    at = run(pressed_curve_page)
    assert not at.exception
    data = component(at, "curve")
    assert (data["perplexity"], data["unit"], data["yTitle"]) == ("", "", "gradient norm")
    assert data["logX"] and not data["logY"] and data["presses"]
    assert (data["marks"], data["cursor"]) == ([0, 20], None)
    assert data["series"][0]["alpha"] < 1  # what lies behind a smoothed line is faint
    assert text(at) == "pressed None at None"
    at.session_state["at"] = 20  # what on_point keeps
    assert component(at.run(), "curve")["cursor"] == 20


def test_curve_is_thinned_and_has_nulls_for_what_is_not_finite():
    data = component(run(curve_page), "curve")
    line, empty = data["series"]
    assert len(line["x"]) <= 400
    assert line["x"][-1] == 4999
    assert line["y"][line["x"].index(10)] is None
    assert max(y for y in line["y"] if y is not None) == 6
    assert line["name"] == "train <b>"
    assert empty["x"] == []
    assert data["perplexity"] == "masked-token perplexity"
    assert data["references"][0]["value"] == pytest.approx(6.238, abs=1e-3)


def test_what_draws_a_curve_comes_once_and_not_with_its_numbers():
    """A run that is watched sends its curve each second: 30 kB of code would come along each time."""
    code, curve = (one.proto for one in run(curve_page).get("bidi_component"))
    assert len(code.js_content) > 20_000 and "drawLine" in code.js_content and not code.json
    assert len(curve.js_content) < 2_500 and "drawLine" not in curve.js_content
    (name,) = set(re.findall(r'meeting\((".*")\)', code.js_content))
    assert f"meeting({name})" in curve.js_content, "both name the same place to meet"


def test_code_that_comes_before_a_part_drawn_each_second_is_found_by_it():
    def page() -> None:
        from ui.components import curve_code, live_curve

        curve_code("curve")
        live_curve([], key="curve", with_code=False)

    code, curve = (one.proto for one in run(page).get("bidi_component"))
    assert code.component_name == "loupe_code_of_lines" and curve.component_name == "loupe_live_curve"
    assert "curve" not in code.id, "whoever looks for the key finds the curve"
