"""Letting a model write after the sidebar's text: what it wrote, drawing and forcing."""

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from engine.sampling import (
    Continuation,
    Tell,
    generate,
    next_logits,
    sampling_stages,
)
from engine.view import first_seen
from ui import resources, session
from ui.branches import Draw, Writing
from ui.courtesy import FRAME, Courtesy, one_at_a_time
from ui.lesson import LONGEST_TRUTH
from ui.model_refs import ModelRef
from ui.prompt import CHAT, Prompt
from ui.read_before import held_for
from ui.sampling_form import Settings
from ui.words import duration
from ui.written_text import pieces_of, written
from viz import format_count
from wording import words

say = words("ui.writing")

_STORE, _OTHERS = "_writing", "_writings_of_other_texts"
_KEPT = 8  # texts whose writing is kept besides the present one
LONG = 2.0  # seconds of writing from which on a page says how far it is


def writing(ref: ModelRef, prompt: Prompt) -> Writing:
    """What this person's model has written after this prompt so far; that of other prompts is kept."""
    kind = (CHAT if prompt.chat else "") + ("" if ref.bits == 32 else f" {ref.bits}")
    about = (ref.id + ref.identity + kind, prompt.text)
    now: Writing | None = st.session_state.get(_STORE)
    if now is not None and now.about == about:
        return now
    others: dict[tuple[str, str], Writing] = st.session_state.setdefault(_OTHERS, {})
    if now is not None and not now.empty:
        others[now.about] = now
        while len(others) > _KEPT:
            del others[next(iter(others))]
    found = others.pop(about, None) or Writing(about)
    st.session_state[_STORE] = found
    return found


def begin_again() -> None:
    """Go on from the bare prompt; what was written stays as a branch. For `on_click`."""
    now: Writing | None = st.session_state.get(_STORE)
    if now is not None:
        now.rewind(0)


def say_what_is_kept(text: Writing) -> None:
    """After a change of the sidebar's text: the old text's branches are not lost, and the way back."""
    others: dict[tuple[str, str], Writing] = st.session_state.get(_OTHERS, {})
    same = [other for other in others.values() if other.about[0] == text.about[0]]
    if not same or not text.empty:
        return
    n = sum(len(other.branches) for other in same)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(say("kept", n=n))
        st.button(say("back"), key="generation_back", on_click=session.set_text,
                  args=(same[-1].about[1],))  # fmt: skip


def go_on(
    text: Writing, ref: ModelRef, prompt: list[int], n: int, how: Settings, tell: Tell | None = None
) -> Iterator[Draw]:
    """Draw up to n more tokens, kept as they come. A seed gives the same text in one go and step by step."""
    checkpoint, branch = resources.load(ref), text.branch
    ids = prompt + branch.ids
    with held_for(ref, ids) as held:
        steps = generate(
            checkpoint.model,
            ids,
            n_tokens=n,
            seed=how.seed,
            stream=branch.stream,
            skip=len(branch.draws),
            stop_ids=how.stop_ids,
            jump=ref.jump,
            held=held,
            tell=tell,
            **how.draw,
        )
        for step in steps:
            data, own = checkpoint.tokenizer.token_bytes(step.id), float(step.model_probs[step.id])
            drawn = Draw(step.id, data, step.u, float(step.probs[step.id]), own, how.draw, how.seed)
            branch.draws.append(drawn)
            yield drawn


def draw_one(text: Writing, ref: ModelRef, prompt: list[int], how: Settings) -> None:
    """Draw one more token."""
    text.asked, text.full = 0, False
    list(go_on(text, ref, prompt, 1, how))


def force(text: Writing, ref: ModelRef, prompt: Sequence[int], token_id: int, how: Settings) -> None:
    """Put a chosen token at the end, with the probabilities that it had there."""
    ids = [*prompt, *text.ids]
    stages = sampling_stages(logits_after(ref, ids), **how.draw, previous=seen(ref, ids))
    own, prob = float(stages[0].probs[token_id]), float(stages[-1].probs[token_id])
    data = resources.tokenizer(ref).token_bytes(token_id)
    text.force(Draw(token_id, data, None, prob, own, how.draw, how.seed))


def seen(ref: ModelRef, ids: Sequence[int]) -> Sequence[int]:
    """The tokens that the model sees, which are those that the repetition penalty counts."""
    return ids[first_seen(len(ids), ref.context_length, ref.jump) :]


def write(
    panel: DeltaGenerator,
    place: DeltaGenerator,
    text: Writing,
    halves: tuple[str, str],
    ref: ModelRef,
    prompt: list[int],
    how: Settings,
) -> None:
    """Write into the page as the tokens come. Any click ends this run at the next token; what is there stays.

    Args:
        panel: the place of the text.
        place: where to say how far it is, if that takes long.
        text: is written on.
        halves: the prompt, see `halves`.
        ref: the model.
        prompt: its ids.
        how: the settings.
    """
    text.asked, text.done, began = how.n, 0, time.perf_counter()
    courtesy, drawn_at = Courtesy(here=resources.load(ref).model.device.type == "cpu"), 0.0

    def read(done: int, n: int) -> None:
        spent = time.perf_counter() - began
        left = say("left", left=duration(spent / done * (n - done))) if done and spent > 1 else ""
        place.progress(done / n, f"{say('reading', done=format_count(done), n=format_count(n))} {left}")

    for drawn in one_at_a_time(go_on(text, ref, prompt, how.n, how, read)):
        text.done, text.seconds = text.done + 1, time.perf_counter() - began
        if drawn.id in how.stop_ids:
            text.asked = text.done
        if time.perf_counter() - drawn_at > FRAME or text.done >= text.asked:
            panel.html(written(*halves, pieces_of(ref, text, ended=False)))
            drawn_at = time.perf_counter()
        courtesy.give_way()
        rest = text.seconds / text.done * (text.asked - text.done)
        if rest > LONG or text.seconds > LONG:
            said = say("writing", done=text.done, n=how.n, left=duration(rest))
            place.progress(text.done / how.n, said)


def logits_after(ref: ModelRef, ids: Sequence[int]) -> NDArray[Any]:
    """Logits (V,) of the token after some ids, of which the model sees the last; read-only."""
    return _logits(ref, tuple(seen(ref, ids)))


@lru_cache(maxsize=128)  # asked for in each run: a cache of Streamlit's hashes every field of the key
def _logits(ref: ModelRef, ids: tuple[int, ...]) -> NDArray[Any]:
    model = resources.load(ref).model
    with held_for(ref, ids) as held:
        if held is None:
            logits = next_logits(model, ids)
        else:
            logits = Continuation(model, ids, held=held).logits().float().cpu().numpy().copy()
    logits.setflags(write=False)
    return logits


@st.cache_resource(max_entries=64, show_spinner=say.later("asking"))
def truth_after(ref: ModelRef, ids: tuple[int, ...]) -> NDArray[Any] | None:
    """What is true after some ids (V,); None if no story goes on so, or the model learned something else."""
    oracle = resources.oracle_for(ref)
    if oracle is None or len(ids) > LONGEST_TRUTH:
        return None
    row: NDArray[Any] = oracle.distributions(ids)[-1]
    return row if row.sum() > 0 else None
