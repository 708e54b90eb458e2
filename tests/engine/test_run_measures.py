"""What is measured beside the loss: counting models by their formula, further texts by another way."""

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from engine.checkpoints import load_checkpoint
from engine.config import TrainConfig
from engine.evaluation import fixed_batch
from engine.events import StepEvent
from engine.metrics import IGNORED, score
from engine.model import Transformer
from engine.run_log import RunLog
from engine.run_measures import ALSO_ROWS, rows_of
from engine.tokenizers import char_tokenizer
from tests.engine.small_runs import TEXT, of_kind, spec, train_here


def test_the_baselines_are_written_once_by_their_formula(store):
    run_id = store.create(spec(steps=20), "me")
    train_here(store, run_id)
    run = store.root / run_id / "run.json"
    run.write_text(run.read_text().replace('"steps": 20', '"steps": 30'))
    train_here(store, run_id)  # resumed: not again
    records = of_kind(store.history(run_id), "baseline")
    assert len(records) == 1
    found = records[0]
    assert found["step"] == 10  # after the first evaluations, so that Start shows something at once
    n_ids = store.info(run_id).model.vocab_size
    assert found["uniform"] == pytest.approx(math.log(n_ids))
    assert found["uniform"] > found["unigram"] > found["bigram"] > found["trigram"] > 0
    assert found["bits_per_byte"]["uniform"] == pytest.approx(math.log2(n_ids))  # a character is a byte here
    for name in ("unigram", "bigram", "trigram"):
        assert found["bits_per_byte"][name] == pytest.approx(found[name] / math.log(2))


def test_the_unigram_of_two_equally_frequent_letters(store):
    letters = "ab" * 400
    one = spec(text=letters, tokenizer=char_tokenizer(letters), steps=2, eval_every=1)
    run_id = store.create(one, "me")
    train_here(store, run_id)
    found = of_kind(store.history(run_id), "baseline")[0]
    assert found["uniform"] == found["unigram"] == pytest.approx(math.log(2))
    assert found["bigram"] < 0.01  # each letter names the next


def test_a_masked_run_has_two_baselines_and_no_bits_per_byte(store):
    run_id = store.create(spec(objective="mlm"), "me")
    train_here(store, run_id)
    found = of_kind(store.history(run_id), "baseline")[0]
    assert set(found) == {"kind", "step", "uniform", "unigram", "bits_per_byte"}
    assert found["bits_per_byte"] is None


def test_without_validation_there_is_nothing_to_compare(store):
    run_id = store.create(spec(val_share=0.0), "me")
    train_here(store, run_id)
    assert of_kind(store.history(run_id), "baseline") == []


# ---- further texts


def test_a_short_text_is_scored_whole_and_a_long_one_in_part(store):
    short, long = TEXT[5:105], "the dog sat on the mat.\n" * 400
    run_id = store.create(replace(spec(), also_scored={"short": short, "long": long}), "me")
    info = train_here(store, run_id)
    assert info.also_scored == ("short", "long")
    evals = of_kind(store.history(run_id), "eval")
    assert [set(r["also"]) for r in evals] == [{"short", "long"}] * 4
    assert evals[-1]["also"]["short"] < evals[0]["also"]["short"]
    checkpoint = load_checkpoint(store.latest_checkpoint(run_id))
    model, tokenizer, length = checkpoint.model.eval(), checkpoint.tokenizer, info.model.context_length
    ids = tokenizer.encode(short)
    parts = [ids[at : at + length + 1] for at in range(0, len(ids) - 1, length)]
    nats = sum(-float(score(model, part).log_probs.sum()) for part in parts)  # another way to the same number
    assert evals[-1]["also"]["short"] == pytest.approx(nats / (len(ids) - 1), rel=1e-5)
    rows = fixed_batch(
        model, torch.tensor(tokenizer.encode(long)), None, 0, replace(info.train, eval_rows=ALSO_ROWS)
    )[1]
    logits = model(rows.inputs)
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows.targets.flatten())
    assert evals[-1]["also"]["long"] == pytest.approx(float(expected.detach()), rel=1e-5)


@pytest.mark.parametrize("n", [2, 3, 16, 17, 18, 33, 40, 16 * ALSO_ROWS + 1])
def test_every_token_but_the_first_is_scored_once(n):
    one = spec()
    ids = torch.arange(n) % 7
    batches = rows_of(ids, one.tokenizer, Transformer(one.model), one.train)
    assert torch.cat([b.targets.flatten() for b in batches]).tolist() == ids[1:].tolist()
    assert torch.cat([b.inputs.flatten() for b in batches]).tolist() == ids[:-1].tolist()


def test_the_same_tokens_of_a_further_text_are_hidden_each_time():
    one = spec(objective="mlm", mask_prob=0.5)
    model, ids = Transformer(one.model), torch.arange(40) % 7
    first, second = (rows_of(ids, one.tokenizer, model, one.train) for _ in range(2))
    assert all(torch.equal(a.inputs, b.inputs) for a, b in zip(first, second, strict=True))
    assert sum(b.inputs.numel() for b in first) == 40
    hidden = torch.cat([b.targets.flatten() for b in first]) != IGNORED
    assert 8 < int(hidden.sum()) < 32
    inputs = torch.cat([b.inputs.flatten() for b in first])
    assert Counter((inputs == one.tokenizer.mask_id).tolist()) == Counter(hidden.tolist())


def test_of_a_tiny_masked_text_one_token_is_hidden(store):
    one = replace(spec(objective="mlm", mask_prob=0.01), also_scored={"tiny": "the"})
    run_id = store.create(one, "me")
    train_here(store, run_id)
    assert all(0 < r["also"]["tiny"] < 10 for r in of_kind(store.history(run_id), "eval"))


def test_further_texts_change_nothing_else(store):
    plain, more = spec(), replace(spec(), also_scored={"x": TEXT[:50]})
    ids = [store.create(one, "me") for one in (plain, more)]
    for run_id in ids:
        train_here(store, run_id)
    losses = [[r["loss"] for r in of_kind(store.history(i), "step")] for i in ids]
    assert losses[0] == losses[1]


def test_a_further_text_that_can_not_be_scored_is_refused(store):
    with pytest.raises(ValueError, match="'x' is to be scored, so it needs at least 2 tokens"):
        store.create(replace(spec(), also_scored={"x": "t"}), "me")
    with pytest.raises(ValueError, match="without 'X'"):
        store.create(replace(spec(), also_scored={"x": "XX"}), "me")
    assert store.list() == []


def test_a_slow_first_step_does_not_spoil_the_time_left(tmp_path):
    """Step 1 takes 3 s, as much is loaded only then; each later one 0.1 s: 97 more are 9.7 s."""
    told: dict[str, float] = {}
    status = SimpleNamespace(set=lambda **entries: told.update(entries))
    log = RunLog(tmp_path, status, TrainConfig(steps=100), lambda text: None)
    for step, seconds in ((1, 3.0), (2, 0.1), (3, 0.1)):
        log.step(StepEvent(step, 1.0, 1e-3, 1.0, 50, seconds))
    log.metrics.close()
    assert told["eta_s"] == pytest.approx(9.7) and told["tokens_per_second"] == pytest.approx(500)
