"""Numbers of a worked formula, written so that whoever puts them into a calculator gets what is shown."""

import math
from collections.abc import Callable

EXACT = 17  # significant digits after which a float64 is itself again


def tex(x: float, digits: int = 4) -> str:
    r"""A number with `digits` significant digits for LaTeX.

    >>> tex(-0.00001234), tex(1234.5678, 6), tex(0.0)
    ('-1.234\\times10^{-5}', '1234.57', '0')
    """
    if not math.isfinite(x):
        return r"\text{not finite}" if math.isnan(x) else (r"\infty" if x > 0 else r"-\infty")
    if x == 0:
        return "0"
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
    power = int(exponent)
    if power < -4 or power > 8:
        return rf"{mantissa}\times10^{{{power}}}"
    return f"{float(f'{mantissa}e{exponent}'):.{max(digits - 1 - power, 0)}f}"


def rounded(x: float, digits: int) -> float:
    """The number that `tex` writes."""
    return float(f"{x:.{digits - 1}e}") if math.isfinite(x) else x


def tie(compute: Callable[..., float], *inputs: float, digits: int = 4) -> int:
    """How many significant digits of the inputs to write so that the written result follows from them.

    Args:
        compute: inputs to result.
        inputs: the exact numbers.
        digits: significant digits of the result.

    >>> tie(lambda p: -math.log(p), 0.903, digits=3)
    3
    """
    wanted = tex(compute(*inputs), digits)
    for n in range(digits, EXACT):
        try:
            got = compute(*(rounded(x, n) for x in inputs))
        except (ArithmeticError, ValueError):  # a rounded input may leave the domain, as log(0)
            continue
        if tex(got, digits) == wanted:
            return n
    return EXACT


def softmax_lines(z: float, log_total: float, v: int, *, unit: str = "nats", digits: int = 4) -> list[str]:
    """From a logit to its probability and surprisal, each line following from the one before.

    Args:
        z: the token's logit.
        log_total: log Σ exp(z) over the vocabulary.
        v: how many tokens the sum runs over.
        unit: of the surprisal, "nats" or "bits".
        digits: of the surprisal; the lines before have as many more as that needs.

    Returns:
        Three formulas for st.latex.
    """
    log, nats = (math.log, 1.0) if unit == "nats" else (math.log2, math.log(2))
    p = math.exp(z - log_total)
    n_p = tie(lambda x: -log(x), p, digits=digits) if 0 < p < 1 else digits
    n_e = tie(lambda top, total: top / total, math.exp(z), math.exp(log_total), digits=n_p)
    n_z = tie(math.exp, z, digits=n_e)
    top, total = tex(math.exp(z), n_e), tex(math.exp(log_total), n_e)
    name = r"\ln" if unit == "nats" else r"\log_2"
    return [
        rf"e^{{z}} = e^{{{tex(z, n_z)}}} = {top}",
        rf"p = \frac{{e^{{z}}}}{{\sum_{{j=1}}^{{{v}}} e^{{z_j}}}} = \frac{{{top}}}{{{total}}} = {tex(p, n_p)}",
        rf"-{name} p = -{name} {tex(p, n_p)} = {tex((log_total - z) / nats, digits)}\ \text{{{unit}}}",
    ]


def perplexity_lines(total: float, n: int, n_bytes: int, *, digits: int = 4) -> list[str]:
    """From the log probability of a text to loss, perplexity and bits per byte.

    Args:
        total: natural log of the probability of all scored tokens together.
        n: how many these are.
        n_bytes: how many bytes they have.
        digits: of the results.
    """
    loss = -total / n
    n_loss = tie(math.exp, loss, digits=digits) if loss < 700 else digits
    perplexity = math.exp(loss) if loss < 700 else math.inf
    per_byte = -total / math.log(2) / n_bytes
    n_total = max(
        tie(lambda x: -x / n, total, digits=n_loss), tie(lambda x: -x / math.log(2) / n_bytes, total, digits=digits)
    )
    shown = tex(-total, n_total)
    return [
        rf"\ln P = \sum_{{t=2}}^{{{n + 1}}} \ln p_t = -{shown}" if total else r"\ln P = 0",
        rf"\text{{loss}} = \frac{{{shown}}}{{{n}}} = {tex(loss, n_loss)}\ \text{{nats per token}}",
        rf"\text{{perplexity}} = e^{{{tex(loss, n_loss)}}} = {tex(perplexity, digits)}",
        rf"\text{{bits per byte}} = \frac{{{shown}}}{{\ln 2 \cdot {n_bytes}}} = {tex(per_byte, digits)}",
    ]


def attention_lines(dot: float, d_head: int, total: float, *, digits: int = 4) -> list[str]:
    """From q · k to the attention weight.

    Args:
        dot: q · k.
        d_head: numbers in q and in k.
        total: Σ exp(score) over the keys that the query may look at.
        digits: of the weight; the lines before have as many more as that needs.
    """
    score = dot / math.sqrt(d_head)
    top = math.exp(score)
    n_e = tie(lambda a, b: a / b, top, total, digits=digits)
    n_s = tie(math.exp, score, digits=n_e)
    n_dot = tie(lambda x: x / math.sqrt(d_head), dot, digits=n_s)
    return [
        rf"q \cdot k = \sum_{{i=1}}^{{{d_head}}} q_i k_i = {tex(dot, n_dot)}",
        rf"\text{{score}} = \frac{{q \cdot k}}{{\sqrt{{d_{{\text{{head}}}}}}}}"
        rf" = \frac{{{tex(dot, n_dot)}}}{{\sqrt{{{d_head}}}}} = {tex(score, n_s)}",
        rf"\text{{weight}} = \frac{{e^{{{tex(score, n_s)}}}}}{{\sum_j e^{{\text{{score}}_j}}}}"
        rf" = \frac{{{tex(top, n_e)}}}{{{tex(total, n_e)}}} = {tex(top / total, digits)}",
    ]


def id_line(data: bytes, token_id: int, vocab_size: int, *, most: int = 10) -> str:
    """From a token's bytes to its number; `most` bytes are written out."""
    pairs = "~".join(f"{byte:02X}" for byte in data[:most]) + (r"\dots" if len(data) > most else "")
    words = f"{len(data)} byte" + ("s" if len(data) != 1 else "")
    return (
        rf"\underbrace{{\texttt{{{pairs}}}}}_{{\text{{{words}}}}} \;\longrightarrow\;"
        rf" \text{{id }}\mathbf{{{token_id}}} \text{{ of 0 … }}{vocab_size - 1}"
    )


def ratio_line(top: int, bottom: int, *, digits: int = 3) -> str:
    """Bytes per token."""
    return (
        rf"\frac{{{top}\ \text{{bytes}}}}{{{bottom}\ \text{{tokens}}}} = {tex(top / bottom, digits)}"
        r"\ \text{bytes per token}"
    )


def sampling_lines(
    logit: float, top: float, temperature: float, total: float, kept: float, cut: bool, *, digits: int = 4
) -> list[str]:
    """From a logit to the probability that a token is drawn with.

    Args:
        logit: the token's.
        top: the largest logit.
        temperature: what the logits are divided by; 0 gives the largest one everything.
        total: Σ exp((logit - top) / temperature) over the vocabulary.
        kept: share of the probability that the cuts left.
        cut: whether this token was cut away.
        digits: of the result; the lines before have as many more as that needs.
    """
    if temperature == 0:
        return [r"T = 0:\quad p = " + ("0" if cut or logit < top else "1")]

    def power(z: float, largest: float) -> float:
        return math.exp((z - largest) / temperature)

    weight = power(logit, top) if (top - logit) / temperature < 700 else 0.0
    tempered = weight / total
    n_p = tie(lambda p, k: p / k, tempered, kept, digits=digits) if kept < 1 and not cut else digits
    n_w = tie(lambda w, s: w / s, weight, total, digits=n_p) if weight else digits
    n_z = tie(power, logit, top, digits=n_w) if weight else digits
    gap = rf"({tex(logit, n_z)} {'+' if top < 0 else '-'} {tex(abs(top), n_z)})/{temperature:g}"
    lines = [
        rf"e^{{(z - z_{{\text{{max}}}})/T}} = e^{{{gap}}} = {tex(weight, n_w)}",
        rf"p = \frac{{e^{{(z - z_{{\text{{max}}}})/T}}}}{{\sum_j e^{{(z_j - z_{{\text{{max}}}})/T}}}}"
        rf" = \frac{{{tex(weight, n_w)}}}{{{tex(total, n_w)}}} = {tex(tempered, n_p)}",
    ]
    if cut:
        return [*lines, r"p' = 0\quad\text{(cut away)}"]
    if kept < 1:
        lines.append(
            rf"p' = \frac{{p}}{{\text{{kept}}}} = \frac{{{tex(tempered, n_p)}}}{{{tex(kept, n_p)}}} = {tex(tempered / kept, digits)}"
        )
    return lines
