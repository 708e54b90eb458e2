"""The frame around every page: page list and sidebar. Start it with `streamlit run app.py`."""

import os
from pathlib import Path

# Read by torch's thread pool when it is loaded: idle threads that spin would take the cores from training.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import streamlit as st

from ui import lesson_strip, nav, resources, server_log, sidebar, two_runs, widget_values

FRAME = Path(__file__).parent / "ui" / "frame.css"

widget_values.guard()
two_runs.guard()
nav.mark_app()
page = st.navigation(nav.pages(), position="top")
st.set_page_config(page_title=f"{page.title} · Loupe", page_icon="🔍", layout="wide")
st.html(FRAME)
resources.warm_up()
server_log.begin()
places = sidebar.draw(nav.name_of(page))
lesson_strip.draw(nav.name_of(page))
try:
    page.run()
finally:  # also where a page ends early
    sidebar.finish(places)
