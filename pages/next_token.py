"""What the model expects after every token, and how surprised it is by what came."""

import math

import streamlit as st

from engine import metrics
from ui import choice, lesson, nav, resources, session, worked
from ui.components import show, token_strip
from viz import (
    NEUTRAL, distribution_bars, format_count, format_number, position_heatmap, surprisal_bars, surprisal_color, visible,
)  # fmt: skip

nav.require_app()

GUESSES = 6  # columns of the best guesses
VIEWS = ["Table", "Surprise", "Best guesses"]
OPENING = "Once upon a time, there was a"
STRANGE = "Once upon a time, there was a spreadsheet who"
RECALL = "Once upon a time, there was a fox called Lily. She lived beside a river and loved music. One day,"

st.title("Next token")
st.write("See what the model expects after every token of the text, and how surprised it is by the one that came.")

ref, text = session.require_model("clm"), session.text()
trace = lesson.look(ref, text)
lesson.space_hint(text)
truth, strip = lesson.truth_of(ref, text), lesson.strip_of(ref, text)
tokenizer, ids = resources.tokenizer(ref), trace.ids.tolist()
names = [visible(token.data) for token in trace.tokens]
last, vocab_size = len(ids) - 1, trace.logits.shape[1]
scores = metrics.next_token_scores(trace.logits, ids) if last else None


def name_of(token_id: int) -> str:
    """How a token of the vocabulary is written."""
    return visible(tokenizer.token_bytes(int(token_id)))


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
        values=[""] * blank + [format_number(x) for x in surprise],
        colors=[NEUTRAL] * blank + [surprisal_color(x, most) for x in surprise],
        greyed=range(strip.n_greyed),
        label="The text, each token with its surprise",
    )
    position = max((end if index is None else index) - strip.n_greyed, 0)
    choice.share({"pos": position})
    st.caption(
        f"Choose a token: the model reads up to it and expects the next. The number is its surprise, in {unit}, by the "
        f"token above it; the brightest colour is a blind guess among all {format_count(vocab_size)} tokens."
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
    )
    show(fig, key="next_token_bars")


def details(position: int, unit: str) -> None:
    """One probability worked out, and how far the whole distribution is from the true one."""
    probs = metrics.softmax(trace.logits[position])
    target = ids[position + 1] if position < last else int(metrics.most_likely(probs, 1).ids[0])
    st.markdown("**The probability of the token that came**" if position < last else "**The highest probability**")
    st.code(name_of(target), language=None, wrap_lines=True)
    z, log_total, _ = metrics.softmax_parts(trace.logits[position], target)
    for line in worked.softmax_lines(z, log_total, vocab_size, unit=unit):
        st.latex(line)
    st.caption(f"z is the token’s score from the model; the sum runs over all {format_count(vocab_size)} tokens.")
    true = truth.after(position) if truth else None
    if true is not None:
        st.latex(worked.kl_line(float(metrics.kl_divergence(true, probs)), unit))
        st.caption("How far the model is from the true distribution p*, over all tokens; 0 would be perfect.")
    elif truth:
        st.caption(f"The stories never go on like this after token {truth.n_told}, so nothing true can be shown here.")


def table(unit: str) -> None:
    """Every token with its probability, rank, surprise, and the perplexity up to it."""
    columns = {
        "token": list(range(1, last + 1)),
        "text": names[1:],
        "probability": scores.probs.tolist(),
        "rank": scores.ranks.tolist(),
        f"surprise ({unit})": metrics.surprisal(scores.log_probs, unit).tolist(),
        f"entropy ({unit})": metrics.surprisal(-scores.entropies, unit).tolist(),
        "running perplexity": scores.running_perplexity.tolist(),
    }
    if truth:
        columns["true probability"] = truth.of(ids).tolist()
    precise = st.column_config.NumberColumn(format="%.4g")
    numbers = {name: precise for name, column in columns.items() if isinstance(column[0], float)}
    st.dataframe(columns, hide_index=True, column_config=numbers, height=360, key="next_token_table")


def along(view: str, unit: str) -> None:
    """The whole text at once."""
    if view == VIEWS[0]:
        table(unit)
    elif view == VIEWS[1]:
        surprise = [math.nan, *metrics.surprisal(scores.log_probs, unit).tolist()]
        second = None if truth is None else [math.nan, *metrics.surprisal(truth.log_of(ids), unit).tolist()]
        mean = float(metrics.surprisal(-scores.loss, unit))
        show(surprisal_bars(names, surprise, unit=unit, mean=mean, second=second), key="next_token_surprise")
    else:
        tops = [metrics.most_likely(row, GUESSES) for row in trace.probs()]
        labels = [[name_of(i) for i in top.ids] for top in tops]
        with st.container(height=420):
            fig = position_heatmap(names, labels, [top.probs for top in tops], true_rank=[*scores.ranks.tolist(), None])
            show(fig, key="next_token_guesses")


unit_slot = st.container(horizontal=True, gap="large")
