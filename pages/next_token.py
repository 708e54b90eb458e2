"""What the model expects after every token, and how surprised it is by what came."""

import math

import streamlit as st

from engine import metrics
from ui import choice, lesson, nav, resources, session, worked_text
from ui.components import token_strip
from ui.next_long import any_length
from ui.next_position import Position, bar_controls
from ui.possible import possible_story
from ui.scored import Scored
from viz import NEUTRAL, format_count, surprisal_color, visible

nav.require_app()

OPENING = "Once upon a time, there was a"
STRANGE = "Once upon a time, there was a spreadsheet who"
SCROLLS = 60  # tokens
VIEWS = ("One position", "Best guesses", "Surprise", "Chain rule", "Any length")
CHOOSE = {
    VIEWS[0]: " Choose one: what comes after it?",
    VIEWS[1]: " The row after the chosen one is marked.",
    VIEWS[2]: " The chosen one has a frame below.",
}

st.title("Next token")
st.write("See what the model expects after each token, and how surprised it is by the one that came.")

ref, text = session.require_model("clm"), session.text()


def name_of(token_id: int) -> str:
    """How a token of the vocabulary is written."""
    return visible(resources.tokenizer(ref).token_bytes(int(token_id)))


def controls() -> tuple[str, str]:
    """The view and the unit of surprise."""
    if "look" not in st.query_params:  # a link has said it
        st.session_state.setdefault("look", VIEWS[0])
    with st.container(horizontal=True):
        view = st.segmented_control(
            "Show", VIEWS, required=True, key="look", wrap=True, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        unit = st.segmented_control(
            "Unit of surprise", ["nats", "bits"], default="nats", required=True, key="unit",
            bind="query-params", label_visibility="collapsed",
        )  # fmt: skip
    return str(view), str(unit)


def choose(view: str, unit: str) -> int:
    """The text, each token with its surprise; gives the position of the chosen one."""
    surprise = metrics.surprisal(scores.log_probs, unit).tolist() if scores else []
    most = float(metrics.surprisal(-math.log(vocab_size), unit))
    strip = lesson.strip_of(ref, text)
    blank, end = strip.n_greyed + 1, strip.n_greyed + last  # nothing predicts the first token that is read
    choice.begin("next_token_strip", end, about=(ref, text), names=("pos",), first=-strip.n_greyed)
    long = view != VIEWS[0] and last > SCROLLS  # the picture of the whole text stays in sight
    with st.container(height=210 if long else "content", border=long):
        index = token_strip(
            strip.segments,
            key="next_token_strip",
            selected=end,
            values=[""] * strip.n_greyed + ["given"] + [lesson.brief(x) for x in surprise],
            colors=[NEUTRAL] * blank + [surprisal_color(x, most) for x in surprise],
            greyed=range(strip.n_greyed),
            label="The text, each token with its surprise",
        )
    position = max((end if index is None else index) - strip.n_greyed, 0)
    choice.share({"pos": position})
    st.caption(
        f"Under each token: its surprise in {unit}; the brightest colour is a blind guess among "
        f"{format_count(vocab_size)}, or worse.{CHOOSE.get(view, '')}"
    )
    return position


def one_position(position: int, unit: str) -> None:
    """The bars after the chosen token, and one of them worked out."""
    here = Position(trace, truth, position)
    left, right = st.columns([3, 2], gap="small")
    with left:
        st.subheader(
            f"After token {position}, “{lesson.literal(visible(trace.tokens[position].data))}”, comes …"
        )
        k, quantity = bar_controls()
        here.bars(name_of, k, quantity, unit, key="next_token_bars")
    with right:
        here.details(name_of, quantity, unit)
    possible_story(ref, text)


def whole_text(scored: Scored, view: str, position: int, unit: str) -> None:
    """Every token at once."""
    if view == VIEWS[1]:
        scored.guesses(name_of, position, key="next_token_guesses")
    elif view == VIEWS[2]:
        scored.surprise(unit, position, key="next_token_surprise")
        scored.divergence(unit, position, key="next_token_kl")
        scored.table(unit, key="next_token_table")
    else:
        scored.chain(unit, key="next_token_chain")
        left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
        left.latex(worked_text.chain(scored.scores.total, last, trace.scored_bytes, unit=unit))
        right.caption(
            "P is the product of all probabilities in the table; its logarithm is a sum. The first token is "
            "given, so P is the probability of all others after it. Loss and perplexity average over them."
        )


chosen_view, measure = controls()
body = st.container()
lesson.try_this(
    lesson.Step("What can a story be about? Compare both bars.", "Begin one", session.set_text, (OPENING,)),
    lesson.Step("Say something that no story says.", "Surprise the model", session.set_text, (STRANGE,)),
    lesson.Step(
        "Names come back: is the model surprised?", "Tell of Lily", session.set_text, (lesson.RECALL,)
    ),
)
with body:
    if chosen_view == VIEWS[4]:
        any_length(ref, text, measure)
        st.stop()
    trace = lesson.look(ref, text)
    lesson.space_hint(text)
    truth, ids = lesson.truth_of(ref, text), trace.ids.tolist()
    last, vocab_size = len(ids) - 1, trace.logits.shape[1]
    scores = metrics.next_token_scores(trace.logits, ids) if last else None
    chosen = choose(chosen_view, measure)
    if scores is None:
        st.info(
            "Surprise and perplexity need at least 2 tokens: the first is given, and nothing predicts it."
        )
    if chosen_view == VIEWS[0]:
        one_position(chosen, measure)
    elif scores:
        whole_text(Scored(trace, scores, truth), chosen_view, chosen, measure)
