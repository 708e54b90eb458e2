"""Runs side by side: what differs between them, which repeat each other, what may share an axis."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.config import LATER
from engine.corpus import title
from engine.folders import read_json
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("engine.run_sets")

Key = tuple[str, str]  # part ("model", "training", "text" or "tokenizer"), name of the setting
Settings = dict[Key, Any]
Line = tuple[NDArray[np.float64], NDArray[np.float64]]  # x (N,) rising, y (N,), NaN where there is none

SEED: Key = ("training", "seed")
AIM: Key = ("training", "aim")  # not there in a run on a text
CHECKED_ON: Key = ("text", "checked_on")  # the held-out part; it follows from the others, so it is no setting
# How often to look and what to keep: nothing of it changes what is learned, and it follows from `steps`.
_BOOKKEEPING = ("eval_every", "checkpoint_every", "moments")


@dataclass(frozen=True)
class Named:
    """Something that has a name for people and a fingerprint that says whether it is the same."""

    name: str = field(compare=False)
    fingerprint: str


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same in all runs.

    Attributes:
        part: "model", "training", "text" or "tokenizer".
        name: of the setting, as in the configs.
        values: one for each run; None where it says nothing or is left to its default.
    """

    part: str
    name: str
    values: tuple[Any, ...]


def settings(info: "RunInfo") -> Settings:
    """All settings of a run that change what it learns, by part and name.

    A width or a number of key/value heads that is what it would be anyway counts as left out, and so does
    the share of hidden tokens of a causal run.
    """
    model = info.model
    shape = {name: _flat(value) for name, value in model.to_json().items()}
    masked = model.objective == "mlm"
    shape["d_ff"] = None if model.ff_width == replace(model, d_ff=None).ff_width else model.ff_width
    shape["n_kv_head"] = None if model.kv_heads == model.n_head else model.kv_heads
    vocab_size = shape.pop("vocab_size") - masked  # without [MASK]
    learning = {k: v for k, v in info.train.to_json().items() if k not in _BOOKKEEPING}
    if not masked:
        learning["mask_prob"] = None
    return {
        ("text", "text"): Named(_text_of(info), str(info.corpus["sha256"])),
        ("text", "val_share"): info.corpus.get("val_share"),
        CHECKED_ON: _checked_on(str(info.folder), str(info.corpus["sha256"]), info.corpus.get("val_share")),
        ("tokenizer", "tokenizer"): Named(info.tokenizer, vocabulary_of(info)),
        ("tokenizer", "vocab_size"): vocab_size,
        **{("model", name): value for name, value in shape.items()},
        **{("training", name): value for name, value in learning.items()},
        **({("training", "start"): Named(info.start, info.start_identity)} if info.start else {}),
    }


def _flat(value: Any) -> Any:
    """A value that can be a key: what a published model has in parts, as one line."""
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value


def _text_of(info: "RunInfo") -> str:
    return title(str(info.corpus["name"]), str(info.corpus.get("kind", "")))


def vocabulary_of(info: "RunInfo") -> str:
    """Fingerprint of a run's vocabulary."""
    stored = read_json(info.folder / "run.json").get("tokenizer", {})
    return str(stored.get("hash") or info.tokenizer)


@lru_cache(maxsize=256)
def _checked_on(folder: str, text: str, val_share: float | None) -> Named:
    """The held-out text: one of its own, which more to learn from does not change, or the text's end."""
    own = Path(folder) / "corpus_val.txt"
    if own.is_file():
        return Named("", hashlib.sha256(own.read_bytes()).hexdigest())
    return Named("", f"{text} {val_share}")


def differences(runs: Sequence[Mapping[Key, Any]]) -> list[Difference]:
    """Only the settings in which the runs are not all alike, in the order of the settings."""
    keys = dict.fromkeys(key for run in runs for key in run if key != CHECKED_ON)
    rows = [Difference(*key, tuple(run.get(key, LATER.get(key[1])) for run in runs)) for key in keys]
    return [row for row in rows if any(value != row.values[0] for value in row.values)]


def alike(runs: Sequence[Mapping[Key, Any]]) -> Settings:
    """The settings in which all runs are alike."""
    differing = {(row.part, row.name) for row in differences(runs)}
    return {key: value for key, value in runs[0].items() if key not in differing} if runs else {}


def same_but_seed(runs: Sequence[Mapping[Key, Any]]) -> list[list[int]]:
    """Places of the runs that repeat each other with other seeds, in the order of their first ones.

    A run that repeats even the seed would count one result twice: it begins another group.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    times: dict[tuple[Any, ...], int] = {}
    for i, run in enumerate(runs):
        whole = tuple(run.items())
        times[whole] = times.get(whole, 0) + 1
        rest = tuple((key, value) for key, value in whole if key != SEED)
        groups.setdefault((*rest, times[whole]), []).append(i)
    return list(groups.values())


# ---- what may share an axis


@dataclass(frozen=True)
class Shared:
    """What may be drawn on one axis.

    Attributes:
        quantity: the one asked for, or "bits_per_byte" in its place.
        kept: places of the runs that can be drawn with it.
        reasons: a plain sentence for everything that was moved, left out, or must be read with care.
    """

    quantity: str
    kept: tuple[int, ...]
    reasons: tuple[str, ...] = ()


def shared_axis(runs: Sequence[Mapping[Key, Any]], quantity: str, *, compared: bool = False) -> Shared:
    """Which runs of one objective can be compared, and in what.

    A loss per token means the same only for one vocabulary and one text. Causal runs have bits per byte for
    the other cases. A masked run's loss is about a few hidden tokens, and has no such unit: there, runs with
    another vocabulary or text than the first one are left out.

    Args:
        runs: settings of each.
        quantity: that is asked for.
        compared: whether their ends are compared, not their lines drawn: the sentences say so.

    Raises:
        ValueError: if the runs have different objectives, whose losses are different quantities.
    """
    objectives = {(run["model", "objective"], run.get(AIM) or "text") for run in runs}
    if len(objectives) > 1:
        raise ValueError(say("objectives_never_share"))
    everyone = tuple(range(len(runs)))
    kinds = [(run["tokenizer", "tokenizer"], run[CHECKED_ON]) for run in runs]
    one_vocabulary, one_text = (len({kind[i] for kind in kinds}) <= 1 for i in (0, 1))
    if objectives != {("clm", "text")}:
        return _without_bits(runs, kinds, quantity)
    if one_vocabulary and one_text:
        return Shared(quantity, everyone)
    reasons = []
    if quantity != "bits_per_byte":
        why = "texts" if one_vocabulary else "vocabularies"
        reasons.append(say(f"compared_in_bits.{why}") if compared else say(f"shown_in_bits.{why}"))
    if not one_text:
        reasons.append(say("checked_on_different_texts"))
    return Shared("bits_per_byte", everyone, tuple(reasons))


def _without_bits(runs: Sequence[Mapping[Key, Any]], kinds: Sequence[Any], quantity: str) -> Shared:
    """Of masked runs, of answers and of preferences: only some tokens are scored."""
    pairs = bool(runs[0].get(AIM))
    kept = tuple(i for i, kind in enumerate(kinds) if kind == kinds[0])
    reasons = []
    if quantity == "bits_per_byte":
        quantity = "val_loss"
        reasons.append(say("no_bits_of_pairs") if pairs else say("no_bits_of_masked"))
    if len(kept) < len(runs):
        n = len(runs) - len(kept)
        reasons.append(say("left_out_pairs", n=n) if pairs else say("left_out", n=n))
    if not pairs and len({runs[i]["training", "mask_prob"] for i in kept}) > 1:
        reasons.append(say("hide_different_shares"))
    return Shared(quantity, kept, tuple(reasons))


# ---- lines and bands


def along(records: Sequence[Mapping[str, Any]], steps: ArrayLike, axis: str, tokens_per_step: int) -> NDArray:
    """Where steps stand on an axis.

    Args:
        records: of the run.
        steps: (N,) rising.
        axis: "step", "tokens" (seen so far) or "seconds" (of training so far).
        tokens_per_step: rows in a step times tokens in a row.

    Returns:
        (N,) float64.
    """
    at = np.asarray(steps, np.float64)
    if axis == "step":
        return at
    if axis == "tokens":
        return at * tokens_per_step
    if axis != "seconds":
        raise ValueError(say("unknown_axis", axis=axis))
    timed = {r["step"]: r["seconds"] for r in records if r["kind"] in ("step", "eval") and "seconds" in r}
    if not timed:
        return np.full(len(at), np.nan)
    known = sorted(timed)
    return np.interp(at, known, [timed[step] for step in known])


@dataclass(frozen=True, eq=False)
class Band:
    """What several runs of the same settings did together. All arrays (N,) float64.

    Attributes:
        x: places on the axis, rising.
        mean, low, high: over the runs at each place; NaN where one of them has a gap.
        std: their sample standard deviation (n - 1), NaN likewise.
        n: number of runs.
    """

    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    std: NDArray[np.float64]
    n: int


def band(lines: Sequence[Line]) -> Band | None:
    """The band of several lines over the part of the axis that all of them cover.

    Places where only some have a point are read off the others between their neighbours. So runs of unlike
    length give a band as long as the shortest, and a gap in one is a gap in the band.

    Returns:
        None if there are fewer than two lines, or nothing that all cover.

    Example:
        >>> long = (np.array([0.0, 10, 20]), np.array([6.0, 4, 3]))
        >>> short = (np.array([0.0, 10]), np.array([6.0, 2]))
        >>> two = band([long, short])
        >>> two.x.tolist(), two.mean.tolist(), two.high.tolist()
        ([0.0, 10.0], [6.0, 3.0], [6.0, 4.0])
    """
    if len(lines) < 2 or any(len(x) == 0 for x, _ in lines):
        return None
    first, last = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    grid = np.unique(np.concatenate([x[(x >= first) & (x <= last)] for x, _ in lines]))
    if len(grid) == 0:
        return None
    rows = np.stack([np.interp(grid, x, np.where(np.isfinite(y), y, np.nan)) for x, y in lines])  # (R, N)
    return Band(grid, rows.mean(0), rows.min(0), rows.max(0), rows.std(0, ddof=1), len(lines))


def furthest(lines: Sequence[Line]) -> list[int]:
    """Places of the lines that reach as far as the longest: those that a band is made of.

    A run that has just begun would cut the band down to its own few steps.
    """
    ends = [float(x[-1]) if len(x) else -math.inf for x, _ in lines]
    return [i for i, end in enumerate(ends) if end == max(ends) and end > -math.inf]
