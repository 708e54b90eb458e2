"""Settings in a link: what is on a page and not in its address by itself, in one parameter, checked.

`set` is a JSON object: session key to value. Only the keys listed here for a page are read, and only values
of the right kind and size: whoever opens a link runs nothing and breaks nothing. What is not understood is
left out and counted. What a widget itself does not take, such as a word that is none of its options, it
answers with its default.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import streamlit as st

from ui.link_kinds import (
    FIELD,
    FLAG,
    GAPS,
    HEAD,
    LONGEST_TEXT,
    OPTION,
    PLACE,
    SEED,
    SOME,
    WORD,
    Setting,
    number,
    one_of,
    text,
    whole,
)

NAME = "set"
LONGEST = 6000  # characters of the parameter, before percent-encoding
MOST = 80  # settings in a link
_APPLIED, _WANTED = "_link_settings_applied", "_link_settings_wanted"

_TRAINING = {
    **dict.fromkeys(("text", "tokenizer", "size", "positions", "norm", "activation"), WORD),
    "objective": one_of("clm", "mlm"), "optimizer": one_of("adamw", "muon"), "schedule": WORD,
    "mix_previous": FLAG, "bfloat16": FLAG,
    "paste": text(LONGEST_TEXT), "name": text(80), "vocab_size": whole(256, 8192),
    "steps": whole(1, 1_000_000), "seed": whole(0, 999_999), "n_layer": whole(1, 12), "n_head": whole(1, 64),
    "d_model": whole(8, 768), "context_length": whole(8, 512), "batch_size": whole(1, 256),
    "learning_rate": number(1e-6, 1.0),
    "warmup_steps": whole(0, 100_000), "dropout": number(0.0, 0.9), "weight_decay": number(0.0, 1.0),
    "mask_prob": number(0.01, 0.9), "val_share": number(0.0, 0.5),
    "device": one_of("auto", "cpu", "cuda"),
}  # fmt: skip

# By page: a pattern of session keys (`*` is anything within a key) to the kind of setting.
SETTINGS: Mapping[str, Mapping[str, Setting]] = {
    "home": {"home_tokens": PLACE},
    "models": {"models_name": text(200)},
    "examples": {"example_*": FIELD},
    "tokens": {
        "tokens_vocabulary": WORD, "tokens_special": FLAG, "tokens_unit": WORD, "tokens_language": WORD,
        "tokens_language_vocabulary": WORD, "tokens_translation": text(LONGEST_TEXT), "merges_text": WORD,
        "merges_paste": text(LONGEST_TEXT), "merges_size": whole(256, 8192), "merges_n": whole(0, 8192),
        "merges_find": text(80), "merges_token": whole(0, 10_000), "tokens_strip": PLACE,
    },
    "embeddings": {
        "embeddings_strip": PLACE, "embeddings_token_*": OPTION, "embeddings_dim_*": whole(0, 10_000),
        "embeddings_pair_*": OPTION, "embeddings_kind_*": WORD, "embeddings_key_*": whole(0, 10_000),
        "embeddings_layer_*": whole(1, 1000), "embeddings_head_*": whole(1, 1000),
        "embeddings_axes": whole(2, 3), "embeddings_which": WORD, "embeddings_step_*": whole(0, 10_000_000),
        "embeddings_zoom": FLAG,
    },
    "next_token": {"next_token_strip": PLACE, "next_token_stride": OPTION},
    "attention": {
        "attention_part": WORD, "attention_query": PLACE, "attention_heads": HEAD, "attention_key": PLACE,
        "attention_arithmetic": WORD, "attention_dim": whole(1, 10_000), "attention_bright": FLAG,
    },
    "inside": {
        "inside_pos": PLACE, "inside_cells": WORD, "inside_layer": whole(0, 500), "inside_off_*": SOME,
        "inside_token": whole(0, 1_000_000), "inside_against": whole(0, 1_000_000),
        "inside_stream_shown": WORD,
    },
    "compare": {"compare_strip": PLACE, "compare_unit": WORD, "compare_scope": WORD},
    "generation": {
        "generation_all_chips": FLAG, "generation_against": FLAG, "generation_n_draws": OPTION,
        "generation_chat": FLAG,
        "generation_stop_at_end": FLAG, "generation_tree_breadth": whole(1, 8),
        "generation_tree_depth": whole(1, 8), "generation_tree_beam": whole(1, 8),
        "generation_unit": one_of("nats", "bits"), "generation_view": WORD,
        "generation_token": whole(0, 1_000_000), "generation_weights": WORD,
    },
    "training": {
        **{f"training_{name}": setting for name, setting in _TRAINING.items()}, "training_quantity": WORD,
        "training_smoothing": whole(0, 1000), "training_log_x": FLAG, "training_log_y": FLAG,
        "runs_quantity": WORD, "runs_axis": WORD, "runs_close_up": FLAG, "runs_log_x": FLAG,
        "runs_log_y": FLAG, "runs_bands": FLAG, "runs_smooth": whole(0, 200), "step_stage": WORD,
        "step_row": whole(1, 256), "step_part": WORD, "step_start_*": OPTION, "step_place": PLACE,
        "step_losses": PLACE, "time_place": PLACE, "time_head": HEAD,
    },
    "tuning": {
        "tuning_text": WORD, "tuning_paste": text(LONGEST_TEXT), "tuning_*_pairs": WORD,
        "tuning_*_paste": text(LONGEST_TEXT), "tuning_part_*": WORD, "tuning_blocks_*": whole(1, 1000),
        "tuning_steps_*": whole(1, 1_000_000), "tuning_rate_*": number(1e-6, 1.0),
        "tuning_seed_*": whole(0, 999_999), "tuning_beta_*": number(0.01, 10.0),
        "tuning_pair_*": whole(0, 100_000), "tuning_dice": whole(0, 99_999),
    },
    "experiments": {"experiments_source_*": WORD, "experiments_reveal_*": FLAG},
    "masking": {
        "masking_gaps": GAPS, "masking_share": whole(5, 100), "masking_seed": SEED,
        "masking_place": whole(0, 100_000), "masking_masks": WORD, "masking_epoch": whole(1, 12),
        "masking_batch_seed": SEED, "masking_against": WORD, "masking_limit": WORD,
        "masking_infill_tried": one_of(64, 256, 1024, 4096),
        "masking_table": one_of("no-joint", "joint"), "masking_second": whole(0, 100_000),
        "masking_fill_part": WORD, "masking_fill_seed": SEED, "masking_fill_sweeps": whole(1, 20),
        "masking_fill_way": WORD, "masking_fill_step": whole(0, 10_000), "masking_fill_every": FLAG,
        "masking_right_row": FLAG, "masking_right_stories": whole(1, 1000),
        "masking_right_blanks": whole(1, 10), "masking_right_seed": SEED, "masking_meaning_part": WORD,
        "masking_meaning_layer": whole(0, 500), "masking_meaning_a": text(500),
        "masking_meaning_b": text(500), "masking_meaning_word": WORD, "masking_meaning_used": WORD,
        "masking_meaning_use": whole(0, 10_000), "masking_meaning_own": text(1000),
        "masking_meaning_sentence": whole(0, 10_000), "masking_meaning_pooling": one_of("mean", "last"),
        "pair_size": WORD, "pair_steps": whole(1, 1_000_000),
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
