"""Where every head looks: all of them small, one large, one weight worked out."""

import streamlit as st

from engine.trace import attention_cell, best_head, head_patterns
from ui import choice, lesson, nav, resources, session, worked
from ui.components import head_grid, select, show, token_strip
from ui.resources import ModelRef
from viz import attention_map, format_count, format_number, probability_color, visible

nav.require_app()

MOST = 128  # tokens drawn: more can't be read, and all heads of more would be megabytes
REPEATED = "The fox saw the owl. The fox saw the owl. The fox saw the owl."
RULES = {"previous": "the token just before", "first": "the first token", "same": "earlier equal tokens"}


def find(ref: ModelRef, text: str, rule: str) -> None:
    """For a button: choose the head that follows a rule most, in a text where that can be seen."""
    if rule == "same" or len(text) < 20:
        text = REPEATED
        session.set_text(text)
    try:
        found = best_head(resources.traced(ref, text), rule)
    except ValueError:
        return  # the page says why this text can't be read
    if found:
        select("attention_heads", found)


def window(n: int) -> tuple[int, int]:
    """Which positions are drawn: all, or the first or last of a long text."""
    if n <= MOST:
        return 0, n
    part = st.segmented_control(
        "Draw", ["first", "last"], default="last", required=True, key="attention_part",
        persist_state="session", format_func=lambda name: f"the {name} {MOST} tokens",
    )  # fmt: skip
    st.info(
        f"{MOST} of {format_count(n)} tokens are drawn. The weights are those of the whole text, so a row "
        "that is drawn may add up to less than 1."
    )
    return (0, MOST) if part == "first" else (n - MOST, n)


st.title("Attention")
st.write("See where each head looks: choose the token that looks, then a head. Below is the arithmetic.")

ref, text = session.require_model(), session.text()
trace = lesson.look(ref, text)
begin, end = window(len(trace.tokens))
strip = lesson.strip_of(ref, text, begin, end)
names = [visible(token.data) for token in trace.tokens[begin:end]]
weights = trace.attentions[:, :, begin:end, begin:end]

last = strip.n_greyed + len(names) - 1
choice.begin("attention_query", last, about=(ref, text, begin), names=("pos",), first=begin - strip.n_greyed)
index = token_strip(
    strip.segments,
    key="attention_query",
    selected=last,
    greyed=range(strip.n_greyed),
    label="The token that looks (query)",
)
row = max((last if index is None else index) - strip.n_greyed, 0)
query = begin + row

left, right = st.columns([2, 3], gap="large")
with left:
    choice.begin("attention_heads", (0, 0), about=ref.id, names=("layer", "head"), first=1)
    layer, head = head_grid(weights, names, objective=trace.objective, key="attention_heads")
    choice.share({"pos": query, "layer": layer + 1, "head": head + 1})
    patterns = head_patterns(trace)
    shares = [f"- {words}: **{format_number(patterns[rule][layer, head])}**" for rule, words in RULES.items()]
    lines = ["Rows look at columns; each row adds up to 1. This head’s mean weight on", *shares]
    st.caption("\n".join(lines))
with right:
    st.markdown(f"**Layer {layer + 1}, head {head + 1}**")
    fig = attention_map(names, weights[layer, head], objective=trace.objective, query=row)
    show(fig, key="attention_map")

st.subheader(f"Token {query}, “{lesson.literal(names[row])}”, looks at …")
stop = query + 1 if trace.objective == "clm" else end
keys = lesson.strip_of(ref, text, begin, stop, 0)
shown = trace.attentions[layer, head, query, begin:stop]
best = int(shown.argmax())
choice.begin("attention_key", best, about=(ref, text, begin, layer, head, query))
chosen = token_strip(
    keys.segments,
    key="attention_key",
    selected=best,
    values=[lesson.brief(x) for x in shown.tolist()],
    colors=[probability_color(x) for x in shown.tolist()],
    label="Tokens that it looks at (keys), with their weights",
)
key = begin + (best if chosen is None else chosen)

cell = attention_cell(trace, layer, head, query, key)
left, right = st.columns(2, gap="large")
with left:
    looked_at = lesson.literal(names[key - begin])
    st.markdown(f"**Why {format_number(cell.weight)} on token {key}, “{looked_at}”**")
    st.latex(worked.attention(cell.dot, len(cell.products), cell.row_total))
    st.caption(
        "q is what the query asks for, k what the key offers: two lists of numbers. The sum over j runs over "
        "all keys that the query can see."
    )
with right:
    st.markdown("**Their products, number by number**")
    st.dataframe(
        {
            "i": list(range(1, len(cell.products) + 1)),
            "q": trace.q[layer, head, query].tolist(),
            "k": trace.k[layer, head, key].tolist(),
            "q · k": cell.products.tolist(),
        },
        hide_index=True,
        height=210,
        key="attention_products",
    )
    st.download_button(
        "Download this head’s weights (CSV)",
        lambda: lesson.table_csv(names, weights[layer, head]),
        file_name=f"attention-layer{layer + 1}-head{head + 1}.csv",
        mime="text/csv",
        key="attention_download",
        on_click="ignore",
    )
TRY = (
    ("Some heads just look one token back.", "Find one", "previous"),
    ("In a text that repeats itself, a head may look for the same token.", "Repeat and find it", "same"),
    ("Many heads rest on the first token when they have nothing to do.", "Find the laziest", "first"),
)
lesson.try_this(*(lesson.Step(words, label, find, (ref, text, rule)) for words, label, rule in TRY))
