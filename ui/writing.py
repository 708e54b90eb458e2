"""A text that a person lets a model write: its draws, kept for the session, and how the text is shown."""

import html
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from engine.metrics import kl_divergence
from engine.sampling import Stage, TextStream, generate, next_logits
from engine.tokenizers import Token
from ui import resources
from ui.lesson import LONGEST_TRUTH
from ui.resources import ModelRef
from viz import format_count, format_nats, format_number, format_prob

_STORE = "_writing"
_SHOWN = 1500  # characters of a long prompt that are drawn
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]"
)  # would vanish, or turn the line around


class Draw(NamedTuple):
    """One drawn token: what it is, the number that chose it, and the settings of that moment.

    Attributes:
        prob: what it was drawn with.
        model_prob: the model's own, before temperature and cuts.
        settings: keywords of `engine.sampling.sampling_stages`.
    """

    id: int
    data: bytes
    u: float
    prob: float
    model_prob: float
    settings: dict[str, Any]


class Writing:
    """What was drawn after one prompt by one model. It lasts as long as prompt and model stay the same."""

    def __init__(self, about: tuple[str, str]) -> None:
        self.about = about
        self.draws: list[Draw] = []
        self.asked = 0  # by the last "write"
        self.done = 0
        self.seconds = 0.0

    @property
    def ids(self) -> list[int]:
        """What was drawn."""
        return [draw.id for draw in self.draws]

    def text(self, *, ended: bool = True) -> str:
        """What was drawn, as text; until it has ended, half a character waits for its other half."""
        stream = TextStream()
        text = "".join([stream.push(draw.data) for draw in self.draws])
        return text + stream.end() if ended else text

    def undo(self) -> None:
        """Take the last token back. For `on_click`."""
        self.draws = self.draws[:-1]
        self.asked = 0

    def restart(self) -> None:
        """Back to the prompt. For `on_click`."""
        self.draws, self.asked = [], 0

    def draw_one(self, ref: ModelRef, prompt: list[int], seed: int, settings: dict[str, Any]) -> None:
        """Draw one more token."""
        self.asked = 0
        list(self.go_on(ref, prompt, 1, seed, settings))

    def go_on(
        self, ref: ModelRef, prompt: list[int], n: int, seed: int, settings: dict[str, Any]
    ) -> Iterator[Draw]:
        """Draw n more tokens, kept as they come. A seed gives the same text in one go and step by step."""
        checkpoint = resources.load(ref)
        skip = len(self.draws)
        for step in generate(
            checkpoint.model, prompt + self.ids, n_tokens=n, seed=seed, skip=skip, **settings
        ):
            data, probs = checkpoint.tokenizer.token_bytes(step.id), step.probs
            draw = Draw(
                step.id, data, step.u, float(probs[step.id]), float(step.model_probs[step.id]), settings
            )
            self.draws.append(draw)
            yield draw


def writing(ref: ModelRef, prompt: str) -> Writing:
    """What this person's model has written after this prompt so far."""
    about = (ref.id + ref.identity, prompt)
    kept = st.session_state.get(_STORE)
    if kept is None or kept.about != about:
        kept = st.session_state[_STORE] = Writing(about)
    return kept


def forget() -> None:
    """Back to the bare prompt, whatever it is."""
    st.session_state.pop(_STORE, None)


def write(panel: DeltaGenerator, text: Writing, halves: tuple[str, str], how: tuple[Any, ...]) -> None:
    """Write into the page as the tokens come. Any click ends this run at the next token; what is there stays.

    Args:
        panel: the place of the text.
        text: is written on.
        halves: the prompt, see `halves`.
        how: arguments of `Writing.go_on`.
    """
    text.asked, text.done, began = how[2], 0, time.perf_counter()
    for _ in text.go_on(*how):
        text.done, text.seconds = text.done + 1, time.perf_counter() - began
        panel.html(written(*halves, text.text(ended=False)))


def notes(ref: ModelRef, prompt: str, n_prompt: int, text: Writing) -> None:
    """One line each: what the model sees, how the writing ended, a hint."""
    total = n_prompt + len(text.draws)
    if total > ref.context_length:
        st.caption(
            f"Using the last {format_count(ref.context_length)} of {format_count(total)} tokens: "
            "the model can’t see more at once."
        )
    if prompt.endswith(" ") and not text.draws:
        st.caption(
            "The prompt ends in a space. Most words bring their own space along: "
            "the model may do better without it."
        )
    if text.asked and text.done < text.asked:
        st.caption(
            f"Stopped after {text.done} of {text.asked} tokens. They stay, and Write goes on from here."
        )
    elif text.asked:
        st.caption(
            f"Wrote {text.done} tokens, {format_number(text.done / max(text.seconds, 1e-9))} a second."
        )


def cuts_in_words(stages: Sequence[Stage]) -> str:
    """What each cut took away, in the order in which they are made."""
    cuts = [
        f"**{stage.name}** removed {format_prob(stage.removed_mass)} of the probability and left "
        f"{format_count(stage.n_kept)} token{'s' * (stage.n_kept > 1)}"
        for stage in stages[2:]
    ]
    return f"Order: temperature → top-k → top-p → min-p. {'; '.join(cuts) or 'Nothing is cut away'}."


def cost_in_words(truth: NDArray[Any] | None, probs: NDArray[Any]) -> str:
    """How far the model's distribution is from the true one."""
    if truth is None:
        return "No story goes on from here, so there is no true distribution."
    cost = format_nats(float(kl_divergence(truth, probs)))
    return f"To believe the model instead of the truth costs {cost} here (KL divergence)."


def halves(ref: ModelRef, prompt: str, tokens: Sequence[Token], text: Writing) -> tuple[str, str]:
    """The prompt, cut where the model's view begins."""
    unused = max(0, len(tokens) + len(text.draws) - ref.context_length)
    at = tokens[unused].start if unused < len(tokens) else len(prompt)
    return prompt[:at], prompt[at:]


@st.cache_resource(max_entries=64, show_spinner=False)
def logits_after(ref: ModelRef, ids: tuple[int, ...]) -> NDArray[Any]:
    """Logits (V,) of the token after some ids; read-only."""
    logits = next_logits(resources.load(ref).model, ids)
    logits.setflags(write=False)
    return logits


@st.cache_resource(max_entries=64, show_spinner="Asking the story grammar …")
def truth_after(ref: ModelRef, ids: tuple[int, ...]) -> NDArray[Any] | None:
    """What is true after some ids (V,); None if no story goes on so, or the model learned something else."""
    oracle = resources.oracle_for(ref)
    if oracle is None or len(ids) > LONGEST_TRUTH:
        return None
    row: NDArray[Any] = oracle.distributions(ids)[-1]
    return row if row.sum() > 0 else None


def _literal(text: str) -> str:
    return html.escape(_UNSEEN.sub(lambda found: f"⟨{ord(found[0]):02X}⟩", text))


def written(unused: str, prompt: str, text: str) -> str:
    """HTML of prompt and continuation; both escaped, told apart by colour and underline.

    Args:
        unused: the part of the prompt that the model can't see; pale.
        prompt: the part that it sees.
        text: what was written.
    """
    shown = prompt[-_SHOWN:]
    pale = unused[len(unused) - (_SHOWN - len(shown)) :] if len(unused) > _SHOWN - len(shown) else unused
    more = "…" if len(pale) + len(shown) < len(unused) + len(prompt) else ""
    return (
        '<div role="region" tabindex="0" aria-label="The text so far" class="loupe-written" style="'
        "display:flex;flex-direction:column-reverse;max-height:11rem;overflow-y:auto;"
        "border:1px solid rgba(128,136,145,0.5);"
        'border-radius:0.5rem;padding:0.6rem 0.8rem;line-height:1.6">'
        '<div dir="auto" style="white-space:pre-wrap;overflow-wrap:anywhere">'
        f'<span data-part="unused" style="opacity:0.6">{_literal(more + pale)}</span>'
        f'<span data-part="prompt">{_literal(shown)}</span>'
        '<span data-part="written" style="background:rgba(55,110,224,0.16);border-bottom:2px solid #376EE0">'
        f"{_literal(text)}</span></div></div>"
    )
