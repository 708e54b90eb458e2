"""The worked solution of an exercise whose answer is a number; every line follows from the one before."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.exercise import Exercise, Number
from ui import worked_masking
from ui.worked import aligned, rounded, tex, text, tie

Numbers = Mapping[str, Any]
Formula = Callable[[Numbers, float], str]


def formula(exercise: Exercise) -> str:
    """For st.latex: from the numbers of the question to the answer."""
    assert isinstance(exercise.answer, Number)
    return FORMULAS[exercise.id](exercise.values, exercise.answer.value)


def _whole(x: float) -> str:
    """A count, with thin spaces between its thousands."""
    return f"{round(x):,}".replace(",", r"\,")


def _signed(x: float) -> str:
    return f"({x})" if x < 0 else f"{x}"


def _code(text: str) -> str:
    return rf"\texttt{{{text}}}"


# ---- tokens


def _utf8_bytes(given: Numbers, value: float) -> str:
    parts = (rf"\underset{{\text{{{char}}}}}{{{len(char.encode())}}}" for char in given["word"])
    return aligned(f"{' + '.join(parts)} &= {value:.0f}")


def _merge_saves(given: Numbers, value: float) -> str:
    n, count = given["size"], given["count"]
    return aligned(rf"{text('count')}({_code(given['pair'])}) &= {count}", rf"{n} - {count} &= {value:.0f}")


def _embedding_parameters(given: Numbers, value: float) -> str:
    return aligned(rf"V \cdot d &= {_whole(given['V'])} \cdot {given['d']}", rf"&= {_whole(value)}")


def _one_hot_row(given: Numbers, value: float) -> str:
    j = given["column"]
    terms = [rf"{x} \cdot {_signed(row[j])}" for x, row in zip(given["one_hot"], given["rows"], strict=True)]
    return aligned(  # short lines, for a telephone
        rf"\sum_i x_i E_{{i,{j}}} &= {terms[0]} + {terms[1]}",
        rf"&\quad + {terms[2]} + {terms[3]}",
        f"&= {tex(value, 1)}",
    )


# ---- probabilities


def _softmax_equal(given: Numbers, value: float) -> str:
    k, z = given["k"], given["z"]
    return aligned(rf"p &= \frac{{e^{{{z}}}}}{{{k} \cdot e^{{{z}}}}} = \frac{{1}}{{{k}}}", f"&= {tex(value)}")


def _log_sum(logits: Sequence[float]) -> float:
    return math.log(math.fsum(map(math.exp, logits)))


def _probability(z: float, logits: Sequence[float], value: float, digits: int = 4) -> list[str]:
    """From logits to one probability, through the exponentials as written."""
    n = tie(lambda top, total: top / total, math.exp(z), math.exp(_log_sum(logits)), digits=digits)
    top, total = tex(math.exp(z), n), tex(math.exp(_log_sum(logits)), n)
    terms = " + ".join(f"e^{{{x:g}}}" for x in logits)
    return [
        rf"p &= \frac{{e^{{{z:g}}}}}{{{terms}}}",
        rf"&= \frac{{{top}}}{{{total}}} = {tex(value, digits)}",
    ]


def _softmax_three(given: Numbers, value: float) -> str:
    return aligned(*_probability(given["z"], given["logits"], value))


def _sigmoid_two(given: Numbers, value: float) -> str:
    z = given["z"]
    return aligned(
        rf"p &= \frac{{e^{{{z}}}}}{{e^{{{z}}} + e^{{0}}}} = \frac{{1}}{{1 + e^{{{-z}}}}}", f"&= {tex(value)}"
    )


def _shift_invariance(given: Numbers, value: float) -> str:
    a, b = given["logits"]
    return aligned(
        rf"p &= \frac{{e^{{{a}}}}}{{e^{{{a}}} + e^{{{b}}}}}",
        rf"&= \frac{{e^{{{given['a']}}}}}{{e^{{{given['a']}}} + e^{{{given['b']}}}}}",
        rf"&= \frac{{1}}{{1 + e^{{{-given['gap']}}}}} = {tex(value)}",
    )


def _chain_rule(given: Numbers, value: float) -> str:
    factors = r" \cdot ".join(map(str, given["probs"]))
    return aligned(rf"P &= {factors}", f"&= {tex(value)}")


def _joint_digits(given: Numbers, value: float) -> str:
    v, n = given["V"], given["n_tokens"]
    power = n * math.log10(v)
    return aligned(
        rf"\log_{{10}} {v}^{{{n}}} &= {n} \cdot \log_{{10}} {v}",
        f"&= {tex(power, 6)}",
        rf"{v}^{{{n}}} &\approx 10^{{{tex(power, 6)}}}",
        rf"{int(power)} + 1 &= {value:.0f}",
    )


def _n_gram(given: Numbers, value: float) -> str:
    h, w = given["h"], given["w"]
    return aligned(
        rf"p({_code(w)} \mid {_code(h)}) &= \frac{{{text('count')}({_code(h)}\ {_code(w)})}}"
        rf"{{{text('count')}({_code(h)}\ \ast)}}",
        rf"&= \frac{{{given['together']}}}{{{given['before']}}} = {tex(value)}",
    )


# ---- loss


def _minus_log(given: Numbers, value: float) -> str:
    return aligned(rf"{text('loss')} &= -\ln p", rf"&= -\ln {given['p']} = {tex(value)}\ \text{{nats}}")


def _loss_equal(given: Numbers, value: float) -> str:
    k = given["k"]
    return aligned(rf"p &= \frac{{1}}{{{k}}}", rf"-\ln p &= \ln {k} = {tex(value)}\ \text{{nats}}")


def _sentence_loss(given: Numbers, value: float) -> str:
    p, q = given["p"], given["q"]
    n = tie(lambda a, b: a + b, -math.log(p), -math.log(q), digits=4)
    return aligned(
        rf"-\ln {p} - \ln {q} &= {tex(-math.log(p), n)} + {tex(-math.log(q), n)}",
        rf"&= {tex(value)}\ \text{{nats}}",
    )


def _cross_entropy(given: Numbers, value: float) -> str:
    p = math.exp(-value)
    digits = tie(lambda x: -math.log(x), p, digits=4)
    lines = _probability(given["z"], given["logits"], p, digits)
    return aligned(*lines, rf"-\ln p &= -\ln {tex(p, digits)}", rf"&= {tex(value)}\ \text{{nats}}")


def _batch_loss(given: Numbers, value: float) -> str:
    rows, targets = given["rows"], given["targets"]
    losses = [_log_sum(row) - row[t] for row, t in zip(rows, targets, strict=True)]
    n = tie(lambda a, b: (a + b) / 2, *losses, digits=4)
    lines = []
    for i, (row, target, loss) in enumerate(zip(rows, targets, losses, strict=True)):
        terms = " + ".join(f"e^{{{x:g}}}" for x in row)
        lines.append(rf"\ell_{i} &= \ln\left({terms}\right) - {row[target]:g}")
        lines.append(f"&= {tex(loss, n)}")
    written = [tex(loss, n) for loss in losses]
    mean = rf"\frac{{{written[0]} + {written[1]}}}{{2}}"
    return aligned(*lines, rf"{text('loss')} &= {mean}", rf"&= {tex(value)}\ \text{{nats}}")


def _loss_gap(given: Numbers, value: float) -> str:
    best, worst = given["best"], given["worst"]
    return aligned(
        r"&-\ln p_{\min} + \ln p_{\max}",  # short lines, for a telephone
        r"&= z_{\max} - z_{\min}",
        rf"&= {best} - {_signed(worst)}",
        rf"&= {tex(value, 2)}\ \text{{nats}}",
    )


def _start_loss(given: Numbers, value: float) -> str:
    v = given["V"]
    return aligned(rf"-\ln \frac{{1}}{{{_whole(v)}}} &= \ln {_whole(v)}", rf"&= {tex(value)}\ \text{{nats}}")


def _perplexity_of_loss(given: Numbers, value: float) -> str:
    return aligned(rf"e^{{{given['loss']}}} &= {tex(value)}")


def _loss_of_perplexity(given: Numbers, value: float) -> str:
    return aligned(rf"\ln {given['perplexity']} &= {tex(value)}\ \text{{nats}}")


def _perplexity_of_tokens(given: Numbers, value: float) -> str:
    probs = given["probs"]
    mean = -math.fsum(map(math.log, probs)) / len(probs)
    shown = tex(mean, tie(math.exp, mean, digits=4))
    logs = " ".join(rf"-\ln {p}" for p in probs)
    return aligned(
        rf"{text('loss')} &= \frac{{{logs}}}{{{len(probs)}}}",
        f"&= {shown}",
        rf"{text('perplexity')} &= e^{{{shown}}} = {tex(value)}",
    )


def _nats_to_bits(given: Numbers, value: float) -> str:
    return aligned(rf"\frac{{{given['loss']}}}{{\ln 2}} &= {tex(value)}\ \text{{bits}}")


def _bits_per_byte(given: Numbers, value: float) -> str:
    total = f"{given['total']:g}"
    return aligned(
        rf"{given['tokens']} \cdot {given['loss']} &= {total}\ \text{{nats}}",
        rf"\frac{{{total}}}{{\ln 2 \cdot {given['bytes']}}} &= {tex(value)}",
    )


def _entropy(given: Numbers, value: float) -> str:
    terms = " ".join(rf"- {p} \log_2 {p}" for p in given["probs"])
    return aligned(rf"H &= {terms}", rf"&= {tex(value)}\ \text{{bits}}")


def _divergence(given: Numbers, value: float) -> str:
    pairs = zip(given["true"], given["model"], strict=True)
    terms = " + ".join(rf"{p} \ln \frac{{{p}}}{{{q}}}" for p, q in pairs)
    return aligned(
        r"D_{\text{KL}} &= \sum_v p^{*}_v \ln \frac{p^{*}_v}{p_v}",
        rf"&= {terms}",
        rf"&= {tex(value)}\ \text{{nats}}",
    )


# ---- inputs and targets


def _n_targets(given: Numbers, value: float) -> str:
    return aligned(rf"{given['size']} - 1 &= {value:.0f}")


def _targets_per_step(given: Numbers, value: float) -> str:
    return aligned(rf"B \cdot T &= {given['B']} \cdot {given['T']} = {_whole(value)}")


def _n_windows(given: Numbers, value: float) -> str:
    return aligned(rf"N - (T + 1) + 1 &= {given['N']} - {given['length']} + 1", rf"&= {_whole(value)}")


# ---- attention and sampling


def _attention_weight(given: Numbers, value: float) -> str:
    keys = [json.loads(line.split("=")[1]) for line in given["keys"].splitlines()]
    lines = []
    for i, (key, dot) in enumerate(zip(keys, given["dots"], strict=True)):
        terms = " + ".join(_signed(a * b) for a, b in zip(given["q"], key, strict=True))
        lines.append(rf"q \cdot k_{i} &= {terms} = {dot}")
    scores = [dot / 2 for dot in given["dots"]]
    written = r",\ ".join(f"{score:g}" for score in scores)
    first, *rest = _probability(scores[given["index"]], scores, value)
    return aligned(
        *lines,
        rf"s &= \frac{{q \cdot k}}{{\sqrt{{4}}}}{{:}}\ {written}",
        first.replace("p &=", rf"{text('weight')} &="),
        *rest,
    )


def _causal_pairs(given: Numbers, value: float) -> str:
    t = given["T"]
    return aligned(rf"1 + 2 + \dots + {t} &= \frac{{{t} \cdot {t + 1}}}{{2}}", f"&= {value:.0f}")


def _temperature(given: Numbers, value: float) -> str:
    t, z, scaled = given["T"], given["logits"][given["index"]], given["scaled"]
    first = rf"\frac{{z}}{{T}} &= \frac{{{z}}}{{{t}}} = {z / t:g}"
    return aligned(first, *_probability(z / t, scaled, value))


def _top_k(given: Numbers, value: float) -> str:
    kept = given["kept"]
    return aligned(
        rf"{' + '.join(f'{p:.2f}' for p in kept)} &= {sum(kept):.2f}",
        rf"\frac{{{given['p']:.2f}}}{{{sum(kept):.2f}}} &= {tex(value)}",
    )


def _effective_choices(given: Numbers, value: float) -> str:
    return aligned(rf"2^{{{given['bits']:g}}} &= {tex(value)}")


# ---- masked models and training


def _masked_targets(given: Numbers, value: float) -> str:
    b, t, share = given["B"], given["T"], given["share"] / 100
    return aligned(rf"{share} \cdot {b} \cdot {t} &= {_whole(value)}")


def _mask_split(given: Numbers, value: float) -> str:
    return aligned(rf"{_whole(given['size'])} \cdot 0.15 \cdot 0.8 &= {_whole(value)}")


def _none_masked(given: Numbers, value: float) -> str:
    return worked_masking.none_chosen(given["size"], given["share"])


def _warm_up(given: Numbers, value: float) -> str:
    return aligned(
        rf"{given['rate']} \cdot \frac{{{given['k']}}}{{{given['warmup']}}} &= {tex(rounded(value, 12))}"
    )


def _tokens_seen(given: Numbers, value: float) -> str:
    steps, b, t = given["steps"], given["B"], given["T"]
    return aligned(rf"{_whole(steps)} \cdot {b} \cdot {t} &= {_whole(value)}")


def _scaling_ratio(given: Numbers, value: float) -> str:
    k, alpha = given["times"], given["alpha"]
    return aligned(
        rf"\frac{{A \cdot ({k}N)^{{-{alpha}}}}}{{A \cdot N^{{-{alpha}}}}} &= {k}^{{-{alpha}}}",
        f"&= {tex(value)}",
    )


FORMULAS: dict[str, Formula] = {
    "utf8-bytes": _utf8_bytes,
    "merge-saves": _merge_saves,
    "embedding-parameters": _embedding_parameters,
    "one-hot-row": _one_hot_row,
    "softmax-equal": _softmax_equal,
    "softmax-three": _softmax_three,
    "sigmoid-two": _sigmoid_two,
    "shift-invariance": _shift_invariance,
    "chain-rule": _chain_rule,
    "joint-digits": _joint_digits,
    "n-gram": _n_gram,
    "minus-log": _minus_log,
    "loss-equal": _loss_equal,
    "sentence-loss": _sentence_loss,
    "cross-entropy": _cross_entropy,
    "loss-gap": _loss_gap,
    "batch-loss": _batch_loss,
    "start-loss": _start_loss,
    "perplexity-of-loss": _perplexity_of_loss,
    "loss-of-perplexity": _loss_of_perplexity,
    "perplexity-of-tokens": _perplexity_of_tokens,
    "nats-to-bits": _nats_to_bits,
    "bits-per-byte": _bits_per_byte,
    "entropy": _entropy,
    "divergence": _divergence,
    "n-targets": _n_targets,
    "targets-per-step": _targets_per_step,
    "n-windows": _n_windows,
    "attention-weight": _attention_weight,
    "causal-pairs": _causal_pairs,
    "temperature": _temperature,
    "top-k": _top_k,
    "effective-choices": _effective_choices,
    "masked-targets": _masked_targets,
    "mask-split": _mask_split,
    "none-masked": _none_masked,
    "warm-up": _warm_up,
    "tokens-seen": _tokens_seen,
    "scaling-ratio": _scaling_ratio,
}
