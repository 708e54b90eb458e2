"""Self-test of the numbers: what this machine computes beside what must come out.

A tiny model with seeded weights is asked the same in two ways, or something whose answer is known by hand.
None of it depends on what lies in the data folder.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.batches import clm_rows
from engine.cache import KVCache
from engine.checkpoint_files import JSON
from engine.checkpoints import load_checkpoint
from engine.config import ModelConfig
from engine.devices import AGREE, CPU, devices, difference
from engine.evaluation import total_loss
from engine.grammar import Grammar
from engine.metrics import cross_entropy, log_softmax
from engine.model import Transformer
from engine.oracle import Oracle
from engine.recorder import Recorder
from engine.sampling import next_token_distribution
from engine.selftest_result import FAILED, OK, WARNING, Fact, Outcome, at_most
from engine.story_report import story_rows
from engine.tokenizer import Tokenizer
from engine.tokenizers import byte_tokenizer, char_tokenizer, tokenizer_from_json, train_bpe
from engine.tokens import repair_text

SAME = 1e-5  # logits that are computed in two ways
GRADIENT = 1e-6  # as a share of the largest slope, in float64
SUM, LN_V, EXACT = 1e-6, 1e-6, 1e-12
ROUNDED = 1e-4  # a card says four decimals
SEED = 777  # of its stories, as `pretrained.make` measures
VOCAB = 50_257  # ids of gpt2: no short sum hides an error
SHIPPED = Path(__file__).resolve().parent.parent / "pretrained" / "stories-clm"
TEXTS = (
    "a😀b 👩‍👩‍👧‍👦 🇪🇸", "中文，שלום, e\u0301 и é", " two  spaces\t tab\r\n\n", "x\x00y \ufeffz",
    "half an emoji \ud83d and \ude00", "<|endoftext|> $x$ <b>", "aaaaaaaaaaaaaaaaaaaaaaaa 1234567",
)  # fmt: skip
BROKEN = (b"\xff\xfe", b"\xf0\x9f\x98", b"\x80abc\xc3", b"\xed\xa0\x80")  # no UTF-8
GRAMMAR = """
story:
  3 | The cat sat.
  1 | The dog sat.
"""


def tiny(**changes: object) -> Transformer:
    """Two blocks with weights from a seed; rotary positions, as the shipped models have."""
    shape = {"context_length": 32, "n_layer": 2, "n_head": 2, "d_model": 32, "positions": "rotary"}
    return Transformer(ModelConfig.from_json({"vocab_size": 65, **shape, **changes}), seeded(1))


def seeded(seed: int) -> torch.Generator:
    """A private source of randomness."""
    return torch.Generator().manual_seed(seed)


def some_ids(rows: int = 3, n: int = 24) -> Tensor:
    """(rows, n) ids of the tiny model."""
    return torch.randint(65, (rows, n), generator=seeded(2))


def apart(found: Tensor, expected: Tensor) -> float:
    """The largest distance of two results; NaN if either holds one."""
    return float((found - expected).abs().max())


@torch.no_grad()
def attention(_: Path) -> Outcome:
    """The fused kernel of torch beside softmax(q k / √D) v, written out; rows of weights must sum to 1."""
    model, ids, recorder = tiny(), some_ids(), Recorder()
    step_by_step = model(ids, recorder=recorder)
    off = max(apart(weights.sum(-1), torch.ones(())) for weights in recorder.kept["weights"])
    return at_most(max(apart(model(ids), step_by_step), off), SAME)


@torch.no_grad()
def cached(_: Path) -> Outcome:
    """One token after the other with kept keys and values beside all at once."""
    model, ids = tiny(), some_ids(1)
    cache = KVCache(model.config)
    steps = [model(ids[:, t : t + 1], cache=cache) for t in range(ids.shape[1])]
    return at_most(apart(torch.cat(steps, dim=1), model(ids)), SAME)


@torch.no_grad()
def batched(_: Path) -> Outcome:
    """Several rows at once beside each alone."""
    model, ids = tiny(), some_ids()
    return at_most(apart(model(ids), torch.cat([model(row[None]) for row in ids])), SAME)


def gradient(_: Path) -> Outcome:
    """Slopes by backpropagation beside (f(w + h) - f(w - h)) / 2h for some weights, all in float64."""
    model = tiny(positions="learned", d_model=8, vocab_size=11, context_length=8).double()
    ids = torch.randint(11, (2, 9), generator=seeded(3))

    def loss() -> Tensor:
        log_probs = model(ids[:, :-1]).log_softmax(-1)  # (B,T,V)
        return -log_probs.gather(2, ids[:, 1:, None]).mean()

    torch.autograd.backward(loss())
    weights = [p for p in model.parameters() if p.grad is not None]
    largest = max(float(p.grad.abs().max()) for p in weights if p.grad is not None)
    off, h = 0.0, 1e-5
    with torch.no_grad():
        for p in weights:
            row, slopes = p.view(-1), p.grad.view(-1) if p.grad is not None else p.view(-1)
            at = int(torch.randint(len(row), (1,), generator=seeded(len(row))))
            kept, values = float(row[at]), []
            for step in (h, -h):
                row[at] = kept + step
                values.append(float(loss()))
            row[at] = kept
            off = max(off, abs((values[0] - values[1]) / (2 * h) - float(slopes[at])))
    return at_most(off / largest, GRADIENT, "relative")


def whole_vocabulary(_: Path) -> Outcome:
    """Every id of a large vocabulary gets its probability, and all of them sum to 1."""
    logits = 3 * torch.randn(VOCAB, generator=seeded(4))
    off, n = 0.0, VOCAB
    for temperature in (0.5, 1.0, 2.0):
        probs = np.asarray(next_token_distribution(logits, temperature=temperature), np.float64)
        off, n = max(off, abs(probs.sum() - 1)), min(n, int((probs > 0).sum()))
        exact = np.exp(log_softmax(logits.double().numpy() / temperature))
        off = max(off, float(np.abs(probs - exact).max()))
    good = off <= SUM and n == VOCAB
    measured = Fact("sum_off", {"x": off, "n": n})
    return Outcome(OK if good else FAILED, measured, Fact("sum_whole", {"limit": SUM, "n": VOCAB}))


@torch.no_grad()
def uniform(_: Path) -> Outcome:
    """A model that holds all ids equally likely loses ln V nats, in training's loss and in one by hand."""
    targets = torch.randint(VOCAB, (2, 3), generator=seeded(5))
    loss = float(cross_entropy(torch.full((2, 3, VOCAB), 0.7), targets))
    state = OK if abs(loss - math.log(VOCAB)) <= 10 * LN_V else FAILED
    return Outcome(state, Fact("nats", {"x": loss}), Fact("ln_v", {"x": math.log(VOCAB), "n": VOCAB}))


@torch.no_grad()
def shipped_loss(_: Path) -> Outcome:
    """The shipped story model on the held-out stories that its card speaks of."""
    if not (SHIPPED / JSON).is_file():
        return Outcome(WARNING, Fact("not_shipped"), Fact("shipped"))
    checkpoint = load_checkpoint(SHIPPED)
    model, report = checkpoint.model, checkpoint.info["report"]
    length, on_card = model.config.context_length, float(report["loss"])
    batch = clm_rows(story_rows(checkpoint.tokenizer, int(report["tokens"]) // length, length + 1, SEED))
    loss = total_loss(model, batch, rows_at_once=8) / batch.targets.numel()
    state = OK if abs(loss - on_card) <= ROUNDED else FAILED
    return Outcome(state, Fact("nats", {"x": loss}), Fact("on_card", {"x": on_card}))


def vocabularies() -> Iterator[Tokenizer]:
    """Bytes, characters, pieces learned just now, and those of the shipped models."""
    yield byte_tokenizer()
    yield char_tokenizer("".join(repair_text(text)[0] for text in TEXTS))
    yield train_bpe("".join(repair_text(text)[0] for text in TEXTS) * 3, 300)
    description = SHIPPED / JSON
    if description.is_file():
        yield tokenizer_from_json(json.loads(description.read_bytes())["tokenizer"])


def round_trips(_: Path) -> Outcome:
    """Text to ids and back, byte for byte; and bytes that are no text must neither raise nor change."""
    n, lost = 0, 0
    for tokenizer in vocabularies():
        for text in TEXTS:
            ids = tokenizer.encode(text)
            whole = repair_text(text)[0]
            spelled = b"".join(tokenizer.token_bytes(i) for i in ids)
            n, lost = n + 1, lost + (tokenizer.decode(ids) != whole or spelled != whole.encode())
    plain = byte_tokenizer()
    one_each = {plain.token_bytes(i): i for i in range(plain.vocab_size)}
    for data in BROKEN:
        ids = [one_each[bytes([byte])] for byte in data]
        back = plain.decode(ids)
        n, lost = n + 1, lost + (b"".join(map(plain.token_bytes, ids)) != data or "\ufffd" not in back)
    return Outcome(OK if not lost else FAILED, Fact("texts", {"n": n, "lost": lost}), Fact("none_lost"))


def true_chances(_: Path) -> Outcome:
    """A grammar of two stories, The cat sat (3 in 4) and The dog sat (1 in 4), whose chances anybody sees."""
    tokenizer = byte_tokenizer()
    oracle, ids = Oracle(Grammar(GRAMMAR), tokenizer), tokenizer.encode("The cat sat.\n")
    cat, dog = (tokenizer.encode(letter)[0] for letter in "cd")
    rows = oracle.distributions(ids)
    hidden = oracle.masked(ids, [4, 5, 6])
    floor = -float(oracle.log_probs(ids).sum())
    pairs = [
        (rows[3][cat], 0.75), (rows[3][dog], 0.25), (hidden[0][cat], 0.75), (hidden[0][dog], 0.25),
        (rows[4].max(), 1.0), (floor, -math.log(0.75)), *((row.sum(), 1.0) for row in (*rows, *hidden)),
    ]  # fmt: skip
    return at_most(max(abs(float(found) - expected) for found, expected in pairs), EXACT)


@torch.no_grad()
def other_devices(_: Path) -> Outcome:
    """Which devices there are, their memory, and whether each computes what the processor does."""
    there, ids = devices(), some_ids()
    expected, off, parts = tiny()(ids), 0.0, []
    for device in there:
        if device.id == CPU:
            continue
        try:
            found = tiny().to(device.id)(ids.to(device.id)).float().cpu()
        except RuntimeError:  # its driver, or an operation that it can't do
            return Outcome(FAILED, Fact("device_failed", {"name": device.name}), Fact("devices_agree"))
        off = max(off, difference(found, expected))
        name = "device" if device.free is None else "device_free"
        parts.append(Fact(name, {"name": device.name, "free": (device.free or 0) / 1e9, "x": off}))
    state = OK if off <= AGREE else FAILED
    n = {"n": len(there) - 1}
    return Outcome(
        state, Fact("devices", n, tuple(parts)) if parts else Fact("only_cpu"),
        Fact("within", {"limit": AGREE}) if parts else Fact("any"),
    )  # fmt: skip
