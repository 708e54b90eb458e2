"""Numbers of a worked formula, written so that whoever puts them into a calculator gets what is shown."""

import math
from collections.abc import Callable

from wording import words

say = words("ui.worked")
LARGEST = 709.0  # exp of more is infinite
WHOLE = 8  # powers of ten up to which a number is written out
EXACT = 17  # significant digits after which a float64 is itself again


def text(key: str) -> str:
    """A word of a formula, in LaTeX."""
    return rf"\text{{{say('formula.' + key)}}}"


def tex(x: float, digits: int = 4) -> str:
    r"""A number for LaTeX with `digits` significant digits, or as many more as its whole part has.

    >>> tex(-0.00001234), tex(1234.5678, 2), tex(0.0)
    ('-1.234\\times10^{-5}', '1235', '0')
    """
    if not math.isfinite(x):
        return text("not_finite") if math.isnan(x) else (r"\infty" if x > 0 else r"-\infty")
    if x == 0:
        return "0"
    mantissa, exponent = _parts(x, digits)
    if exponent < -4 or exponent > WHOLE:
        return rf"{mantissa}\times10^{{{exponent}}}"
    return f"{rounded(x, digits):.{max(digits - 1 - exponent, 0)}f}"


def rounded(x: float, digits: int) -> float:
    """The number that `tex` writes."""
    if not math.isfinite(x) or x == 0:
        return x
    mantissa, exponent = _parts(x, digits)
    return float(f"{mantissa}e{exponent}")


def _parts(x: float, digits: int) -> tuple[str, int]:
    """Mantissa and exponent; a whole part of up to 9 digits is not rounded away."""
    power = int(f"{x:e}".split("e")[1])
    n = max(digits, power + 1) if power <= WHOLE else digits
    mantissa, exponent = f"{x:.{n - 1}e}".split("e")
    return mantissa, int(exponent)


def tie(
    computes: Callable[..., float] | list[Callable[..., float]], *inputs: float, digits: int | list[int]
) -> int:
    """How many significant digits of the inputs to write so that every written result follows from them.

    Args:
        computes: inputs to result; or several that take the same inputs.
        inputs: the exact numbers.
        digits: significant digits of the result, or of each result.

    >>> tie(lambda p: -math.log(p), 0.903, digits=3)
    3
    """
    results = computes if isinstance(computes, list) else [computes]
    places = digits if isinstance(digits, list) else [digits]
    wanted = [tex(compute(*inputs), n) for compute, n in zip(results, places, strict=True)]
    for n in range(max(places), EXACT):
        given = [rounded(x, n) for x in inputs]
        try:
            got = [tex(compute(*given), m) for compute, m in zip(results, places, strict=True)]
        except (ArithmeticError, ValueError):  # a rounded input may leave the domain, as log(0)
            continue
        if got == wanted:
            return n
    return EXACT


def mantissa(log: float, digits: int = 4) -> tuple[str, int]:
    """Write the number whose natural log is `log` as m × 10^e, also where a float would be 0.

    >>> mantissa(math.log(0.00123)), mantissa(-2000.0), mantissa(math.log(9.99996), 4)
    (('1.230', -3), ('2.577', -869), ('1.000', 1))
    """
    power = log / math.log(10)
    exponent = math.floor(power)
    written = f"{10 ** (power - exponent):.{digits - 1}f}"
    return (f"{1:.{digits - 1}f}", exponent + 1) if float(written) >= 10 else (written, exponent)


def power(log: float, digits: int = 4) -> str:
    r"""e^log as `tex` writes it, also where a float would be infinite or 0.

    >>> power(2.0), power(-2000.0)
    ('7.389', '2.577\\times10^{-869}')
    """
    if abs(log) < LARGEST:
        return tex(math.exp(log), digits)
    written, exponent = mantissa(log, digits)
    return rf"{written}\times10^{{{exponent}}}"


def in_range(log: float) -> tuple[float, float]:
    """A float with the digits of e^log, and the log of the power of ten that it leaves out: mostly 0."""
    beyond = 0.0 if abs(log) < LARGEST else math.floor(log / math.log(10)) * math.log(10)
    return math.exp(log - beyond), beyond


def aligned(*lines: str) -> str:
    """One formula of several lines for st.latex; `&` marks what stands under what."""
    # KaTeX draws a table 2 pixels wider than its box, which would then scroll: the thin space makes room.
    return r"\begin{aligned}" + r"\\[8pt]".join(lines) + r"\end{aligned}\,"


def softmax(z: float, log_total: float, v: int, *, unit: str = "nats", digits: int = 4) -> str:
    """From a logit to its probability and surprisal, each line following from the one before.

    Args:
        z: the token's logit.
        log_total: log Σ exp(z) over the vocabulary.
        v: how many tokens the sum runs over.
        unit: of the surprisal, "nats" or "bits".
        digits: of the surprisal; the lines before have as many more as that needs.
    """
    log, name, nats = (math.log, r"\ln", 1.0) if unit == "nats" else (math.log2, r"\log_2", math.log(2))
    log_p = z - log_total
    p, beyond = in_range(log_p)
    n_p = tie(lambda x: -log(x) - beyond / nats, p, digits=digits) if math.exp(log_p) < 1 else digits
    n_e = tie(lambda top, total: top / total, in_range(z)[0], in_range(log_total)[0], digits=n_p)
    top, total = power(z, n_e), power(log_total, n_e)
    return aligned(
        rf"z &= {tex(z, tie(lambda x: math.exp(x - in_range(z)[1]), z, digits=n_e))}",
        rf"e^{{z}} &= {top}",
        rf"p &= \frac{{e^{{z}}}}{{\sum_{{j=1}}^{{{v}}} e^{{z_j}}}} = \frac{{{top}}}{{{total}}}",
        rf"&= {power(log_p, n_p)}",
        rf"-{name} p &= -{name} {power(log_p, n_p)}",  # short lines, for a telephone
        rf"&= {tex((log_total - z) / nats, digits)}\ \text{{{unit}}}",
    )


def divergence(nats: float, unit: str = "nats", *, digits: int = 4) -> str:
    """The distance from the true distribution p* to the model's p, in "nats" or "bits"."""
    log, value = (r"\ln", nats) if unit == "nats" else (r"\log_2", nats / math.log(2))
    return aligned(
        rf"D_{{\text{{KL}}}} &= \sum_v p^{{*}}_v\,{log} \frac{{p^{{*}}_v}}{{p_v}}",
        rf"&= {tex(value, digits)}\ \text{{{unit}}}",
    )


def perplexity(total: float, n: int, n_bytes: int, *, digits: int = 4) -> str:
    """From the log probability of a text to loss, perplexity and bits per byte.

    Args:
        total: natural log of the probability of all scored tokens together.
        n: how many these are.
        n_bytes: how many bytes they have.
        digits: of the results.
    """
    loss = -total / n
    n_loss = tie(math.exp, loss, digits=digits) if loss < LARGEST else digits
    n_total = tie([lambda x: x / n, lambda x: x / math.log(2) / n_bytes], -total, digits=[n_loss, digits])
    shown = tex(-total, n_total)
    return aligned(
        rf"-\ln P &= -\sum_{{t=1}}^{{{n}}} \ln p_t = {shown}",
        rf"{text('loss')} &= \frac{{{shown}}}{{{n}}} = {tex(loss, n_loss)}\ \text{{nats}}",
        rf"{text('perplexity')} &= e^{{{tex(loss, n_loss)}}} = {tex(_exp(loss), digits)}",
        rf"{text('bits_per_byte')} &= \frac{{{shown}}}{{\ln 2 \cdot {n_bytes}}}"
        rf" = {tex(-total / math.log(2) / n_bytes, digits)}",
    )


def attention(
    dot: float,
    d_head: int,
    total: float,
    *,
    scale: float | None = None,
    subtracted: int = 0,
    digits: int = 4,
    others: int | None = None,
) -> str:
    """From q · k to the attention weight.

    Args:
        dot: q · k.
        d_head: numbers in q and in k.
        total: Σ exp(score - subtracted) over the keys that the query may look at.
        scale: what q · k is multiplied by; None: 1 / √d_head.
        subtracted: what is taken from every score, so that a float can hold its exponential.
        digits: of the weight; the lines before have as many more as that needs.
        others: significant digits of the lines before, where these are known to give the weight.
    """
    n = others or _attention_digits(dot, d_head, total, scale, digits)
    q_k, score, top = _forward(dot, d_head, scale, n, subtracted)
    less = minus(subtracted)
    return aligned(  # short lines, for a telephone
        rf"q \cdot k &= \sum_{{i=1}}^{{{d_head}}} q_i k_i = {tex(q_k, n)}",
        rf"s &= {scaled(tex(q_k, n), d_head, scale)} = {tex(score, n)}",
        rf"e^{{s{less}}} &= e^{{{tex(score, n)}{less}}} = {tex(top, n)}",
        rf"{text('weight')} &= \frac{{e^{{s{less}}}}}{{\sum_j e^{{s_j{less}}}}}"
        rf" = \frac{{{tex(top, n)}}}{{{tex(total, n)}}} = {tex(top / rounded(total, n), digits)}",
    )


def minus(whole: int) -> str:
    """A whole number that is subtracted, as it stands in an exponent; nothing for 0."""
    return f" {-whole:+d}".replace("+", "+ ").replace("-", "- ") if whole else ""


def scaled(dot: str, d_head: int, scale: float | None) -> str:
    """How a score comes of q · k, in symbols and with numbers: divided by √d, or by the model's own rule."""
    if scale is None:
        return rf"\frac{{q \cdot k}}{{\sqrt{{d_{{\text{{head}}}}}}}} = \frac{{{dot}}}{{\sqrt{{{d_head}}}}}"
    factor = f"({dot})" if dot.startswith("-") else dot
    return r"q \cdot k" if scale == 1 else rf"c\,(q \cdot k) = {scale!r} \cdot {factor}"


def score_of(dot: float, d_head: int, scale: float | None) -> float:
    """The score of a dot product: divided by √d_head, or times the model's own scale."""
    return dot / math.sqrt(d_head) if scale is None else dot * scale


def _attention_digits(dot: float, d_head: int, total: float, scale: float | None, digits: int) -> int:
    """How few significant digits of every number before the weight give the weight."""
    wanted = tex(math.exp(score_of(dot, d_head, scale)) / total, digits)
    for n in range(digits, EXACT):
        if tex(_forward(dot, d_head, scale, n)[2] / rounded(total, n), digits) == wanted:
            return n
    return EXACT


def _forward(
    dot: float, d_head: int, scale: float | None, n: int, subtracted: int = 0
) -> tuple[float, float, float]:
    """The dot product, the score and its exponential, each with n digits from the one before as written."""
    q_k = rounded(dot, n)
    score = rounded(score_of(q_k, d_head, scale), n)
    return q_k, score, rounded(_exp(score - subtracted), n)


def number_of(data: bytes, token_id: int, vocab_size: int, *, most: int = 10) -> str:
    """From a token's bytes to its id; `most` bytes are written out."""
    pairs = "~".join(f"{byte:02X}" for byte in data[:most]) + (r"\dots" if len(data) > most else "")
    n_bytes, of = say("bytes", n=len(data)), say("of")
    return (
        rf"\underbrace{{\texttt{{{pairs}}}}}_{{\text{{{n_bytes}}}}} \;\longrightarrow\;"
        rf" \text{{id }}\mathbf{{{token_id}}} \text{{ {of} 0 … }}{vocab_size - 1}"
    )


def bytes_per_token(n_bytes: int, n_tokens: int, *, digits: int = 4) -> str:
    """How much text a token carries."""
    top, below = say("bytes", n=n_bytes), say("tokens", n=n_tokens)
    return (
        rf"\frac{{\text{{{top}}}}}{{\text{{{below}}}}}"
        rf" = {tex(n_bytes / n_tokens, digits)}\ {text('bytes_per_token')}"
    )


def _exp(x: float) -> float:
    return math.exp(x) if x < LARGEST else math.inf
