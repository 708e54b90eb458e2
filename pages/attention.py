"""Where every head looks: all of them small, one large, one weight worked out."""

from functools import partial

import streamlit as st

from ui import attention_arithmetic, choice, head_find, head_habits, head_maps, lesson, nav, passes, session
from ui.again import Again
from ui.components import current, head_grid, select, show, token_strip
from ui.part import part
from viz import attention_map, format_count, probability_color, visible
from wording import words

nav.require_app()
say = words("pages.attention")

MANY = 60  # tokens of a strip; more scroll, so that what is below stays in sight


def window(n: int, most: int) -> tuple[int, int]:
    """Which positions are drawn: all, or the first or last of a long text."""
    if n <= most:
        return 0, n
    part = st.segmented_control(
        say("draw"), ["first", "last"], default="last", required=True, key="attention_part",
        persist_state="session", format_func=lambda name: say(f"part.{name}", most=most),
    )  # fmt: skip
    begin = 0 if part == "first" else n - most
    st.info(say("drawn", most=most, n=format_count(n), first=begin, last=begin + most - 1))
    return begin, begin + most


st.title(nav.title("attention"))
st.write(say("intro"))

ref, text = session.require_model(), session.text()
trace = lesson.look(ref, text)
n_layer, n_head = trace.attentions.shape[:2]
drawable = head_maps.most_drawn(n_layer, n_head, trace.objective == "clm")
begin, end = window(len(trace.tokens), drawable)
strip = lesson.strip_of(ref, text, begin, end)
every = [visible(token.data) for token in trace.tokens]
names = every[begin:end]
weights = trace.attentions[:, :, begin:end, begin:end]

last = strip.n_greyed + len(names) - 1
choice.begin("attention_query", last, about=(ref, text, begin), names=("pos",), first=begin - strip.n_greyed)
with st.container(height=170 if last > MANY else "content", border=last > MANY):
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
    st.session_state[head_find.PRESSED] = (begin + y, begin + x)


choice.begin("attention_heads", (0, 0), about=ref.id, names=("layer", "head"), first=1)
if n_layer > head_maps.DEEP:  # so many maps take the whole width, and the keys stand beside the large one
    overview, (large, looks) = st.container(), st.columns([3, 2], gap="large")
else:
    overview, large = st.columns([2, 3], gap="large")
    looks = st.container()
with overview:
    bright = st.toggle(
        say("bright"), key="attention_bright", persist_state="session", help=say("bright_help")
    )
    layer, head = head_grid(
        weights, names, objective=trace.objective, key="attention_heads", first=begin,
        windows=[trace.config.window(layer) for layer in range(n_layer)],
        packed=head_maps.packed(ref, text, begin, end), bright=bright,
    )  # fmt: skip
    head_maps.downloads(ref, text, begin, end, layer)
choice.share({"pos": query, "layer": layer + 1, "head": head + 1})

seen = trace.visible(layer)[query, begin:end].nonzero()[0]  # a row of neighbours: the mask has no holes
start, stop = begin + int(seen[0]), begin + int(seen[-1]) + 1
shown = trace.attentions[layer, head, query, start:stop]
best = int(shown.argmax())
choice.begin("attention_key", best, about=(ref, text, begin, layer, head, query))
pressed = st.session_state.pop(head_find.PRESSED, None)
if pressed and pressed[0] == query:
    select("attention_key", min(max(pressed[1], start), stop - 1) - start)
with large:
    number = {"layer": layer + 1, "head": head + 1}
    st.markdown(say("head", **number) if len(names) == len(every) else say("head_of_part", **number))
    head_find.tell(ref, text, layer, head, query)
    fig = attention_map(
        names, weights[layer, head], objective=trace.objective, query=row,
        key=current("attention_key", best) + start - begin, press=True, first=begin,
        window=trace.config.window(layer), bright=bright,
    )  # fmt: skip
    show(fig, key="attention_map", on_press=press)

with looks:
    st.subheader(say("looks_at", query=query, token=lesson.literal(names[row])))
    keys = lesson.strip_of(ref, text, start, stop, 0)
    with st.container(height=420 if stop - start > MANY else "content", border=stop - start > MANY):
        chosen = token_strip(
            keys.segments,
            key="attention_key",
            selected=best,
            values=[head_find.written(x) for x in shown.tolist()],
            colors=[probability_color(x, bright) for x in shown.tolist()],
            label=say("keys"),
        )
key = start + (best if chosen is None else chosen)
passed = Again(trace, partial(passes.traced, ref, text))
place = attention_arithmetic.Place(passed, layer, head, query, key, every, begin, end)
part(attention_arithmetic.draw)(place)
st.subheader(say("habits"))
head_habits.table(ref, text, trace, (layer, head), "attention_heads")
lesson.try_this(
    *(
        lesson.Step(said, say(f"try_button.{rule}"), head_find.find, (ref, text, rule, drawable))
        for rule, said in say.table("try").items()
    )
)
del trace, weights, shown  # a function that a button calls lives on, and with it all names of this page
