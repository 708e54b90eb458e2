"""P9: what it costs to look inside: every attention map kept, and a probe text captured while training.

The forward that hands everything to a recorder is measured in turn with the fused one, on a text that fills
the context, as a page reads it (one row, one thread). A probe is what a lesson would keep of a moment: all
maps, the ten likeliest tokens of each position and the entropies, captured after every tenth step of a
training with the app's settings. All of it is Loupe's own: there is no peer.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.rows import Goal, Measure, Options, Row, Spread
from engine.config import ModelConfig, TrainConfig
from engine.corpus import stories
from engine.events import StepEvent
from engine.heads import row_entropies
from engine.memory import KEPT_OF_MANY, keep_freed
from engine.metrics import most_likely, next_token_scores
from engine.model import Transformer
from engine.plan import SIZES, Size
from engine.recorder import Recorder
from engine.tokenizers import Tokenizer, train_bpe
from engine.training import train

MAPS = ("weights",)  # their name in a recorder
CONTEXTS = (64, 128, 256)
VOCAB_SIZE = 512
EVERY = 10  # steps between two probes
SHOWN = "medium at 128"  # whose figures stand in the table; the others are in the file of results
LARGE_VOCAB = (128, 50_257)  # positions, ids: GPT-2's vocabulary
MOST_APART = 1e-5  # of two logits, by the fused and by the explicit path
Work = Callable[[], object]


def milliseconds(work: Work, times: int = 1) -> float:
    """Of one piece of work, by the clock; the mean of so many."""
    began = time.perf_counter()
    for _ in range(times):
        work()
    return 1000 * (time.perf_counter() - began) / times


def in_turn(works: Mapping[str, Work], rounds: int, times: int) -> dict[str, list[float]]:
    """Milliseconds of each piece of work, in every round, after one uncounted try."""
    for work in works.values():
        work()
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(milliseconds(work, times))
    return found


def model_of(size: Size, context_length: int) -> Transformer:
    """A model of one of the app's sizes, untrained."""
    return Transformer(ModelConfig(VOCAB_SIZE, context_length, size.n_layer, size.n_head, size.d_model))


def check(model: Transformer, ids: torch.Tensor) -> None:
    """Both paths must give the same logits, and whole maps.

    Raises:
        ValueError: if they don't.
    """
    recorder = Recorder()
    apart = float((model(ids, recorder=recorder) - model(ids)).abs().max())
    if apart > MOST_APART:
        raise ValueError(f"With every map kept a logit differs by {apart:.1e}; at most {MOST_APART} may.")
    sums = torch.stack(recorder.kept["weights"]).sum(dim=-1)  # (L,B,H,T)
    if len(sums) != model.config.n_layer or not torch.allclose(sums, torch.ones(())):
        raise ValueError("The kept maps are not whole: each row has to sum to 1.")


@torch.no_grad()
def forwards(size: Size, context_length: int, options: Options) -> dict[str, list[float]]:
    """Milliseconds of a forward in every round: "fused", with all "maps" kept, with "everything" kept."""
    model = model_of(size, context_length)
    ids = torch.randint(VOCAB_SIZE, (1, context_length), generator=torch.Generator().manual_seed(0))
    check(model, ids)
    works = {
        "fused": lambda: model(ids),
        "maps": lambda: model(ids, recorder=Recorder(only=MAPS)),
        "everything": lambda: model(ids, recorder=Recorder()),
    }
    return in_turn(works, *((1, 1) if options.toy else (4 * options.rounds, 4)))


@torch.inference_mode()
def probe(model: Transformer, ids: torch.Tensor) -> list[NDArray]:
    """What is kept of a moment: all maps, the ten likeliest tokens of each position, all entropies."""
    recorder = Recorder(only=MAPS)
    log_probs = model(ids, recorder=recorder)[0].log_softmax(dim=-1)  # (T,V)
    maps = torch.cat(recorder.kept["weights"]).numpy()  # (L,H,T,T)
    top = log_probs.topk(10)
    entropies = -(log_probs.exp() * log_probs).sum(dim=-1)  # (T,)
    return [maps, row_entropies(maps), entropies.numpy(), top.indices.numpy(), top.values.exp().numpy()]


def steps(model: Transformer, ids: Sequence[int], size: Size, n: int) -> Iterator[None]:
    """Train as the app does, one step at a time."""
    config = TrainConfig(steps=n, batch_size=size.batch_size, eval_every=n, eval_rows=1)
    for event in train(model, ids, [], config):
        if isinstance(event, StepEvent):
            yield


def probes(size: Size, text: str, tokenizer: Tokenizer, options: Options) -> dict[str, list[float]]:
    """Milliseconds of ten "steps" and of the "probe" after them, in every round."""
    model, rounds = model_of(size, size.context_length), 1 if options.toy else options.rounds
    training = steps(model, tokenizer.encode(text), size, EVERY * (rounds + 1))
    seen = torch.tensor([tokenizer.encode(text)[: size.context_length]])
    works = {"steps": lambda: [next(training) for _ in range(EVERY)], "probe": lambda: probe(model, seen)}
    return in_turn(works, rounds, 1)


def whole_vocabulary(shape: tuple[int, int], options: Options) -> list[float]:
    """Milliseconds in which a page scores (positions, ids) and takes the ten likeliest."""
    logits = np.random.default_rng(0).normal(0, 3, shape).astype(np.float32)
    ids = np.random.default_rng(1).integers(shape[1], size=shape[0]).tolist()

    def score() -> object:
        return next_token_scores(logits, ids), most_likely(np.exp(logits[-1] - logits[-1].max()), 10)

    return in_turn({"scores": score}, 1 if options.toy else options.rounds, 1)["scores"]


def ratios(above: Sequence[float], below: Sequence[float], factor: float = 1.0) -> Spread:
    """Of two rows of figures, round by round."""
    return Spread.of([factor * a / b for a, b in zip(above, below, strict=True)])


def worst(found: Mapping[str, Spread]) -> tuple[str, Spread]:
    """The largest median, and whose it is."""
    name = max(found, key=lambda name: found[name].median)
    return name, found[name]


def measure(options: Options) -> Row:
    """The row."""
    torch.set_num_threads(1)
    keep_freed(KEPT_OF_MANY)  # as the app does
    sizes, contexts = (SIZES[:1], (16,)) if options.toy else (SIZES, CONTEXTS)
    corpus = stories(100 if options.toy else 1000, seed=1).text
    tokenizer = train_bpe(corpus, VOCAB_SIZE)
    forward = {f"{size.name} at {T}": forwards(size, T, options) for size in sizes for T in contexts}
    probed = {size.name: probes(size, corpus, tokenizer, options) for size in sizes}
    positions, n_ids = (4, 300) if options.toy else LARGE_VOCAB
    scores = whole_vocabulary((positions, n_ids), options)

    kept = {name: ratios(seen["maps"], seen["fused"]) for name, seen in forward.items()}
    everything = {name: ratios(seen["everything"], seen["fused"]) for name, seen in forward.items()}
    shares = {name: ratios(seen["probe"], seen["steps"], 100) for name, seen in probed.items()}
    (slowest, most), (dearest, share) = worst(kept), worst(shares)
    shown = SHOWN if SHOWN in forward else next(iter(forward))
    probe_of = shown.partition(" ")[0]
    figures = {
        f"fused forward, {shown} tokens": Spread.of(forward[shown]["fused"]),
        "with every attention map kept": Spread.of(forward[shown]["maps"]),
        "with everything kept": Spread.of(forward[shown]["everything"]),
        f"ten steps of {probe_of}": Spread.of(probed[probe_of]["steps"]),
        "its probe": Spread.of(probed[probe_of]["probe"]),
        f"scoring {positions} positions over {n_ids:,} ids": Spread.of(scores),
    }
    goals = [
        Goal(f"x the fused forward, the worst of {len(kept)} ({slowest})", most, 1.3, at_least=False),
        Goal(f"% of training for a probe every {EVERY} steps, the worst size ({dearest})", share, 2, False),
    ]
    more = {
        "x fused, maps": {name: f"{seen.median:.3f}" for name, seen in kept.items()},
        "x fused, everything": {name: f"{seen.median:.3f}" for name, seen in everything.items()},
        "% of training": {name: f"{seen.median:.2f}" for name, seen in shares.items()},
        "ms": {name: {k: statistics.median(v) for k, v in seen.items()} for name, seen in forward.items()},
    }
    notes = "Loupe beside itself: sizes nano to large of the app, contexts " + ", ".join(map(str, contexts))
    return Row(
        "P9",
        "Looking inside: a forward with all attention maps kept, a probe while training",
        "ms",
        figures,
        goals,
        f"{notes}; one thread looks.",
        more,
    )


MEASURES: dict[str, Measure] = {"P9": measure}
