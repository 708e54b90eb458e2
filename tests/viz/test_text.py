"""Token text is shown literally and numbers are rounded, not cut."""

import numpy as np
import pytest

from viz.text import (
    clip,
    escape,
    format_bits,
    format_count,
    format_nats,
    format_number,
    format_prob,
    format_tick,
    visible,
    visible_parts,
)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b" cat", "·cat"),
        (b"a  b", "a··b"),
        (b"\n", "⏎"),
        (b"\t", "⇥"),
        (b"\r\n", "␍⏎"),
        (b"\x00\x1b", "⟨00⟩⟨1B⟩"),
        (bytes.fromhex("f09f98"), "⟨F0 9F 98⟩"),  # first half of an emoji (case T02)
        (b"\x80", "⟨80⟩"),
        ("😀".encode(), "😀"),
        (b"\xe9t\xc3\xa9", "⟨E9⟩té"),
        ("שלום".encode(), "שלום"),
        ("\u202e".encode(), "⟨U+202E⟩"),  # would turn the rest of the line around
        ("\ufeff".encode(), "⟨U+FEFF⟩"),
        ("\u0301".encode(), "◌\u0301"),  # a mark without its letter
        ("e\u0301".encode(), "e\u0301"),
        ("👨\u200d👩".encode(), "👨\u200d👩"),
        (b"<b>$x$</b>", "<b>$x$</b>"),
        ("\ud83d", "⟨U+D83D⟩"),  # a lone surrogate never reaches a renderer
        (b"", ""),
    ],
)
def test_visible(data, shown):
    assert visible(data) == shown


def test_different_blanks_look_different():
    blanks = [" ", "\n", "\t", "\r", "\u00a0", "\u3000", "\u200b", ""]
    assert len({visible(blank) for blank in blanks}) == len(blanks)


def test_every_single_byte_is_visible_and_unique():
    shown = [visible(bytes([b])) for b in range(256)]
    assert len(set(shown)) == 256
    assert all(text.strip() and "\ufffd" not in text for text in shown)


def test_parts_tell_stand_ins_from_letters():
    assert visible_parts(b" a\n") == [("·", True), ("a", False), ("⏎", True)]
    assert visible_parts("·".encode()) == [("·", False)]  # a real middle dot is not a space


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("$x$ <b>b</b>", "&#36;x&#36; &lt;b&gt;b&lt;/b&gt;"),
        ("&lt;", "&amp;lt;"),
        ("a", "a"),
        ("<br>", "&lt;br&gt;"),
    ],
)
def test_escape(text, escaped):
    assert escape(text) == escaped


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (0.328504, "0.329"),
        (1.4076, "1.41"),
        (0.0, "0"),
        (1.0, "1.00"),
        (0.99961, "1.00"),
        (9.996, "10.0"),
        (99.96, "100"),
        (50257.0, "50,300"),
        (0.00012345, "0.000123"),
        (0.0000123, "1.23×10⁻⁵"),
        (1.23e10, "1.23×10¹⁰"),
        (-1.4076, "−1.41"),
        (float("nan"), "not finite"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (0.0625, "0.0625"),
        (np.float32(0.1), "0.100"),
    ],
)
def test_format_number(x, shown):
    assert format_number(x) == shown


def test_formats_carry_their_unit():
    assert format_nats(1.4076) == "1.41 nats"
    assert format_bits(2.0307) == "2.03 bits"
    assert format_prob(0.328504) == "0.329"
    assert [format_prob(p) for p in (0.99499, 0.996, 0.9996, 0.99996384, 0.9999994)] == [
        "0.995", "0.996", "0.9996", "0.99996", "0.999999"
    ]  # fmt: skip
    assert [format_prob(p) for p in (1 - 1e-7, 1.0, 0.0, 99.97)] == [">0.999999", "1.00", "0", "100"]
    assert format_count(50257) == "50,257"
    assert [format_tick(x) for x in (5.0, 0.25, 1000.0)] == ["5", "0.25", "1,000"]


def test_clip_keeps_short_text():
    assert clip("cat", 3) == "cat"
    assert clip("cats", 3) == "ca…"
