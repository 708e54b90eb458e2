"""Home: what this is, one sentence on its way through the model, and where to go."""

import math

import streamlit as st

from ui import choice, lesson, nav, resources, session, worked
from ui.components import show, token_strip
from ui.resources import ModelRef
from viz import distribution_bars, format_count, visible

nav.require_app()

SHOWN = 8  # bars; all other tokens together are one bar more
TRY = (
    lesson.Step(
        "A small change at the start of a story: what does the model expect of a dragon?",
        "Let it be a dragon",
        session.set_text,
        ("Once upon a time, there was a dragon called Max. He",),
    ),
    lesson.Step(
        "A sentence from another world: a model knows only what it has read.",
        "Read the news to it",
        session.set_text,
        ("The price of oil fell on Monday because",),
    ),
    lesson.Step(
        "One emoji is several bytes, and here several tokens.",
        "Wave to it",
        session.set_text,
        ("The robot said 👋🏽 to",),
    ),
)


def tokens(ref: ModelRef, text: str) -> int:
    """Draw the text as tokens; gives back the position of the chosen one."""
    window = resources.window(ref, text)
    size, last = format_count(resources.tokenizer(ref).vocab_size), len(window.tokens) - 1
    cut = f" The model reads the last {format_count(last + 1)}." if window.unused else ""
    st.markdown(
        f"**Text → tokens.** Your text in pieces from a vocabulary of {size}, each with its number: "
        f"{format_count(window.n_tokens)} tokens.{cut} Choose one."
    )
    choice.begin("home_tokens", last, about=(ref, text))
    ids = [str(token.id) for token in window.tokens]
    index = token_strip(window.segments, key="home_tokens", selected=last, values=ids, label="Your text")
    return last if index is None else index


def probabilities(ref: ModelRef, text: str, position: int) -> None:
    """Draw what the model expects after the chosen token, or in its place if it fills in hidden tokens."""
    from engine.metrics import most_likely, softmax_parts  # needs torch: title and tokens don't wait for it

    hides = ref.objective == "mlm"
    trace = resources.traced(ref, text, hidden=(position,) if hides else ())
    top = most_likely(trace.probs()[position], SHOWN)
    labels = [visible(resources.tokenizer(ref).token_bytes(int(token_id))) for token_id in top.ids]
    question = (
        "The model can’t see the chosen token: which is it?" if hides else "Which token comes after it?"
    )
    st.markdown(f"**Tokens → probabilities.** {question} All bars together are 1.")
    show(distribution_bars(labels, top.probs, tail=top.tail, n_tail=top.n_tail), key="home_probabilities")

    z, log_sum, p = softmax_parts(trace.logits[position], int(top.ids[0]))
    n = worked.tie(lambda a, b: math.exp(a - b), z, log_sum, digits=3)
    result = rf"e^{{{worked.tex(z, n)} - {worked.tex(log_sum, n)}}} = {worked.tex(p, 3)}"
    st.latex(rf"p_1 = \frac{{e^{{z_1}}}}{{\sum_v e^{{z_v}}}} = e^{{z_1 - \ln \sum_v e^{{z_v}}}} = {result}")
    size = format_count(trace.logits.shape[1])
    st.caption(
        f"The first bar: the model gives each of the {size} tokens a score z; softmax makes it a probability."
    )


def cards() -> None:
    """The other pages."""
    st.subheader("Where to go")
    infos = [info for info in nav.PAGES if info.name != "home"]
    for start in range(0, len(infos), 3):
        for column, info in zip(st.columns(3), infos[start : start + 3], strict=False):
            with column.container(border=True, height="stretch"):
                nav.link(info.name)
                st.caption(info.help)


st.title("Loupe")
st.write("Train a small language model, look inside it while it reads your sentence, and let it write.")
chosen, sentence = session.model(), session.text()
if chosen is None:
    st.info("There is no model yet. Train one: a first small one takes about a minute.")
elif not sentence:
    st.info("The text in the sidebar is empty. Type a sentence there, or choose one below.")
else:
    at = tokens(chosen, sentence)
    probabilities(session.require_model(), sentence, at)
lesson.try_this(*TRY)
cards()
