"""Colours stand out on both backgrounds and stay apart for colour-blind eyes; the theme file agrees."""

import itertools
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import viz
from viz import theme

CONFIG = tomllib.loads(
    (Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8")
)["theme"]
MODES = ("light", "dark")


def linear(color):
    c = np.array(theme.rgb(color)) / 255 if isinstance(color, str) else np.asarray(color) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (high + 0.05) / (low + 0.05)


def mix(over, under, share):
    return np.array(theme.rgb(over)) * share + np.array(theme.rgb(under)) * (1 - share)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["MODEL", "TRUE", "CAUSAL", "MASKED", "TRAIN", "VALID", "NEUTRAL"])
def test_meanings_stand_out(name, mode):
    assert contrast(getattr(theme, name), CONFIG[mode]["backgroundColor"]) >= 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("color", theme.TOKEN_COLORS)
def test_text_on_tokens_is_readable(color, mode):
    r, g, b, alpha = (float(v) for v in re.findall(r"[\d.]+", color))
    ground = np.array([r, g, b]) * alpha + np.array(theme.rgb(CONFIG[mode]["backgroundColor"])) * (1 - alpha)
    assert contrast(CONFIG[mode]["textColor"], ground) >= 7


@pytest.mark.parametrize("mode", MODES)
def test_text_and_captions_are_readable(mode):
    for place in (CONFIG[mode], CONFIG[mode]["sidebar"]):
        for ground in (place["backgroundColor"], place["secondaryBackgroundColor"]):
            assert contrast(CONFIG[mode]["textColor"], ground) >= 7
            assert contrast(mix(CONFIG[mode]["textColor"], ground, 0.6), ground) >= 4.5  # Streamlit's caption
    assert contrast(CONFIG[mode]["primaryColor"], "#FFFFFF") >= 4.5  # words on a primary button
    assert contrast(CONFIG[mode]["primaryColor"], CONFIG[mode]["backgroundColor"]) >= 3
    assert contrast(CONFIG[mode]["linkColor"], CONFIG[mode]["backgroundColor"]) >= 4.5


# Machado, Oliveira, Fernandes (2009), full severity; rows act on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(rgb):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    f = np.where(xyz / [0.9505, 1, 1.089] > 0.008856, np.cbrt(xyz / [0.9505, 1, 1.089]), 0.138)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize(
    ("a", "b"),
    [("MODEL", "TRUE"), ("CAUSAL", "MASKED"), ("TRAIN", "VALID"), ("MODEL", "CAUSAL"), ("MODEL", "MASKED")],
)
def test_pairs_stay_apart_for_the_colour_blind(a, b, kind):
    seen = [lab(np.clip(np.array(BLINDNESS[kind]) @ linear(getattr(theme, name)), 0, 1)) for name in (a, b)]
    assert np.linalg.norm(seen[0] - seen[1]) > 17


def test_colours_of_meanings_differ():
    colors = [theme.MODEL, theme.TRUE, theme.CAUSAL, theme.MASKED, theme.TRAIN]
    assert all(a != b for a, b in itertools.combinations(colors, 2))


@pytest.mark.parametrize("colors", [theme.PROBABILITY_COLORS, theme.SURPRISAL_COLORS])
def test_scales_grow_lighter_all_the_way(colors):
    lightness = [lab(linear(c))[0] for c in colors]
    assert all(b > a for a, b in itertools.pairwise(lightness))


def test_diverging_scale_is_lightest_in_the_middle():
    lightness = [lab(linear(c))[0] for c in theme.DIVERGING_COLORS]
    assert lightness[:5] == sorted(lightness[:5])
    assert lightness[5:] == sorted(lightness[5:], reverse=True)


def test_theme_file_has_the_same_colours():
    assert CONFIG["chartCategoricalColors"][:5] == [
        theme.MODEL, theme.TRUE, theme.CAUSAL, theme.MASKED, theme.NEUTRAL,
    ]  # fmt: skip
    assert CONFIG["chartSequentialColors"] == list(theme.PROBABILITY_COLORS)
    assert CONFIG["chartDivergingColors"] == list(theme.DIVERGING_COLORS)


def test_theme_needs_no_network():
    assert "http" not in str(CONFIG)


def test_token_colour_depends_on_the_id_alone():
    assert viz.token_color(3) == viz.token_color(3) == viz.token_color(3 + len(viz.TOKEN_COLORS))
    assert len({viz.token_color(i) for i in range(8)}) == 8


def test_sampled_colours():
    assert viz.probability_color(0) == theme.PROBABILITY_COLORS[0]
    assert viz.probability_color(1) == theme.PROBABILITY_COLORS[-1]
    assert viz.surprisal_color(99, 6) == theme.SURPRISAL_COLORS[-1]
    assert viz.surprisal_color(float("nan"), 6) == theme.NEUTRAL
    assert theme.sample_scale(("#000000", "#0000FF"), 0.5) == "#000080"


def test_ink_is_readable_on_every_colour_of_a_scale():
    for share in np.linspace(0, 1, 101):
        for colors in (theme.PROBABILITY_COLORS, theme.SURPRISAL_COLORS):
            color = theme.sample_scale(colors, float(share))
            assert contrast(theme.ink_on(color), color) >= 4.5
