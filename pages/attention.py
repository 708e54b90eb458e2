"""Where every head looks: all of them small, one large, one weight worked out."""

import streamlit as st

from ui import attention_arithmetic, choice, head_find, head_habits, lesson, nav, session
from ui.components import current, head_grid, select, show, token_strip
from viz import attention_map, format_count, probability_color, visible
from wording import words

nav.require_app()
say = words("pages.attention")

MOST = 128  # tokens drawn: more can't be read, and all heads of more would be megabytes


def window(n: int) -> tuple[int, int]:
    """Which positions are drawn: all, or the first or last of a long text."""
    if n <= MOST:
        return 0, n
    part = st.segmented_control(
        say("draw"), ["first", "last"], default="last", required=True, key="attention_part",
        persist_state="session", format_func=lambda name: say(f"part.{name}", most=MOST),
    )  # fmt: skip
    begin = 0 if part == "first" else n - MOST
    st.info(say("drawn", most=MOST, n=format_count(n), first=begin, last=begin + MOST - 1))
    return begin, begin + MOST


st.title(nav.title("attention"))
st.write(say("intro"))

ref, text = session.require_model(), session.text()
trace = lesson.look(ref, text)
begin, end = window(len(trace.tokens))
strip = lesson.strip_of(ref, text, begin, end)
every = [visible(token.data) for token in trace.tokens]
names = every[begin:end]
weights = trace.attentions[:, :, begin:end, begin:end]

last = strip.n_greyed + len(names) - 1
choice.begin("attention_query", last, about=(ref, text, begin), names=("pos",), first=begin - strip.n_greyed)
index = token_strip(
    strip.segments,
    key="attention_query",
    selected=last,
    greyed=range(strip.n_greyed),
    label=say("query"),
)
row = max((last if index is None else index) - strip.n_greyed, 0)
query = begin + row


def press(x: int, y: int) -> None:
    """For a cell of the large map: its row is the token that looks, its column the one that it looks at."""
    select("attention_query", y + strip.n_greyed)
    st.session_state[head_find.PRESSED] = (begin + y, x if trace.objective == "mlm" else min(x, y))


choice.begin("attention_heads", (0, 0), about=ref.id, names=("layer", "head"), first=1)
left, right = st.columns([2, 3], gap="large")
with left:
    layer, head = head_grid(weights, names, objective=trace.objective, key="attention_heads", first=begin)
    st.download_button(
        say("download"),
        lambda: head_habits.weights_csv(trace, every, begin, end),
        file_name="attention-all-heads.csv", mime="text/csv", key="attention_download", on_click="ignore",
    )  # fmt: skip
choice.share({"pos": query, "layer": layer + 1, "head": head + 1})

stop = query + 1 if trace.objective == "clm" else end
shown = trace.attentions[layer, head, query, begin:stop]
best = int(shown.argmax())
choice.begin("attention_key", best, about=(ref, text, begin, layer, head, query))
pressed = st.session_state.pop(head_find.PRESSED, None)
if pressed and pressed[0] == query:
    select("attention_key", pressed[1])
with right:
    number = {"layer": layer + 1, "head": head + 1}
    st.markdown(say("head", **number) if len(names) == len(every) else say("head_of_part", **number))
    head_find.tell(ref, text, layer, head, query)
    fig = attention_map(
        names, weights[layer, head], objective=trace.objective, query=row, key=current("attention_key", best),
        press=True, first=begin,
    )  # fmt: skip
    show(fig, key="attention_map", on_press=press)

st.subheader(say("looks_at", query=query, token=lesson.literal(names[row])))
keys = lesson.strip_of(ref, text, begin, stop, 0)
chosen = token_strip(
    keys.segments,
    key="attention_key",
    selected=best,
    values=[head_find.written(x) for x in shown.tolist()],
    colors=[probability_color(x) for x in shown.tolist()],
    label=say("keys"),
)
key = begin + (best if chosen is None else chosen)
attention_arithmetic.draw(attention_arithmetic.Place(trace, layer, head, query, key, every, begin, end))
st.subheader(say("habits"))
head_habits.table(ref, text, trace, (layer, head), "attention_heads")
lesson.try_this(
    *(
        lesson.Step(said, say(f"try_button.{rule}"), head_find.find, (ref, text, rule, MOST))
        for rule, said in say.table("try").items()
    )
)
