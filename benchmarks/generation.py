"""P6, P7, P8: writing a text token by token, batch 1, one thread, beside transformers and nanoGPT.

P6 and P7 are nanoGPT's shapes with random weights, the same in all programs: a prompt of 8 tokens, and the
context filled greedily. transformers keeps keys and values, nanoGPT reads the whole text for every token. P8
is SmolLM2-135M, beside what reading its weights takes: each matrix once, as one long line, which is the
fastest way that was found, and beside `torch.mv` of each matrix. Every program must write the same text, or
the row fails. Times are those of the processor, which other work on the machine disturbs less than the clock;
with one thread both are the same on a quiet one.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from benchmarks.peers import module_from, nanogpt_names, quietly
from benchmarks.real_models import loupe_writer, transformers_writer
from benchmarks.rows import Goal, Measure, Options, Row, Spread
from engine.config import ModelConfig
from engine.corpus import python_docs
from engine.eight_bits import compare, eight_bits
from engine.model import Block, Transformer

Write = Callable[[list[int], int], list[int]]

SMALL = ModelConfig(vocab_size=65, context_length=256, n_layer=4, n_head=4, d_model=128, bias=False)
MIDDLE = ModelConfig(vocab_size=65, context_length=256, n_layer=6, n_head=6, d_model=384, bias=False)
TOY = ModelConfig(vocab_size=65, context_length=32, n_layer=2, n_head=2, d_model=16, bias=False)
PROMPT = 8
LOUPE, PEER, NANO = "Loupe", "transformers", "nanoGPT"
READING, MULTIPLYING = "reading the weights", "torch.mv of each matrix"
SCORED = 1000  # tokens of the text on which 8 bits are compared


@contextmanager
def one_thread() -> Iterator[None]:
    """Operations of torch on one core, in here."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def random_model(shape: ModelConfig) -> Transformer:
    """With weights so large that the text doesn't repeat itself at once."""
    model = Transformer(shape, torch.Generator().manual_seed(6))
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim == 2:
                weights.mul_(4)
    return model.eval().requires_grad_(False)


def gpt2_weights(model: Transformer) -> dict[str, torch.Tensor]:
    """The weights by GPT-2's names, matrices as (out, in)."""
    found = {"wte.weight": model.embedding.weight, "ln_f.weight": model.get_parameter("final_norm.weight")}
    found["wpe.weight"] = model.get_parameter("position.weight")
    for i, block in enumerate(cast(Iterable[Block], model.blocks)):
        attention, mlp = block.attention, block.mlp
        asks = torch.cat([one.weight for one in (attention.q, attention.k, attention.v)])
        found |= {
            f"h.{i}.ln_1.weight": block.attention_norm.weight,
            f"h.{i}.ln_2.weight": block.mlp_norm.weight,
            f"h.{i}.attn.c_attn.weight": asks,
            f"h.{i}.attn.c_proj.weight": attention.out.weight,
            f"h.{i}.mlp.c_fc.weight": mlp.up.weight,
            f"h.{i}.mlp.c_proj.weight": mlp.down.weight,
        }
    return {f"transformer.{name}": weights for name, weights in found.items()}


@torch.no_grad()
def take(peer: nn.Module, weights: dict[str, torch.Tensor], *, turned: bool) -> None:
    """Give a GPT-2 of another program these weights; its biases are 0, its layers' matrices may be turned."""
    for name, parameter in peer.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
            continue
        new = weights[name]
        parameter.copy_(new.t() if turned and ".h." in name and new.ndim == 2 else new)


def transformers_gpt2(model: Transformer) -> Write:
    """`generate` of transformers, with its cache."""
    from transformers import GPT2Config, GPT2LMHeadModel

    c = model.config
    sizes: dict[str, Any] = {
        "vocab_size": c.vocab_size,
        "n_positions": c.context_length,
        "n_layer": c.n_layer,
    }
    sizes |= {"n_head": c.n_head, "n_embd": c.d_model, "bos_token_id": 0, "eos_token_id": 0}
    peer = GPT2LMHeadModel(GPT2Config(**sizes, activation_function="gelu")).eval()  # type: ignore[no-untyped-call]
    take(peer, gpt2_weights(model), turned=True)
    return transformers_writer(peer)


def nanogpt(path: Path, model: Transformer) -> Write:
    """`generate` of nanoGPT; only the likeliest token is left to draw."""
    nano = module_from(path / "model.py")
    with quietly(0):
        peer = nano.GPT(nano.GPTConfig(**nanogpt_names(model.config))).eval()
    take(peer, gpt2_weights(model), turned=False)

    def write(ids: list[int], n: int) -> list[int]:
        found: list[int] = peer.generate(torch.tensor([ids]), n, top_k=1)[0, len(ids) :].tolist()
        return found

    return write


def speeds(
    programs: dict[str, Write], ids: list[int], n: int, rounds: int, read: Callable[[], None]
) -> dict[str, list[float]]:
    """Tokens a second of each program in each round; what they wrote must be the same.

    Args:
        programs: by their names.
        ids: of the prompt.
        n: how many tokens follow it.
        rounds: how often.
        read: what no token can do without, see `reading_weights`; its figures stand under `READING`.

    Raises:
        RuntimeError: if it is not.
    """
    texts = {name: write(ids, n) for name, write in programs.items()}  # the uncounted try
    if odd := [name for name, text in texts.items() if text != texts[LOUPE]]:
        raise RuntimeError(f"{', '.join(odd)} did not write the text that Loupe wrote")
    found: dict[str, list[float]] = {name: [] for name in programs}
    for i in range(rounds):
        for name in list(programs)[:: 1 if i % 2 == 0 else -1]:
            began = time.process_time()
            programs[name](ids, n)
            found[name].append(n / max(time.process_time() - began, 1e-9))
        began = time.process_time()
        for _ in range(n):
            read()
        found.setdefault(READING, []).append(n / max(time.process_time() - began, 1e-9))
    return found


def ratio(found: dict[str, list[float]], ours: str, peer: str) -> Spread:
    """How many times as fast, within a round."""
    return Spread.of([a / b for a, b in zip(found[ours], found[peer], strict=True)])


def filled(row: str, shape: ModelConfig, goals: dict[str, float], options: Options) -> Row:
    """P6 or P7."""
    shape = TOY if options.toy else shape
    model, notes = random_model(shape), []
    with one_thread():
        programs: dict[str, Write] = {LOUPE: loupe_writer(model), PEER: transformers_gpt2(model)}
        if options.nanogpt:
            programs[NANO] = nanogpt(options.nanogpt, model)
        else:
            notes.append("Without a checkout of nanoGPT it was left out.")
        ids, n = [(7 * i + 3) % shape.vocab_size for i in range(PROMPT)], shape.context_length - PROMPT
        found = speeds(programs, ids, n, options.rounds, reading_weights(model))
    what = f"Generation, {model.n_parameters() / 1e6:.2g} M parameters, batch 1, one thread"
    seen = [Goal(f"x {name}", ratio(found, LOUPE, name), goals[name]) for name in programs if name != LOUPE]
    notes.insert(0, f"{PROMPT} tokens and {n} more, up to the context; the same greedy text in all programs.")
    notes.append(bound(model, found))
    figures = {name: Spread.of(values) for name, values in found.items()}
    return Row(row, what, "tokens/s", figures, seen, " ".join(notes))


def bound(model: Transformer, found: dict[str, list[float]]) -> str:
    """How far the memory lets any program come that reads each matrix for each token."""
    size = sum(matrix.numel() * matrix.element_size() for matrix in matrices(model))
    gigabytes = Spread.of([size * pace / 1e9 for pace in found[READING]]).median
    said = f"A token reads {size / 1e6:.3g} MB of weights, here at {gigabytes:.3g} GB/s"
    share = ratio(found, LOUPE, READING).median
    if NANO not in found:
        return f"{said}; Loupe takes {1 / share:.3g} x as long as that alone."
    most = ratio(found, READING, NANO).median
    return f"{said}: that alone is {most:.3g} x {NANO}, and Loupe reaches {100 * share:.0f} % of it."


def matrices(model: Transformer) -> list[torch.Tensor]:
    """Those that every token multiplies; of a table of positions it takes one row."""
    named = model.named_parameters()
    return [weights for name, weights in named if weights.ndim == 2 and name != "position.weight"]


def reading_weights(model: Transformer) -> Callable[[], None]:
    """Each matrix of a model once, by its sum: less a token can't take."""
    lines = [matrix.view(-1) for matrix in matrices(model)]

    def read() -> None:
        with torch.inference_mode():
            for line in lines:
                line.sum()

    return read


def multiplying(model: Transformer) -> Callable[[], None]:
    """Each matrix of a model times a vector, as torch comes."""
    pairs = [(matrix, torch.ones(matrix.shape[1])) for matrix in matrices(model)]

    def multiply() -> None:
        with torch.inference_mode():
            for matrix, vector in pairs:
                torch.mv(matrix, vector)

    return multiply


def seconds_a_token(write: Write, ids: list[int], n: int) -> float:
    """Of the processor, for a token that follows what was read; the prompt's own time is not counted."""
    times = [time.process_time()]
    for length in (1, n + 1):
        write(ids, length)
        times.append(time.process_time())
    return max(times[2] - 2 * times[1] + times[0], 1e-9) / n


def published(options: Options) -> Row:
    """P8: SmolLM2-135M, with the weights as they are and in 8 bits."""
    from engine.folders import data_folder
    from engine.hub import load_folder
    from engine.smollm2 import NAME

    folder = (options.models or data_folder() / "models") / NAME
    if not folder.is_dir():
        return Row("P8", "Generation, SmolLM2-135M", "tokens/s", {}, [], f"There is no {NAME}: left out.")
    checkpoint = load_folder(folder)
    model = checkpoint.model.eval().requires_grad_(False)
    text = options.text.read_text("utf-8")[-6000:] if options.text else python_docs().text[:6000]
    ids = checkpoint.tokenizer.encode(text)[: 100 if options.toy else SCORED]
    n, prompt = (3, ids[:8]) if options.toy else (16, ids[:32])
    with one_thread():
        rounded = eight_bits(model)
        writes = {
            LOUPE: loupe_writer(model),
            PEER: transformers_folder(folder),
            "8 bits": loupe_writer(rounded),
        }
        if writes[LOUPE](prompt, n) != writes[PEER](prompt, n):
            raise RuntimeError(f"{PEER} did not write the text that {LOUPE} wrote")
        bounds = {READING: reading_weights(model), MULTIPLYING: multiplying(model)}
        found: dict[str, list[float]] = {name: [] for name in (*writes, *bounds)}
        for _ in range(options.rounds):
            for name, write in writes.items():
                found[name].append(1 / seconds_a_token(write, prompt, n))
            for name, go in bounds.items():
                go()  # uncounted, like the first token of a text
                began = time.process_time()
                for _ in range(n):
                    go()
                found[name].append(n / (time.process_time() - began))
        cost = compare(model, rounded, ids)
    goals = [
        Goal(f"x {PEER}", ratio(found, LOUPE, PEER), 1.1),
        Goal("of what reading the weights allows", ratio(found, LOUPE, READING), 0.65),
        Goal("8 bits x full precision", ratio(found, "8 bits", LOUPE), 1.8),
    ]
    also = ratio(found, "8 bits", PEER)
    notes = (
        f"The same greedy text as {PEER}. 8 bits cost {cost.cost:.4f} ± {cost.error:.4f} nats a token "
        f"on {len(cost.full):,} tokens of {options.text.name if options.text else 'Python’s help texts'} "
        f"({cost.full.mean():.3f} nats in full), and are {also.median:.2f} x as fast as {PEER}. "
        f"Loupe writes {ratio(found, LOUPE, MULTIPLYING).median:.2f} x as fast as {MULTIPLYING} alone."
    )
    figures = {name: Spread.of(values) for name, values in found.items()}
    told: dict[str, Any] = {"cost_in_nats": cost.cost, "standard_error": cost.error, "tokens": len(cost.full)}
    return Row("P8", "Generation, SmolLM2-135M, batch 1, one thread", "tokens/s", figures, goals, notes, told)


def transformers_folder(folder: Path) -> Write:
    """`generate` of transformers with the model in a folder."""
    from benchmarks.real_models import transformers

    bring, load = transformers(folder)
    bring()
    return load()[1]


MEASURES: dict[str, Measure] = {
    "P6": lambda options: filled("P6", SMALL, {PEER: 3.0, NANO: 6.0}, options),
    "P7": lambda options: filled("P7", MIDDLE, {PEER: 1.6, NANO: 10.0}, options),
    "P8": published,
}
