"""All lessons on one sheet, with a person's own results: to print, or as a file that needs no network."""

import html
import time
from pathlib import Path

import streamlit as st

import wording
from engine.exercise_list import IDS
from engine.progress import Progress
from ui import lesson_list, nav, people
from ui.lesson_list import LESSONS, ORDER
from wording import words

PRINT = Path(__file__).parent / "lesson_print.css"
STYLE = """
.loupe-summary { max-width: 46rem; line-height: 1.5; }
.loupe-summary h2 { font-size: 1.6rem; margin: 0 0 0.2rem; padding: 0; }
.loupe-summary ol { list-style: none; margin: 1rem 0 0; padding: 0; }
.loupe-summary li { margin: 0; padding: 0.7rem 0; border-top: 1px solid currentColor; break-inside: avoid; }
.loupe-summary h3 { font-size: 1.05rem; margin: 0; padding: 0; }
.loupe-summary p { margin: 0.15rem 0 0; }
.loupe-summary .formula { font-family: Cambria, "STIX Two Text", "Noto Serif", serif; font-size: 1.1rem;
  white-space: pre-wrap; }
.loupe-summary .result { font-size: 0.9rem; }
"""
PAGE = """<!doctype html>
<html lang="{lang}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #000; background: #fff; margin: 2rem auto;
  max-width: 46rem; padding: 0 1rem; }}
@page {{ margin: 18mm; }}
@media print {{ body {{ margin: 0; max-width: none; padding: 0; }} }}
{style}</style></head>
<body>{body}</body>
</html>
"""
say = words("ui.lesson_summary")


def draw() -> None:
    """Draw the sheet, with a way to print it and one to take it along."""
    progress = people.progress()
    st.title(say("title"), anchor=False)
    st.write(say("intro"))
    st.html(PRINT)
    nav.link("lessons", say("path"), icon=":material/arrow_back:")
    st.download_button(
        say("download"), lambda: page(progress), file_name="loupe-summary.html", mime="text/html",
        key="lessons_download", icon=":material/download:", on_click="ignore",
    )  # fmt: skip
    st.caption(say("print"))
    with st.container(border=True, key="lesson_summary"):
        st.html(f"<style>{STYLE}</style>{sheet(progress)}")


def page(progress: Progress) -> str:
    """The sheet as an HTML file that fetches nothing."""
    return PAGE.format(
        lang=wording.language(), title=html.escape(say("heading")), style=STYLE, body=sheet(progress)
    )


def sheet(progress: Progress) -> str:
    """Key sentence, formula and results of every lesson, as HTML."""
    done = sum(slug in progress.lessons for slug in ORDER)
    right = sum(one.right for name, one in progress.exercises.items() if name in IDS)
    whose = f"<p>{html.escape(say('name', name=progress.name))}</p>" if progress.name else ""
    counts = html.escape(say("done", done=done, of=len(ORDER), right=right, n=len(IDS)))
    lessons = "".join(_lesson(slug, progress) for slug in ORDER)
    return (
        f'<div class="loupe-summary"><h2>{html.escape(say("heading"))}</h2>{whose}<p>{counts}</p>'
        f"<ol>{lessons}</ol><p class='result'>{html.escape(say('made'))}</p></div>"
    )


def _lesson(slug: str, progress: Progress) -> str:
    it, when = LESSONS[slug], progress.lessons.get(slug)
    answered = [progress.exercises[name] for name in it.check if name in progress.exercises]
    passed = say("passed", date=time.strftime("%Y-%m-%d", time.localtime(when))) if when else say("not-yet")
    result = passed
    if answered:
        right, tries = sum(one.right for one in answered), sum(one.tries for one in answered)
        check = say("check", right=right, of=len(it.check), n=tries)
        result = f"{passed} {check}"
    title = html.escape(f"{lesson_list.number(slug)}. {lesson_list.title(slug)}")
    return (
        f"<li><h3>{title}</h3><p>{html.escape(lesson_list.key_sentence(slug))}</p>"
        f'<p class="formula">{it.line}</p><p class="result">{html.escape(result)}</p></li>'
    )
