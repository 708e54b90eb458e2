"""Home: what this is, one sentence on its way through the model, and where to go."""

import math

import streamlit as st

from ui import choice, lesson, nav, passes, resources, session, worked
from ui.components import show, token_strip
from ui.diagram import diagram
from ui.lesson_list import ORDER
from ui.model_refs import ModelRef
from viz import distribution_bars, format_count, visible
from wording import words

nav.require_app()
say = words("pages.home")

SHOWN = 8  # bars; all other tokens together are one bar more
TRY = {
    "dragon": "Once upon a time, there was a dragon called Max. He",
    "news": "The price of oil fell on Monday because",
    "emoji": "The robot said 👋🏽 to",
}


def tokens(ref: ModelRef, text: str) -> int | None:
    """Draw the text as tokens; gives back the position of the chosen one, None if there are none."""
    try:
        window = passes.window(ref, text)
    except ValueError as error:  # a published vocabulary may lack a byte
        st.warning(lesson.literal(str(error)))
        return None
    size, last = format_count(resources.tokenizer(ref).vocab_size), window.inner[-1]
    told = {"size": size, "n": window.n_tokens, "read": format_count(len(window.tokens))}
    if window.unused and ref.window_length < ref.context_length:
        st.markdown(say("tokens_memory", **told))
    else:
        st.markdown(say("tokens_cut_short" if window.unused else "tokens", **told))
    choice.begin("home_tokens", last, about=(ref, text))
    ids = [str(token.id) for token in window.tokens]
    index = token_strip(window.segments, key="home_tokens", selected=last, values=ids, label=say("strip"))
    return last if index is None else index


def probabilities(ref: ModelRef, text: str, position: int) -> None:
    """Draw what the model expects after the chosen token, or in its place if it fills in hidden tokens."""
    from engine.metrics import most_likely, softmax, softmax_parts  # needs torch: what is above doesn't wait

    hides = ref.objective == "mlm"
    if hides and position not in passes.window(ref, text).inner:
        st.info(say("no_part"))
        return
    trace = passes.traced(ref, text, hidden=(position,) if hides else ())
    top = most_likely(softmax(trace.logits[position]), SHOWN)
    labels = [visible(resources.tokenizer(ref).token_bytes(int(token_id))) for token_id in top.ids]
    st.markdown(say("probabilities_hidden" if hides else "probabilities"))
    show(distribution_bars(labels, top.probs, tail=top.tail, n_tail=top.n_tail), key="home_probabilities")

    z, log_sum, p = softmax_parts(trace.logits[position], int(top.ids[0]))
    n = worked.tie(lambda a, b: math.exp(a - b), z, log_sum, digits=3)
    result = rf"e^{{{worked.tex(z, n)} - {worked.tex(log_sum, n)}}} = {worked.tex(p, 3)}"
    rule = r"p_1 &= \frac{e^{z_1}}{\sum_v e^{z_v}} = e^{z_1 - \ln \sum_v e^{z_v}}"
    st.latex(worked.aligned(rule, f"&= {result}"))  # two lines: one is too wide for a telephone
    size = format_count(trace.logits.shape[1])
    st.caption(say("first_bar", size=size))


def cards() -> None:
    """The other pages."""
    st.subheader(say("pages"))
    infos = [info for info in nav.PAGES if info.name != "home"]
    for start in range(0, len(infos), 3):
        for column, info in zip(st.columns(3), infos[start : start + 3], strict=False):
            with column.container(border=True, height="stretch"):
                nav.link(info.name)
                st.caption(info.help)


st.title("Loupe")
st.write(say("intro"))
nav.link("lessons", say("begin"), icon=":material/school:", lesson=ORDER[0])
diagram("flow", lit=("tokens", "probability"), key="home_flow")
chosen, sentence = session.model(), session.text()
if chosen is None:
    st.info(say("no_model"))
elif not sentence:
    st.info(say("no_text"))
else:
    at = tokens(chosen, sentence)
    if at is not None:
        probabilities(session.require_model(), sentence, at)
lesson.try_this(
    *(lesson.Step(say(f"try.{name}.text"), say(f"try.{name}.button"), session.set_text, (written,))
      for name, written in TRY.items())
)  # fmt: skip
cards()
