"""Settings in a link: what is on a page and not in its address by itself, in one parameter, checked.

`set` is a JSON object: session key to value. Only the keys listed here for a page are read, and only values


 the right kind and size: whoever opens a link runs nothing and breaks nothing. What is not understood is left
out and counted. What a widget itself does not take, such as a word in another language, it answers with its
default.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ui import components

NAME = "set"
LONGEST = 6000  # characters of the parameter, before percent-encoding
MOST = 80  # settings in a link
LONGEST_TEXT = 2000
_APPLIED, _WANTED = "_link_settings_applied", "_link_settings_wanted"
_FIELDS = "_link_fields"
_SPACES = "\n\t"

Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Setting:
    """A kind of setting.

    Attributes:
        fits: whether a value out of a link is one.
        read: gives the value that stands now, None for none, by session key.
        put: puts one there, before the page is drawn.
    """

    fits: Check
    read: Callable[[str], Any]
    put: Callable[[str, Any], None]


def _of_widget(key: str) -> Any:
    return st.session_state.get(key)


def _to_widget(key: str, value: Any) -> None:
    st.session_state[key] = value


def _select(key: str, value: Any) -> None:
    components.select(key, tuple(value) if isinstance(value, list) else value)


def _printable(text: str) -> bool:
    return all(unicodedata.category(c) not in ("Cc", "Cs") or c in _SPACES for c in text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and _printable(value)


def _widget(fits: Check) -> Setting:
    return Setting(fits, _of_widget, _to_widget)


def _whole(low: int, high: int) -> Setting:
    return _widget(lambda value: type(value) is int and low <= value <= high)


def _number(low: float, high: float) -> Setting:
    return _widget(lambda value: _is_number(value) and low <= value <= high)


def _one_of(*options: str) -> Setting:
    return _widget(lambda value: value in options)


def _text(most: int) -> Setting:
    return _widget(lambda value: _is_text(value, most))


def _is_places(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 500 and all(_is_place(one) for one in value)


def _is_place(value: Any) -> bool:
    return type(value) is int and 0 <= value < 100_000


def _is_head(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_place, value))


def _gaps(_: str) -> list[int] | None:
    from ui import hiding  # late: it knows torch, and the frame does not wait for that

    return hiding.chosen()


def _hide(_: str, places: list[int]) -> None:
    from ui import hiding

    hiding.from_link(places)


def _keep_field(key: str, value: Any) -> None:
    st.session_state.setdefault(_FIELDS, {})[key] = value


def take_field(key: str, kind: type[float] | type[int] | type[str], fits: Check = lambda _: True) -> None:
    """Give an input of a worked example what a link holds for it. Called before the input is drawn."""
    fields = st.session_state.get(_FIELDS, {})
    value = fields.pop(key, None)
    right = type(value) is kind or (kind is float and _is_number(value))
    if right and fits(value):
        st.session_state[key] = kind(value)


FLAG = _widget(lambda value: isinstance(value, bool))
WORD = _widget(lambda value: _is_text(value, 80))
OPTION = _widget(lambda value: _is_text(value, 80) or (type(value) is int and abs(value) < 2**31))
SOME = _widget(
    lambda value: isinstance(value, list) and len(value) <= 30 and all(_is_text(one, 80) for one in value)
)
SEED = _whole(0, 2**31)
PLACE = Setting(_is_place, lambda key: components.current(key, None), _select)
HEAD = Setting(_is_head, lambda key: components.current(key, None), _select)
GAPS = Setting(_is_places, _gaps, _hide)

# An input of a worked example: a number or a text; which of them it is, its page knows.
FIELD = Setting(
    lambda value: _is_text(value, 500) or (_is_number(value) and abs(value) < 1e9), _of_widget, _keep_field
)

_TRAINING = {
    **dict.fromkeys(("text", "tokenizer", "size", "positions", "norm", "activation"), WORD),
    "objective": _one_of("clm", "mlm"), "optimizer": _one_of("adamw", "muon"), "schedule": WORD,
    "paste": _text(LONGEST_TEXT), "name": _text(80), "vocab_size": _whole(256, 8192), "steps": _whole(1,
    1_000_000),
    "seed": _whole(0, 999_999), "n_layer": _whole(1, 12), "n_head": _whole(1, 64), "d_model": _whole(8, 768),
    "context_length": _whole(8, 512), "batch_size": _whole(1, 256), "learning_rate": _number(1e-6, 1.0),
    "warmup_steps": _whole(0, 100_000), "dropout": _number(0.0, 0.9), "weight_decay": _number(0.0, 1.0),
    "mask_prob": _number(0.01, 0.9), "val_share": _number(0.0, 0.5),
}  # fmt: skip

# By page: a pattern of session keys (`*` is anything within a key) to the kind of setting.
SETTINGS: Mapping[str, Mapping[str, Setting]] = {
    "home": {"home_tokens": PLACE},
    "examples": {"example_*": FIELD},
    "tokens": {
        "tokens_vocabulary": WORD, "tokens_special": FLAG, "tokens_unit": WORD, "tokens_language": WORD,
        "tokens_language_vocabulary": WORD, "tokens_translation": _text(LONGEST_TEXT), "merges_text": WORD,
        "merges_paste": _text(LONGEST_TEXT), "merges_size": _whole(256, 8192), "merges_n": _whole(0, 8192),
        "merges_find": _text(80), "merges_token": _whole(0, 10_000), "tokens_strip": PLACE,
    },
    "embeddings": {
        "embeddings_strip": PLACE, "embeddings_token_*": OPTION, "embeddings_dim_*": _whole(0, 10_000),
        "embeddings_pair_*": OPTION, "embeddings_kind_*": WORD, "embeddings_key_*": _whole(0, 10_000),
        "embeddings_layer_*": _whole(1, 1000), "embeddings_head_*": _whole(1, 1000),
        "embeddings_axes": _whole(2, 3),
        "embeddings_which": WORD, "embeddings_step_*": _whole(0, 10_000_000), "embeddings_zoom": FLAG,
    },
    "next_token": {"next_token_strip": PLACE, "next_token_stride": OPTION},
    "attention": {
        "attention_part": WORD, "attention_query": PLACE, "attention_heads": HEAD, "attention_key": PLACE,
        "attention_arithmetic": WORD, "attention_dim": _whole(1, 10_000),
    },
    "inside": {
        "inside_pos": PLACE, "inside_cells": WORD, "inside_layer": _whole(0, 500), "inside_off_*": SOME,
        "inside_token": _whole(0, 1_000_000), "inside_against": _whole(0, 1_000_000),
        "inside_stream_shown": WORD,
    },
    "compare": {"compare_strip": PLACE, "compare_unit": WORD, "compare_scope": WORD},
    "generation": {
        "generation_all_chips": FLAG, "generation_against": FLAG, "generation_n_draws": OPTION,
        "generation_stop_at_end": FLAG, "generation_tree_breadth": _whole(1, 8),
        "generation_tree_depth": _whole(1, 8),
        "generation_tree_beam": _whole(1, 8), "generation_unit": _one_of("nats", "bits"),
        "generation_view": WORD,
        "generation_token": _whole(0, 1_000_000),
    },
    "training": {
        **{f"training_{name}": setting for name, setting in _TRAINING.items()},
        "training_quantity": WORD, "training_smoothing": _whole(0, 1000), "training_log_x": FLAG,
        "training_log_y": FLAG, "runs_quantity": WORD, "runs_axis": WORD, "runs_close_up": FLAG,
        "runs_log_x": FLAG, "runs_log_y": FLAG, "runs_bands": FLAG, "runs_smooth": _whole(0, 200),
        "step_stage": WORD, "step_row": _whole(1, 256), "step_part": WORD, "step_start_*": OPTION,
        "step_place": PLACE, "step_losses": PLACE, "time_place": PLACE, "time_head": HEAD,
    },
    "experiments": {"experiments_source_*": WORD, "experiments_reveal_*": FLAG},
    "masking": {
        "masking_gaps": GAPS, "masking_share": _whole(5, 100), "masking_seed": SEED,
        "masking_place": _whole(0, 100_000), "masking_masks": WORD, "masking_epoch": _whole(1, 12),
        "masking_batch_seed": SEED, "masking_against": WORD, "masking_limit": WORD,
        "masking_table": _one_of("no-joint", "joint"),
        "masking_second": _whole(0, 100_000), "masking_fill_part": WORD, "masking_fill_seed": SEED,
        "masking_fill_sweeps": _whole(1, 20), "masking_fill_way": WORD, "masking_fill_step": _whole(0,
        10_000),
        "masking_fill_every": FLAG, "masking_right_row": FLAG,
        "masking_right_stories": _whole(1, 1000),
        "masking_right_blanks": _whole(1, 10), "masking_right_seed": SEED, "masking_meaning_part": WORD,
        "masking_meaning_layer": _whole(0, 500), "masking_meaning_a": _text(500),
        "masking_meaning_b": _text(500),
        "masking_meaning_word": WORD, "masking_meaning_used": WORD, "masking_meaning_use": _whole(0, 10_000),
        "masking_meaning_own": _text(1000), "masking_meaning_sentence": _whole(0, 10_000),
        "masking_meaning_pooling": _one_of("mean", "last"),
        "pair_size": WORD, "pair_steps": _whole(1, 1_000_000),
    },
}  # fmt: skip


# Selections that stand in the address under another name.
_IN_ADDRESS = {
    "tokens_strip": "pos", "embeddings_strip": "pos", "next_token_strip": "pos", "attention_query": "pos",
    "attention_heads": "layer", "inside_pos": "pos", "compare_strip": "pos",
}  # fmt: skip


def setting(page: str, key: str) -> Setting | None:
    """The kind of setting that a session key of a page is; None if it may not stand in a link."""
    return next((kind for pattern, kind in SETTINGS.get(page, {}).items() if _matches(pattern, key)), None)


def _matches(pattern: str, key: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", r"[\w.:-]{1,80}"), key) is not None


def read(raw: str, page: str) -> tuple[dict[str, Any], int]:
    """What of a parameter can be used on a page, and how much of it can't.

    >>> read('{"attention_dim": 3, "attention_part": 7, "x": 1}', "attention")
    ({'attention_dim': 3}, 2)
    >>> read('{"attention_dim": 1e999}', "attention"), read("[" * 5000, "attention")
    (({}, 1), ({}, 1))
    """
    if len(raw) > LONGEST:
        return {}, 1
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError):
        return {}, 1
    if not isinstance(given, dict):
        return {}, 1
    good = {
        key: value
        for key, value in list(given.items())[:MOST]
        if (kind := setting(page, key)) is not None and kind.fits(value)
    }
    return good, len(given) - len(good)


def apply(page: str) -> None:
    """Put the settings of the address onto the page about to be drawn: once for each link and session.

    What a person changes later is theirs. A reload begins a new session, and so the link's settings again.
    """
    raw, state = st.query_params.get(NAME), st.session_state
    if raw is None or (page, raw) in state.setdefault(_APPLIED, []):
        return
    state[_APPLIED].append((page, raw))
    good, n_bad = read(raw, page)
    for key, value in good.items():
        found = setting(page, key)
        assert found is not None
        found.put(key, value)
    state[_WANTED] = (page, good, n_bad)


def left_out(page: str) -> int:
    """After a page was drawn: how many settings of its link could not be used; some only a widget refuses."""
    of, good, n_bad = st.session_state.get(_WANTED, ("", {}, 0))
    if of != page:
        return 0
    n_bad += sum(_is_refused(page, key, value) for key, value in good.items())
    st.session_state[_WANTED] = (page, {}, n_bad)  # what is changed later is no refusal
    return int(n_bad)


def _is_refused(page: str, key: str, value: Any) -> bool:
    kind = setting(page, key)
    now = kind.read(key) if kind else value
    return now is not None and (list(now) if isinstance(now, tuple) else now) != value


def current(page: str) -> dict[str, Any]:
    """Every setting of a page as it stands now, those left out that stand in its address by themselves."""
    found: dict[str, Any] = {}
    for pattern in SETTINGS.get(page, {}):
        keys = [key for key in st.session_state if isinstance(key, str) and _matches(pattern, key)]
        for key in keys if "*" in pattern else [pattern]:
            kind = setting(page, key)
            if kind is None or key in found or _IN_ADDRESS.get(key, key) in st.query_params:
                continue
            value = kind.read(key)
            value = list(value) if isinstance(value, tuple) else value
            if value is not None and kind.fits(value):
                found[key] = value
    return found


def written(settings: Mapping[str, Any]) -> str:
    """Settings as the parameter holds them; "" for none."""
    return json.dumps(settings, ensure_ascii=False, separators=(",", ":")) if settings else ""
