"""Places that lessons and the glossary lead to: a page, and what opens one of its views."""

from typing import NamedTuple

from ui import nav
from wording import words

say = words("ui.places")


class Place(NamedTuple):
    """Where something can be seen.

    Attributes:
        page: name of the page's script.
        key: the address's name for the view; "" if the page has one only.
        view: the view.
    """

    page: str
    key: str = ""
    view: str = ""

    @property
    def query(self) -> dict[str, str]:
        """For the address."""
        return {self.key: self.view} if self.key else {}


def _views(page: str, key: str, *views: str) -> dict[str, Place]:
    return {view: Place(page, key, view) for view in views}


PLACES = {
    "home": Place("home"),
    **_views("tokens", "view", "pieces", "side-by-side", "languages", "train-your-own"),
    **_views("embeddings", "vectors", "look-up", "position", "neighbours", "map", "length"),
    **_views("next_token", "look", "one-position", "best-guesses", "surprise", "chain-rule", "any-length"),
    "attention": Place("attention"),
    **_views("inside", "inside", "logit-lens", "contributions", "stream", "switch-off"),
    "compare": Place("compare"),
    **_views("generation", "lab", "write", "waterfall", "strategies", "tree", "draws"),
    **_views("training", "watch", "train", "one-step", "time-machine", "runs", "class"),
    **_views("tuning", "tune", "text", "answers", "preferences"),
    **_views("masking", "hide", "masked-batch", "what-is-paid", "not-comparable", "fill-blanks", "meaning"),
    "two-models": Place("masking", "hide", "one-sentence"),
    **_views("experiments", "study", "held-out", "contamination", "learning-rate", "model-size", "text-size"),
    "guess": Place("guess"),
}


def label(name: str) -> str:
    """How a place is called in a link."""
    return say("view", page=nav.title(PLACES[name].page), view=say(f"name.{name}"))


def link(name: str) -> None:
    """A link to a place."""
    place = PLACES[name]
    nav.link(place.page, label(name) if place.key else None, **place.query)
