"""The settings in a Hugging Face config.json, each checked when it is read."""

import math
from collections.abc import Mapping
from typing import Any

from engine.config import Rotary
from engine.setting_checks import is_number
from wording import words

say = words("engine.hub")

MOST = 100_000_000  # no true setting is larger
MOST_BLOCKS = 10_000
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
GATED = {"silu": "swiglu", "swish": "swiglu"}  # in families whose MLP has a gate


class Settings:
    """What config.json says; a value of the wrong kind is refused in a sentence."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content

    def has(self, name: str) -> bool:
        """Whether there is a value other than null."""
        return self._content.get(name) is not None

    def _value(self, name: str, default: Any) -> Any:
        value = self._content.get(name)
        value = default if value is None else value
        if value is None:
            raise ValueError(say("setting_missing", name=name))
        return value

    def whole(self, name: str, default: int | None = None, *, most: int = MOST) -> int:
        """A whole number from 0 to `most`."""
        value = self._value(name, default)
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError(say("setting_whole", name=name, value=repr(value)[:80], most=most))
        return value

    def blocks(self, name: str) -> int:
        """A number of blocks."""
        return self.whole(name, most=MOST_BLOCKS)

    def number(self, name: str, default: float | None = None) -> float:
        """A number; `ModelConfig` checks its range."""
        value = self._value(name, default)
        if not is_number(value):
            raise ValueError(say("setting_number", name=name, value=repr(value)[:80]))
        return float(value)

    def word(self, name: str, default: str) -> str:
        """A word."""
        value = self._value(name, default)
        if not isinstance(value, str):
            raise ValueError(say("setting_word", name=name, value=repr(value)[:80]))
        return value

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise ValueError(say("setting_flag", name=name, value=repr(value)[:80]))
        return value

    def items(self, name: str) -> list[Any]:
        """A list, [] if there is none."""
        value = self._value(name, [])
        if not isinstance(value, list):
            raise ValueError(say("setting_list", name=name, value=repr(value)[:80]))
        return value

    def table(self, name: str) -> "Settings":
        """The settings within a setting, none if there are none."""
        value = self._value(name, {})
        if not isinstance(value, dict):
            raise ValueError(say("setting_table", name=name, value=repr(value)[:80]))
        return Settings(value)

    def activation(self, name: str, known: Mapping[str, str], default: str | None = None) -> str:
        """The MLP's activation, by our name."""
        value = self._value(name, default)
        if not isinstance(value, str) or value not in known:
            names = ", ".join(known)
            raise ValueError(say("setting_activation", name=name, value=repr(value)[:80], known=names))
        return known[value]

    def refuse(self, name: str, allowed: Any) -> None:
        """Refuse what would change the model in a way that ours can't.

        Raises:
            ValueError: if the setting is there and is not `allowed`.
        """
        if self.has(name) and self._content[name] != allowed:
            value = repr(self._content[name])[:80]
            raise ValueError(say("setting_unsupported", name=name, value=value, allowed=repr(allowed)))

    def nested(self) -> bool:
        """Whether a setting is a table itself."""
        return any(isinstance(value, dict) for value in self._content.values())

    def rotary(self, *, share: float = 1.0) -> Rotary:
        """How positions turn, in the old spelling or the new one.

        Args:
            share: of a head that turns, where config.json doesn't say it.
        """
        rope = self.table("rope_parameters" if self.has("rope_parameters") else "rope_scaling")
        if rope.nested():
            raise ValueError(say("rotary_by_block"))
        base = self.number("rope_theta", self.number("rotary_emb_base", 10000.0))
        share = self.number("partial_rotary_factor", self.number("rotary_pct", share))
        base, share = rope.number("rope_theta", base), rope.number("partial_rotary_factor", share)
        kind = rope.word("rope_type", rope.word("type", "default"))
        if kind in ("default", "dynamic"):  # a dynamic one changes only past max_position_embeddings
            return Rotary(base, share)
        if kind == "yarn":
            return _yarn(rope, base, share, self)
        if kind == "linear":
            return Rotary(base, share, rope.number("factor"))
        if kind == "llama3":
            low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
            length = rope.whole("original_max_position_embeddings")
            return Rotary(base, share, rope.number("factor"), low, high, length)
        raise ValueError(say("rotary_unknown", kind=kind[:80]))


def _yarn(rope: Settings, base: float, share: float, around: Settings) -> Rotary:
    """YaRN (Peng et al. 2023, arXiv:2309.00071) in the spelling of transformers."""
    factor = rope.number("factor")
    length = "original_max_position_embeddings"
    first = around.whole(length, rope.whole(length, around.whole("max_position_embeddings")))
    both = [rope.number(name, 0) for name in ("mscale", "mscale_all_dim")]
    usual = _swell(factor, both[0]) / _swell(factor, both[1]) if all(both) else _swell(factor, 1)
    return Rotary(
        base,
        share,
        factor,
        low=rope.number("beta_slow", 0) or 1.0,
        high=rope.number("beta_fast", 0) or 32.0,
        first_length=first,
        ramp="whole" if rope.flag("truncate", True) else "pairs",
        swell=rope.number("attention_factor", usual),
    )


def _swell(factor: float, weight: float) -> float:
    """By how much queries and keys grow in a context that is `factor` times as long."""
    return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0
