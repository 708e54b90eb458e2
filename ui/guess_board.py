"""How a round of guessing stands: totals of all players, the way there, a table, the last token."""

import math
from typing import NamedTuple

import pandas as pd
import streamlit as st

from engine import guess, metrics
from engine.guess import Field, Round
from ui import guess_data, resources
from ui.cells import table_csv
from ui.components import show, token_strip
from ui.model_refs import ModelRef
from ui.words import literal
from viz import NEUTRAL, clip, distribution_bars, format_count, format_number, surprisal_color, visible
from viz.guess import running_lines, total_bars
from wording import words

YOU = "you"
AS_TOKENS = 10  # of the given beginning; the rest is plain text
say = words("ui.guess_board")


class _Shown(NamedTuple):
    """A token of the text."""

    id: int
    data: bytes


class Board:
    """One round of one person, as far as it is played."""

    def __init__(self, ref: ModelRef, seed: int) -> None:
        self.ref, self.seed = ref, seed
        self.part: Round = guess_data.round_of(ref, seed)
        self.field: Field = guess_data.field(ref, seed)
        self.you = guess_data.paid(ref, seed)

    @property
    def n(self) -> int:
        """Tokens that were bet on and seen."""
        return len(self.you)

    @property
    def over(self) -> bool:
        """Whether all tokens are seen."""
        return self.n >= self.part.n

    @property
    def scores(self) -> dict[str, list[float]]:
        """Bits of all players for the tokens that were seen."""
        return {YOU: self.you} | {name: costs[: self.n] for name, costs in self.field.bits.items()}

    def token(self, token_id: int) -> str:
        """How a token is written."""
        return visible(resources.tokenizer(self.ref).token_bytes(token_id))

    def text(self) -> None:
        """The text up to the place of the next bet: its end in tokens, those guessed with what they cost."""
        tokenizer, part = resources.tokenizer(self.ref), self.part
        begin = max(part.first, part.start - AS_TOKENS)
        if begin > part.first:
            st.text(tokenizer.decode(part.ids[part.first : begin]) + " …")
        shown = part.ids[begin : part.start + self.n]
        given = part.start - begin
        most = math.log2(tokenizer.vocab_size)  # a blind guess
        token_strip(
            [[_Shown(i, tokenizer.token_bytes(i))] for i in shown],
            key="guess_strip",
            values=[""] * given + [format_number(x) for x in self.you],
            colors=[NEUTRAL] * given + [surprisal_color(x, most) for x in self.you],
            label=say("strip"),
        )
        st.caption(say("strip_caption") if self.n else say("strip_caption_first"))

    def last(self) -> None:
        """The token that came last, and what it cost the person, the model and the truth."""
        came = self.token(self.part.answer(self.n - 1))
        st.info(
            say("came", token=literal(came), bits=format_number(self.you[-1]),
                percent=format_number(100 * 2 ** -self.you[-1])),
            icon=":material/visibility:",
        )  # fmt: skip

    def totals(self) -> None:
        """Bars of all players, and what can be expected at best."""
        standing = guess.standings(self.scores, self.n)
        names = [say(f"player.{one.name}") for one in standing]
        show(total_bars([one.name for one in standing], names, [one.total for one in standing]),
             key="guess_totals")  # fmt: skip
        mine = next(one for one in standing if one.name == YOU)
        st.markdown(
            say("leads" if mine.place == 1 else "place", place=mine.place, of=len(standing),
                first=names[0], bits=format_number(mine.total))
        )  # fmt: skip
        if self.field.floor is not None:
            least = sum(self.field.floor[: self.n])
            st.caption(say("floor", n=self.n, bits=format_number(least, 4)))
        else:
            st.caption(say("no_floor"))

    def way(self) -> None:
        """The running sums, and the table of all numbers."""
        scores = self.scores
        tokens = [self.token(self.part.answer(i)) for i in range(self.n)]
        names = {name: say(f"player.{name}") for name in scores}
        st.subheader(say("way"))
        show(running_lines(list(scores), list(names.values()), list(scores.values()), tokens),
             key="guess_lines")  # fmt: skip
        columns = {names[name]: [round(x, 4) for x in costs] for name, costs in scores.items()}
        table = pd.DataFrame({say("token"): tokens} | columns)
        with st.expander(say("table")):
            st.dataframe(table, hide_index=True, key="guess_table")
            st.download_button(
                say("csv"), lambda: table_csv(table),
                file_name=f"guess-{self.seed}.csv", mime="text/csv", key="guess_csv", on_click="ignore",
            )  # fmt: skip

    def thought(self) -> None:
        """What the model gave the likeliest tokens before the last one came, beside the truth."""
        i = self.n - 1
        came = self.part.answer(i)
        probs = self.field.model[i].astype(float)
        top = metrics.most_likely(probs / probs.sum(), 6, also=came)
        shown = top.ids.tolist()
        true = None if self.field.truth is None else self.field.truth[i]
        st.subheader(say("thought", n=self.n, token=literal(clip(self.token(came), 20))))
        fig = distribution_bars(
            [self.token(j) for j in shown], top.probs, tail=top.tail, n_tail=top.n_tail,
            true_index=shown.index(came), true_note=say("came_note"),
            second=None if true is None else true[shown],
            second_tail=None if true is None else metrics.tail_of(true, shown),
        )  # fmt: skip
        show(fig, key="guess_thought")
        st.caption(say("thought_caption", v=format_count(len(probs))))
