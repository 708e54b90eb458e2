"""What the model expects after every token, and how surprised it is by what came."""

import math

import streamlit as st

from engine import metrics
from ui import address, choice, lesson, nav, next_position, resources, session, worked_text
from ui.components import token_strip
from ui.next_long import any_length
from ui.part import part
from ui.possible import possible_story
from ui.scored import Scored, scores_of
from viz import NEUTRAL, format_count, surprisal_color, visible
from wording import words

nav.require_app()
say = words("pages.next_token")

OPENING = "Once upon a time, there was a"  # the stories that the model knows are English
STRANGE = "Once upon a time, there was a spreadsheet who"
FACTS = "The capital of France is Paris. The capital of Spain is Madrid. The capital of Japan is"
SWAP = "The cat sat on the mat and purred. The cat sat on the parliament and purred."
SCROLLS = 60  # tokens

st.title(nav.title("next_token"))
st.write(say("intro"))

ref, text = session.require_model("clm"), session.text()


def name_of(token_id: int) -> str:
    """How a token of the vocabulary is written."""
    return visible(resources.tokenizer(ref).token_bytes(int(token_id)))


def controls() -> tuple[str, str]:
    """The view and the unit of surprise."""
    with st.container(horizontal=True):
        view = address.choose(
            st.segmented_control, say("show"), say.table("view"), key="look", required=True, wrap=True,
            label_visibility="collapsed",
        )  # fmt: skip
        unit = address.choose(
            st.segmented_control, say("unit"), {"nats": "nats", "bits": "bits"}, key="unit", required=True,
            label_visibility="collapsed",
        )  # fmt: skip
    return view, unit


def choose(view: str, unit: str) -> int:
    """The text, each token with its surprise; gives the position of the chosen one."""
    surprise = metrics.surprisal(scores.log_probs, unit).tolist() if scores else []
    most = float(metrics.surprisal(-math.log(vocab_size), unit))
    strip = lesson.strip_of(ref, text)
    blank, end = strip.n_greyed + 1, strip.n_greyed + last  # nothing predicts the first token that is read
    choice.begin("next_token_strip", end, about=(ref, text), names=("pos",), first=-strip.n_greyed)
    long = view != "one-position" and last > SCROLLS  # the picture of the whole text stays in sight
    with st.container(height=210 if long else "content", border=long):
        index = token_strip(
            strip.segments,
            key="next_token_strip",
            selected=end,
            values=[""] * strip.n_greyed + [say("given")] + [lesson.brief(x) for x in surprise],
            colors=[NEUTRAL] * blank + [surprisal_color(x, most) for x in surprise],
            greyed=range(strip.n_greyed),
            label=say("strip"),
        )
    position = max((end if index is None else index) - strip.n_greyed, 0)
    choice.share({"pos": position})
    st.caption(say(f"under.{view}", unit=unit, vocab_size=format_count(vocab_size)))
    return position


def whole_text(scored: Scored, view: str, position: int, unit: str) -> None:
    """Every token at once."""
    if view == "best-guesses":
        scored.guesses(name_of, position, key="next_token_guesses")
    elif view == "surprise":
        scored.surprise(unit, position, key="next_token_surprise")
        scored.divergence(unit, position, key="next_token_kl")
        scored.table(unit, key="next_token_table")
    else:
        scored.chain(unit, key="next_token_chain")
        left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
        left.latex(worked_text.chain(scored.scores.total, last, trace.scored_bytes, unit=unit))
        right.caption(say("chain"))


chosen_view, measure = controls()
body = st.container()
TRY = (
    {"begin": OPENING, "strange": STRANGE, "recall": lesson.RECALL}
    if ref.corpus == "stories"
    else {"facts": FACTS, "swap": SWAP, "recall": lesson.RECALL}
)
lesson.try_this(
    *(lesson.Step(say(f"try.{name}"), say(f"try.{name}_button"), session.set_text, (example,))
      for name, example in TRY.items())
)  # fmt: skip
with body:
    if chosen_view == "any-length":
        any_length(ref, text, measure)
        nav.end_page()
    trace = lesson.look(ref, text)
    lesson.space_hint(text)
    truth, ids = lesson.truth_of(ref, text), trace.ids.tolist()
    last, vocab_size = len(ids) - 1, trace.logits.shape[1]
    scores = scores_of(ref, text) if last else None
    chosen = choose(chosen_view, measure)
    if scores is None:
        st.info(say("too_short"))
    if chosen_view == "one-position":
        part(next_position.draw)(ref, text, chosen, measure)
        possible_story(ref, text)
    elif scores:
        whole_text(Scored(trace, scores, truth), chosen_view, chosen, measure)
