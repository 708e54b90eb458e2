"""How a text that is being written is shown, and what is said of it."""

import html
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import streamlit as st
from numpy.typing import NDArray

from engine.metrics import kl_divergence
from engine.sampling import Stage, TextStream
from engine.view import first_seen
from engine.waterfall import CUTS
from ui import resources
from ui.branches import Draw, Writing
from ui.lesson import literal
from ui.model_refs import ModelRef
from ui.prompt import Prompt
from viz import format_count, format_nats, format_number, format_prob, visible
from wording import words

say = words("ui.written_text")

_SHOWN = 1500  # characters of a long prompt that are drawn
FEW = 5  # tokens: of fewer a speed says nothing
_FRAME = (
    '<span data-part="control" style="border:1px solid;border-radius:0.3rem;padding:0 0.25rem;'
    'margin:0 0.1rem;font-size:0.85em">{}</span>'
)
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]"
)  # would vanish, or turn the line around


class Piece(NamedTuple):
    """A piece of a text, and whether it is a control token, which no typed text can give."""

    text: str
    control: bool = False


def literal_html(text: str) -> str:
    """A text as HTML that shows it character by character, also those that would vanish."""
    return html.escape(_UNSEEN.sub(lambda found: f"⟨{ord(found[0]):02X}⟩", text))


def written(unused: str, prompt: str, pieces: Sequence[Piece]) -> str:
    """HTML of prompt and continuation; all escaped, told apart by colour and underline.

    Args:
        unused: the part of the prompt that the model can't see; pale.
        prompt: the part that it sees.
        pieces: what was written, see `pieces_of`.
    """
    shown = prompt[-_SHOWN:]
    pale = unused[len(unused) - (_SHOWN - len(shown)) :] if len(unused) > _SHOWN - len(shown) else unused
    drawn = "".join(_FRAME.format(literal_html(one)) if frame else literal_html(one) for one, frame in pieces)
    more = "…" if len(pale) + len(shown) < len(unused) + len(prompt) else ""
    return (
        '<div role="region" tabindex="0" class="loupe-written" '
        f'aria-label="{html.escape(say("so_far"))}" style="'
        "display:flex;flex-direction:column-reverse;max-height:8.5rem;overflow-y:auto;"
        "border:1px solid rgba(128,136,145,0.5);"
        'border-radius:0.5rem;padding:0.5rem 0.8rem;line-height:1.6">'
        '<div dir="auto" style="white-space:pre-wrap;overflow-wrap:anywhere">'
        f'<span data-part="unused" style="opacity:0.6">{literal_html(more + pale)}</span>'
        f'<span data-part="prompt">{literal_html(shown)}</span>'
        '<span data-part="written" style="background:rgba(55,110,224,0.16);border-bottom:2px solid #376EE0">'
        f"{drawn}</span></div></div>"
    )


def halves(ref: ModelRef, prompt: Prompt, text: Writing) -> tuple[str, str]:
    """The prompt, cut where the model's view begins."""
    at = prompt.cut(ref, len(text.draws))
    gap = "\n" if prompt.chat else ""  # the answer to a message is no continuation of it
    return prompt.text[:at], prompt.text[at:] + gap


def pieces_of(ref: ModelRef, text: Writing, *, ended: bool = True) -> list[Piece]:
    """What was written; until it has ended, half a character waits for its other half."""
    control, stream = resources.tokenizer(ref).control_ids, TextStream()
    pieces: list[Piece] = []
    for draw in text.draws:
        if draw.id in control:
            pieces += [Piece(stream.end()), Piece(draw.data.decode("utf-8", "backslashreplace"), True)]
            stream = TextStream()
        else:
            pieces.append(Piece(stream.push(draw.data)))
    return [*pieces, Piece(stream.end())] if ended else pieces


def notes(ref: ModelRef, prompt: str, n_prompt: int, text: Writing, stop_ids: frozenset[int]) -> None:
    """One line each: what the model sees, how the writing ended, a hint."""
    if text.message:
        st.warning(text.message)
    say_what_is_seen(ref, n_prompt + len(text.draws))
    if prompt.endswith(" ") and not text.draws:
        st.caption(say("space"))
    if text.asked and text.done < text.asked:
        st.caption(say("stopped", done=text.done, asked=text.asked))
    elif text.asked:
        speed = format_number(text.done / max(text.seconds, 1e-9))
        wrote = say("wrote", n=text.done, speed=speed) if text.done >= FEW else say("wrote_few", n=text.done)
        over = " " + _over(ref, text.draws[-1]) if text.ids[-1] in stop_ids else ""
        st.caption(wrote + over)


def _over(ref: ModelRef, last: Draw) -> str:
    """Why the writing ended by itself."""
    if last.data.endswith(b"\n"):
        return say("line_ends")
    return say("text_ends", token=literal(visible(last.data)))


def say_what_is_seen(ref: ModelRef, n_tokens: int) -> None:
    """One line if the model can't see all tokens."""
    if n_tokens <= ref.context_length:
        return
    last = n_tokens - first_seen(n_tokens, ref.context_length, ref.jump)
    said = say("seen", last=format_count(last), all=format_count(n_tokens))
    if ref.jump > 1:
        said += " " + say("jumps", most=format_count(ref.context_length), jump=format_count(ref.jump))
    st.caption(said)


def cuts_in_words(stages: Sequence[Stage]) -> str:
    """What each cut took away, in the order in which they are made."""
    cuts = [
        say("cut", cut=stage.name, removed=format_prob(stage.removed_mass), n=stage.n_kept)
        for stage in stages
        if stage.name in CUTS
    ]
    return "; ".join(cuts) + "." if cuts else say("nothing_cut")


def cost_in_words(truth: NDArray[Any] | None, probs: NDArray[Any]) -> str:
    """How far the model's distribution is from the true one."""
    if truth is None:
        return say("no_truth")
    cost = format_nats(float(kl_divergence(truth, probs)))
    return say("cost", cost=cost)
