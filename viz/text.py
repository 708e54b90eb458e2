"""Token text and numbers as they are written on the screen.

Tokens are arbitrary bytes: blanks, half letters, markup, control codes. Everything here turns them into text
that can be seen and told apart, and that no renderer takes for markup.
"""

import math
import unicodedata
from itertools import groupby

from wording import words

say = words("viz.text")

SPACE, NEWLINE, TAB, RETURN = "·", "⏎", "⇥", "␍"
_MARKS = {" ": SPACE, "\n": NEWLINE, "\t": TAB, "\r": RETURN, "\u00a0": "⍽"}
_JOINERS = {"\u200c", "\u200d"}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _is_stray_byte(char: str) -> bool:
    """True for a byte that is not UTF-8, as the `surrogateescape` handler stores it."""
    return "\udc80" <= char <= "\udcff"


def _mark(char: str, first: bool) -> tuple[str, bool]:
    """One character -> (what is shown, is it a stand-in)."""
    if char in _MARKS:
        return _MARKS[char], True
    kind = unicodedata.category(char)
    if kind == "Cc":
        return f"⟨{char.encode().hex(' ').upper()}⟩", True
    if kind[0] == "M" and first:  # a mark without its letter would sit on the neighbour
        return "◌" + char, False
    if char in _JOINERS and not first:  # inside an emoji or an Indic syllable it does its work unseen
        return char, False
    if kind in ("Cf", "Zl", "Zp", "Zs", "Cs"):
        return f"⟨U+{ord(char):04X}⟩", True
    return char, False


def visible_parts(data: bytes | str) -> list[tuple[str, bool]]:
    """Cuts a token into what is shown, and whether each piece stands for something invisible.

    Args:
        data: a token's bytes, best, or a text.

    Returns:
        Pieces in order. `True` marks a stand-in: for a space, a control code, an odd byte, a direction mark.

    Example:
        >>> visible_parts(b" cat")
        [('·', True), ('cat', False)]
        >>> visible_parts(bytes.fromhex("f09f98"))
        [('⟨F0 9F 98⟩', True)]
    """
    if isinstance(data, str):
        shown = [_mark(char, i == 0) for i, char in enumerate(data)]
    else:
        shown = []
        for stray, group in groupby(data.decode("utf-8", "surrogateescape"), key=_is_stray_byte):
            if stray:
                shown.append(("⟨" + " ".join(f"{ord(c) - 0xDC00:02X}" for c in group) + "⟩", True))
            else:
                shown += [_mark(char, not shown and i == 0) for i, char in enumerate(group)]
    return [
        ("".join(s for s, _ in group), mark) for mark, group in groupby(shown, key=lambda piece: piece[1])
    ]


def visible(data: bytes | str) -> str:
    r"""Token text with visible marks: space ·, newline ⏎, tab ⇥, carriage return ␍, odd bytes ⟨F0 9F⟩.

    Example:
        >>> visible(b"\n\n"), visible("a\tb"), visible(b"\xe9t\xc3\xa9")
        ('⏎⏎', 'a⇥b', '⟨E9⟩té')
    """
    return "".join(text for text, _ in visible_parts(data))


def escape(text: str) -> str:
    r"""Makes a text literal for Plotly, which reads a subset of HTML and, between dollars, TeX.

    Example:
        >>> escape("$x$ <b>b</b>")
        '&#36;x&#36; &lt;b&gt;b&lt;/b&gt;'
    """
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("$", "&#36;")):
        text = text.replace(char, entity)
    return text


def clip(text: str, n: int = 16) -> str:
    """At most `n` characters, the last one an ellipsis when something was cut."""
    return text if len(text) <= n else text[: n - 1] + "…"


def format_number(x: float, digits: int = 3) -> str:
    """A number with `digits` significant digits, rounded, never truncated.

    Example:
        >>> [format_number(x) for x in (0.328504, 1.4076, 12345.0, 0.0000123, 0.0)]
        ['0.329', '1.41', '12,300', '1.23×10⁻⁵', '0']
    """
    x = float(x)
    if math.isnan(x):
        return say("not_finite")
    sign = "−" if x < 0 else ""
    x = abs(x)
    if math.isinf(x):
        return sign + "∞"
    if x == 0:
        return "0"
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")  # rounds first, so 9.996 becomes 10.0
    power = int(exponent)
    if power < -4 or power >= 9:
        return f"{sign}{mantissa}×10{str(power).translate(_SUPERSCRIPT)}"
    decimals = digits - 1 - power
    return f"{sign}{float(mantissa + 'e' + exponent):,.{max(decimals, 0)}f}"


def format_prob(p: float) -> str:
    """A probability, 0 to 1, with three significant digits, or as many more as tell it from 1.

    Example:
        >>> [format_prob(p) for p in (0.328504, 0.9972, 0.99996, 0.99999999, 1.0)]
        ['0.329', '0.997', '0.99996', '>0.999999', '1.00']
    """
    for digits in range(3, 7):
        shown = format_number(p, digits)
        if not (p < 1 and float(f"{p:.{digits}g}") == 1):
            return shown
    return ">0.999999"


def format_nats(x: float) -> str:
    """A number of nats with its unit: `1.41 nats`."""
    return f"{format_number(x)} nats"


def format_bits(x: float) -> str:
    """A number of bits with its unit: `2.03 bits`."""
    return f"{format_number(x)} bits"


def format_perplexity(x: float) -> str:
    """A perplexity, which has no unit: `4.09`."""
    return format_number(x)


def format_tick(x: float) -> str:
    """A round number on an axis, without noughts that say nothing: `5`, `0.25`, `1,000`."""
    return f"{x:,.10g}" if 1e-4 <= abs(x) < 1e9 else format_number(x, 1)


def format_count(n: int) -> str:
    """A whole number in full: `50,257`."""
    return f"{int(n):,}"
