"""Which tokens of the text a person has hidden, and what is computed about the gaps; kept for the session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from numpy.typing import NDArray

import viz
from engine import gaps
from engine.mask_draws import draw_masks
from engine.pseudo import pseudo_log_probs
from engine.sampling import next_logits
from engine.shelf import Shelf
from engine.tokenizers import Token
from engine.tokens import whole_graphemes
from ui import model_refs, resources, session
from ui.components import current, select
from ui.lesson import LONGEST_TRUTH
from ui.model_refs import ModelRef
from wording import words

say = words("ui.hiding")

STRIP, SEED, PLACE, SHARE = "masking_strip", "masking_seed", "masking_place", "masking_share"
USUAL = 15  # % of the tokens that masked training chooses
_HIDDEN = "_masking_hidden"
MOST_READ, READ_BYTES = 32, 100_000_000  # texts whose logits are kept for all people, and all together


@dataclass(frozen=True, eq=False)
class GapText:
    """The text of all pages, read by a masked model, in which ``[MASK]`` is a gap.

    Attributes:
        tokens: all tokens of the text.
        unused: how many at the start the model can't see; positions count from the first one that it sees.
        segments: the tokens that it sees, in whole graphemes.
        typed: positions at which ``[MASK]`` was typed: nobody knows what is true there.
    """

    tokens: list[Token]
    unused: int
    segments: list[list[Token]]
    typed: tuple[int, ...]

    @property
    def seen(self) -> list[Token]:
        """The tokens that the model sees."""
        return self.tokens[self.unused :]

    @property
    def ids(self) -> list[int]:
        """Their ids."""
        return [token.id for token in self.seen]

    def before(self, place: int) -> list[int]:
        """Ids of everything left of a position, also of what the masked model can't see."""
        return [token.id for token in self.tokens[: self.unused + place]]


@st.cache_resource(max_entries=16, show_spinner=False)
def read(ref: ModelRef, text: str) -> GapText:
    """Cut the text into tokens; needs no weights."""
    tokenizer = resources.tokenizer(ref)
    tokens = gaps.gap_tokens(tokenizer, text)
    unused = max(0, len(tokens) - ref.context_length + sum(map(len, tokenizer.frame)))
    seen = tokens[unused:]
    typed = tuple(i for i, token in enumerate(seen) if token.id == tokenizer.mask_id)
    return GapText(tokens, unused, whole_graphemes(seen, tokenizer.normal(text)), typed)


@dataclass(frozen=True, eq=False)
class Both:
    """What the views of the page share: two models, one text, and what is hidden of it.

    Attributes:
        causal: None if there is no causal model.
        masked: the text is cut into its tokens.
        text: what the masked model reads.
        whole: the text of all pages as it was typed.
        hidden: positions of `text` that are hidden, typed ones among them.
    """

    causal: ModelRef | None
    masked: ModelRef
    text: GapText
    whole: str
    hidden: list[int]

    @property
    def mask_id(self) -> int:
        """The masked model's mask."""
        return resources.tokenizer(self.masked).mask_id

    @property
    def n_ids(self) -> int:
        """Number of ids from which masked training draws a random token."""
        return resources.tokenizer(self.masked).vocab_size

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that masked training never chooses and never draws."""
        return resources.tokenizer(self.masked).control_ids

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """Ids that the masked model reads before and after the text; they are never hidden."""
        return resources.tokenizer(self.masked).frame

    @property
    def same_tokens(self) -> bool:
        """Whether both models have one vocabulary; else their distributions have no common axis."""
        return not unlike(self.causal, self.masked)

    def name(self, position: int) -> str:
        """A position and its token, as it is shown."""
        return f"{position}: {viz.visible(self.text.seen[position].data)}"


def partners(chosen: ModelRef) -> list[ModelRef]:
    """The models of the other kind; those with the chosen one's vocabulary first, then of its sort."""
    own = resources.tokenizer(chosen).hash
    others = [
        ref for ref in model_refs.available_models(session.owner()) if ref.objective != chosen.objective
    ]
    return sorted(
        filter(resources.has_tokenizer, others),
        key=lambda ref: (
            resources.tokenizer(ref).hash != own,
            ref.kind != chosen.kind,
            abs(ref.n_params - chosen.n_params),
        ),
    )


def pair(chosen: ModelRef, other: ModelRef | None) -> tuple[ModelRef | None, ModelRef | None]:
    """The causal and the masked one of the chosen model and its partner."""
    return (chosen, other) if chosen.objective == "clm" else (other, chosen)


def unlike(causal: ModelRef | None, masked: ModelRef | None) -> bool:
    """Whether there are no two models with one vocabulary."""
    if causal is None or masked is None:
        return True
    return resources.tokenizer(causal).hash != resources.tokenizer(masked).hash


def _first_gap(text: GapText) -> set[int]:
    """What is hidden before anybody has chosen: the longest word that has something on both sides.

    Of several the one nearest to the middle, of a text without words its middle.
    """
    middle = len(text.seen) // 2
    words = [i for i, token in enumerate(text.seen[:-1]) if i and token.text.strip().isalpha()]
    best = max(words, key=lambda i: (len(text.seen[i].data), -abs(i - middle)), default=middle)
    return {best} if text.seen else set()


def hidden(ref: ModelRef, text: GapText, about: str) -> list[int]:
    """Positions that are hidden now, typed ones among them; a new text begins with one gap."""
    kept = st.session_state.get(_HIDDEN)
    if kept is None or kept["about"] != (ref.id, about):
        word, first = (kept or {}).get("wanted", ("", False))
        linked = (kept or {}).get("linked", [])
        wanted = linked or gaps.positions_of(text.seen, about, word, first=first)
        chosen = set(wanted) or (set() if text.typed else _first_gap(text))
        kept = st.session_state[_HIDDEN] = {"about": (ref.id, about), "chosen": chosen}
    return sorted({i for i in kept["chosen"] if i < len(text.seen)} | set(text.typed))


def press(place: int) -> None:
    """Hide a token, or show it again, and look there. For the strip's `on_press`."""
    st.session_state[_HIDDEN]["chosen"] ^= {place}
    st.session_state[PLACE] = place


def look_at(gaps_now: Sequence[int]) -> int | None:
    """The gap to look at: the one that was pressed or picked last if it is still one. The strip marks it."""
    if not gaps_now:
        return None
    place: int = st.session_state.get(PLACE, -1)
    if place not in gaps_now:
        place = st.session_state[PLACE] = gaps_now[0]
    if current(STRIP, None) != place:
        select(STRIP, place)
    return place


def hide(positions: Sequence[int]) -> None:
    """Hide exactly these. For `on_click`."""
    st.session_state[_HIDDEN]["chosen"] = set(positions)


def chosen() -> list[int] | None:
    """What is hidden, for a link; None if nobody has looked at a text yet."""
    kept = st.session_state.get(_HIDDEN)
    return sorted(kept["chosen"]) if kept else None


def from_link(positions: Sequence[int]) -> None:
    """Hide these in the text that is read next."""
    st.session_state[_HIDDEN] = {"about": None, "chosen": set(positions), "linked": list(positions)}


def by_chance(ids: Sequence[int], mask_id: int) -> None:
    """Hide a share of the tokens by chance, from the seed on the page. For `on_click`."""
    state = st.session_state
    share, seed = int(state.get(SHARE, USUAL)) / 100, int(state.get(SEED, 1))
    hide(draw_masks(ids, mask_prob=share, mask_id=mask_id, seed=seed, only_mask=True).scored)


def story(text: str, word: str, first: bool) -> None:
    """Take another text and hide a word of it, wherever it stands or only the first time. For `on_click`."""
    session.set_text(text)
    st.session_state[_HIDDEN] = {"about": None, "chosen": set(), "wanted": (word, first)}


def from_both_sides(ref: ModelRef, ids: tuple[int, ...], where: tuple[int, ...]) -> NDArray[Any]:
    """Logits (T,V) of the masked model; read-only."""
    model, tokenizer = resources.load(ref).model, resources.tokenizer(ref)

    def read_now() -> NDArray[Any]:
        rows = gaps.fill_gaps(model, ids, where, tokenizer.mask_id, tokenizer.frame)
        rows.setflags(write=False)
        return rows

    need = 4 * len(ids) * model.config.vocab_size
    return _both_sides(ref.large).get((ref, ids, where), read_now, need=need)


@st.cache_resource(show_spinner=False)
def _both_sides(large: bool) -> Shelf[NDArray[Any]]:
    """What is kept; a small model never waits for a large one."""
    return Shelf(MOST_READ, lambda: None, most_bytes=READ_BYTES)


@st.cache_resource(max_entries=32, show_spinner=False)
def from_the_left(ref: ModelRef, ids: tuple[int, ...]) -> NDArray[Any]:
    """Logits (V,) of the causal model for the token after some ids; read-only."""
    row = next_logits(resources.load(ref).model, [*resources.tokenizer(ref).frame[0], *ids])
    row.setflags(write=False)
    return row


def left_ids(ref: ModelRef, masked: ModelRef, text: GapText, place: int) -> tuple[int, ...] | None:
    """Ids left of a gap in the causal model's own vocabulary; None if a ``[MASK]`` was typed before it."""
    tokenizer, other = resources.tokenizer(ref), resources.tokenizer(masked)
    left = text.before(place)
    if other.mask_id in left:
        return None
    if tokenizer.hash == other.hash:
        return tuple(left)
    before = text.tokens[: text.unused + place]  # as typed: a spelling may be lower-cased, or say [UNK]
    data = b"".join(token.data for token in before if token.byte_end > token.byte_start)
    return tuple(tokenizer.encode(data.decode("utf-8", "ignore")))


@st.cache_resource(max_entries=32, show_spinner=say.later("asking"))
def true_in_gap(ref: ModelRef, ids: tuple[int, ...], where: tuple[int, ...], place: int) -> NDArray[Any]:
    """What is true in a gap (V,), given everything that is visible.

    Raises:
        ValueError: why there is none.
    """
    oracle = resources.oracle_for(ref)
    if oracle is None:
        raise ValueError(say("model_did_not_learn"))
    if len(ids) > LONGEST_TRUTH:
        raise ValueError(say("true_distribution_worked_out", most=LONGEST_TRUTH))
    row: NDArray[Any] = oracle.masked(ids, where)[where.index(place)]
    return row


@st.cache_data(max_entries=64, show_spinner=False)
def spelled_word(ref: ModelRef, before: str, word: str) -> tuple[float, int] | None:
    """Log probability of a word in a causal model’s own tokens, and their number; None if it has none."""
    try:
        return gaps.spelled(resources.load(ref).model, resources.tokenizer(ref), before, word)
    except ValueError:
        return None  # nothing before it, or characters that this vocabulary does not have


@st.cache_resource(max_entries=32, show_spinner=say.later("in_turn"))
def in_turn(ref: ModelRef, ids: tuple[int, ...], typed: tuple[int, ...]) -> NDArray[Any]:
    """(T,) log p of each token given all others, from the masked model; NaN where a mask was typed."""
    tokenizer, model = resources.tokenizer(ref), resources.load(ref).model
    found = pseudo_log_probs(model, ids, tokenizer.mask_id, hidden=typed, frame=tokenizer.frame)
    found.setflags(write=False)
    return found
