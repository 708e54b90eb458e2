"""Steps that a person walks through with a slider and buttons, or that play by themselves."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from wording import words

say = words("ui.player")

PACE = 1.0  # seconds between two steps when they play by themselves
AWAY = 8.0  # seconds without a step after which playing has ended: somebody left the page


@dataclass(frozen=True)
class Player:
    """The state of one walk through steps; the numbers 0 to `last` say how many are done.

    Attributes:
        name: first part of the session keys.
        key: session key of the slider, which holds the step.
        thing: what one step is: "step" or "merge".
        width: of the slider, in pixels or "stretch".
    """

    name: str
    key: str
    thing: str = "step"
    width: int | Literal["stretch"] = "stretch"

    @property
    def step(self) -> int:
        """How many steps are done now."""
        return int(st.session_state.get(self.key, 0))

    def go(self, step: int) -> None:
        """Stand after so many steps. For callbacks."""
        st.session_state[self.key] = step

    def play(self) -> None:
        """Start to play. For callbacks."""
        st.session_state[self._playing], st.session_state[self._stepped] = True, time.monotonic()

    def rest(self) -> None:
        """Play no more."""
        st.session_state[self._playing] = False

    def draw(self, last: int, picture: Callable[[int, bool], None], start: int) -> None:
        """Draw the controls and the picture, anew for each step while it plays.

        Args:
            last: the number of steps.
            picture: draws the state after so many steps; told whether it plays.
            start: where to stand at first.
        """
        playing = bool(st.session_state.get(self._playing))
        st.fragment(self._run, run_every=PACE if playing else None)(last, picture, start, playing)

    @property
    def _playing(self) -> str:
        return f"_{self.name}_playing"

    @property
    def _stepped(self) -> str:
        return f"_{self.name}_stepped"

    def _run(self, last: int, picture: Callable[[int, bool], None], start: int, playing: bool) -> None:
        if playing:
            self._advance(last)
        if bool(st.session_state.get(self._playing)) != playing:
            st.rerun()  # the clock is started and stopped by a run of the whole page
        picture(self._controls(last, start, playing), playing)

    def _advance(self, last: int) -> None:
        """One step on, if the time has come; the last one ends the play."""
        state, now = st.session_state, time.monotonic()
        waited = now - state.get(self._stepped, now)
        if waited >= 0.6 * PACE:
            state[self.key] = min(self.step + 1, last)
            state[self._stepped] = now
        if waited > AWAY or self.step >= last:
            self.rest()

    def _toggle(self, n: int, last: int) -> None:
        """Play from here, from the start after the last step, or pause. For `on_click`."""
        if st.session_state.get(self._playing):
            self.rest()
            return
        if n >= last:
            self.go(0)
        self.play()

    def _controls(self, last: int, start: int, playing: bool) -> int:
        """The slider and its buttons; gives how many steps are done."""
        st.session_state[self.key] = min(int(st.session_state.get(self.key, start)), last)
        n = self.step
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.button(
                say("back"), icon=":material/chevron_left:", key=f"{self.name}_back", on_click=self.go,
                args=(n - 1,), disabled=n == 0, help=say(f"one_back.{self.thing}"),
            )  # fmt: skip
            st.button(
                say("forward"), icon=":material/chevron_right:", key=f"{self.name}_forward", on_click=self.go,
                args=(n + 1,), disabled=n == last, help=say(f"one_forward.{self.thing}"),
            )  # fmt: skip
            st.button(
                say("pause") if playing else say("play"),
                icon=":material/pause:" if playing else ":material/play_arrow:",
                key=f"{self.name}_play", width=110, on_click=self._toggle, args=(n, last),
            )  # fmt: skip
            st.slider(
                say(f"done.{self.thing}"), 0, last, key=self.key, persist_state="session", width=self.width
            )
        return n
