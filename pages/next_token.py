"""What the model expects after every token, and how surprised it is by what came."""

import math

import streamlit as st

from engine import metrics
from ui import choice, lesson, nav, resources, session, worked
from ui.components import show, token_strip
from ui.possible import possible_story
from ui.scored import Scored
from viz import NEUTRAL, distribution_bars, format_count, surprisal_color, visible

nav.require_app()

OPENING = "Once upon a time, there was a"
STRANGE = "Once upon a time, there was a spreadsheet who"
RECALL = (
    "Once upon a time, there was a fox called Lily. She lived beside a river and loved music. "
    "One day, when the trees looked like sheep, Lily"
)

st.title("Next token")
st.write("See what the model expects after each token, and how surprised it is by the one that came.")

ref, text = session.require_model("clm"), session.text()
trace = lesson.look(ref, text)
lesson.space_hint(text)
truth, strip = lesson.truth_of(ref, text), lesson.strip_of(ref, text)
tokenizer, ids = resources.tokenizer(ref), trace.ids.tolist()
last, vocab_size = len(ids) - 1, trace.logits.shape[1]
scores = metrics.next_token_scores(trace.logits, ids) if last else None


def name_of(token_id: int) -> str:
    """How a token of the vocabulary is written."""
    return visible(tokenizer.token_bytes(int(token_id)))


def controls() -> tuple[int, str]:
    """How many bars, and the unit of surprise."""
    with st.container(horizontal=True):
        k = st.segmented_control(
            "Number of bars", [5, 8, 12, 20], default=8, required=True, format_func="{} bars".format,
            key="next_token_k", persist_state="session", label_visibility="collapsed",
        )  # fmt: skip
        unit = st.segmented_control(
            "Unit of surprise", ["nats", "bits"], default="nats", required=True, key="next_token_unit",
            persist_state="session", label_visibility="collapsed",
        )  # fmt: skip
    return int(k), str(unit)


def choose(unit: str) -> int:
    """The text, each token with its surprise; gives the position of the chosen one."""
    surprise = metrics.surprisal(scores.log_probs, unit).tolist() if scores else []
    most = float(metrics.surprisal(-math.log(vocab_size), unit))
    blank, end = strip.n_greyed + 1, strip.n_greyed + last  # nothing predicts the first token that is read
    choice.begin("next_token_strip", end, about=(ref, text), names=("pos",), first=-strip.n_greyed)
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
        f"{format_count(vocab_size)}. Choose one: what comes after it?"
    )
    return position


def bars(position: int, k: int) -> None:
    """The distribution after the chosen token, beside the true one."""
    probs, came = metrics.softmax(trace.logits[position]), ids[position + 1] if position < last else None
    true = truth.after(position) if truth else None
    top = metrics.most_likely(probs, k, also=came)
    shown = top.ids.tolist()
    fig = distribution_bars(
        [name_of(i) for i in shown],
        top.probs,
        tail=top.tail,
        n_tail=top.n_tail,
        true_index=None if came is None else shown.index(came),
        true_note="" if came is None else f"came, rank {metrics.rank(probs, came)}",
        second=None if true is None else true[shown],
        second_tail=None if true is None else metrics.tail_of(true, shown),
    )
    show(fig, key="next_token_bars")


def details(position: int, unit: str) -> None:
    """One probability worked out, and how far the whole distribution is from the true one."""
    probs, came = metrics.softmax(trace.logits[position]), position < last
    target = ids[position + 1] if came else int(metrics.most_likely(probs, 1).ids[0])
    st.markdown("**The probability of what came**" if came else "**The highest probability**")
    st.code(name_of(target), language=None, wrap_lines=True)
    z, log_total, _ = metrics.softmax_parts(trace.logits[position], target)
    st.latex(worked.softmax(z, log_total, vocab_size, unit=unit))
    st.caption(f"z is the model’s score for this token; the sum runs over all {format_count(vocab_size)}.")
    true = truth.after(position) if truth else None
    if true is not None:
        st.latex(worked.divergence(float(metrics.kl_divergence(true, probs)), unit))
        st.caption("How far the model is from the true distribution p*, over all tokens; 0 would be perfect.")


def whole_text(scored: Scored, unit: str) -> None:
    """Every token at once, and their probabilities as one number."""
    view = st.segmented_control(
        "Show", ["Table", "Surprise", "Best guesses"], default="Table", required=True, key="next_token_view",
        persist_state="session", label_visibility="collapsed",
    )  # fmt: skip
    if view == "Table":
        scored.table(unit, key="next_token_table")
    elif view == "Surprise":
        scored.surprise(unit, key="next_token_surprise")
    else:
        scored.guesses(name_of, key="next_token_guesses")
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    left.latex(worked.perplexity(scored.scores.total, last, trace.scored_bytes))
    right.caption("P is the product of all probabilities: its logarithm is a sum. The first token is given.")


n_bars, measure = controls()
chosen = choose(measure)
left, right = st.columns([4, 3], gap="medium")
with left:
    st.subheader(f"After token {chosen}, “{lesson.literal(visible(trace.tokens[chosen].data))}”, comes …")
    bars(chosen, n_bars)
with right:
    details(chosen, measure)
st.subheader("The whole text")
possible_story(ref, text)
if scores:
    whole_text(Scored(trace, scores, truth), measure)
else:
    st.info("Surprise and perplexity need at least 2 tokens: the first is given, and nothing predicts it.")
lesson.try_this(
    lesson.Step("What can a story be about? Compare both bars.", "Begin one", session.set_text, (OPENING,)),
    lesson.Step("Say something that no story says.", "Surprise the model", session.set_text, (STRANGE,)),
    lesson.Step("Names come back: is the model surprised?", "Tell of Lily", session.set_text, (RECALL,)),
)
