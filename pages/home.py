"""Home: what this is, one sentence on its way through the model, and where to go."""

import streamlit as st

from ui import nav, resources, session
from ui.components import show, token_strip
from ui.resources import ModelRef
from viz import distribution_bars, format_count, format_prob, visible

nav.require_app()

SHOWN = 8  # bars; all other tokens together are one bar more
SENTENCES = (
    ("A dragon instead", "Once upon a time, there was a dragon who"),
    ("A sentence from elsewhere", "The price of oil fell on Monday because"),
    ("An emoji", "The robot said 👋🏽 to"),
)


def tokens(ref: ModelRef, text: str) -> int | None:
    """Draw the text as tokens; gives back which one was chosen."""
    window = resources.window(ref, text)
    vocab_size = format_count(resources.tokenizer(ref).vocab_size)
    cut = f" It reads the last {ref.context_length} of them." if window.unused else ""
    st.markdown(
        f"**Text → tokens.** The model reads pieces, each with a number, from a vocabulary of {vocab_size}. "
        f"Your text is {format_count(window.n_tokens)} of them.{cut} Choose one."
    )
    ids = [str(token.id) for token in window.tokens]
    return token_strip(window.segments, key="home_tokens", selected=len(ids) - 1, values=ids, label="Your text")


def probabilities(ref: ModelRef, text: str, place: int) -> None:
    """Draw what the model expects after the chosen token, or instead of it if it fills in hidden tokens."""
    from engine.metrics import most_likely, softmax_parts  # brings torch along: title and tokens don't wait for it

    masked = ref.objective == "mlm"
    trace = resources.traced(ref, text, hidden=(place,) if masked else ())
    top = most_likely(trace.probs()[place], SHOWN)
    tokenizer = resources.tokenizer(ref)
    labels = [visible(tokenizer.token_bytes(int(token_id))) for token_id in top.ids]
    question = "It is hidden from the model now: which token was it?" if masked else "Which token comes after it?"
    st.markdown(f"**Tokens → probabilities.** {question} Every token has a chance, and together the bars are 1.")
    show(distribution_bars(labels, top.probs, tail=top.tail, n_tail=top.n_tail), key="home_probabilities")
    z, log_sum, p = softmax_parts(trace.logits[place], int(top.ids[0]))
    st.latex(rf"p_1 = \frac{{e^{{z_1}}}}{{\sum_v e^{{z_v}}}} = e^{{{z:.5f} - {log_sum:.5f}}} = {format_prob(p)}")
    st.caption(f"The first bar, from the model's own numbers: its score, and the log of the sum over all {len(trace.logits[place])} scores.")


def try_this() -> None:
    """Other sentences, one click each."""
    st.markdown("**Try this**")
    with st.container(horizontal=True):
        for label, sentence in SENTENCES:
            st.button(label, key=f"home_{label}", help=sentence, on_click=session.set_text, args=(sentence,))


def cards() -> None:
    """The other pages."""
    st.subheader("Where to go")
    infos = [info for info in nav.available() if info.name != "home"]
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
    position = tokens(chosen, sentence)
    probabilities(session.require_model(), sentence, position if position is not None else 0)
try_this()
cards()
