"""DPO: its loss by hand, its gradient, its reference, and preferences from the story grammar."""

import math

import pytest
import torch

from engine.aims import PreferencesAim, reference_of
from engine.config import TrainConfig
from engine.framing import framing_for
from engine.metrics import IGNORED, log_softmax
from engine.preferences import (
    Preference,
    answer_log_probs,
    dpo_loss,
    encode_preferences,
    margins,
    read_preferences,
    story_preferences,
    wanted,
)
from engine.tokenizers import byte_tokenizer
from engine.training import EvalEvent, StepEvent, train
from tests.engine.conftest import rough
from tests.engine.small_training import Threads, settings, tiny, together

PLAIN = framing_for(byte_tokenizer())
SOME = [Preference(p, f"{p}!", f"{p}?") for p in ("ab", "cd", "efg", "h")]
MORE = [Preference(a + b, a + "!", b + "?") for a in "abcdef" for b in "ghijkl"]


def small():
    return rough(tiny(vocab=256, context_length=16))


def dpo(**changes):
    return settings(**{"aim": "preferences", "beta": 0.5, "batch_size": 4, "weight_decay": 0.0, **changes})


def test_the_loss_by_hand():
    # margins 0.1 · ((-1 + 3) - (-2 + 1)) = 0.3 and 0.1 · ((-5 + 1) - (-4 + 4)) = -0.4
    chosen, rejected = torch.tensor([-1.0, -5.0]), torch.tensor([-2.0, -4.0])
    reference = torch.tensor([-3.0, -1.0]), torch.tensor([-1.0, -4.0])
    assert margins(chosen, rejected, *reference, 0.1).tolist() == pytest.approx([0.3, -0.4])
    by_hand = (math.log(1 + math.exp(-0.3)) + math.log(1 + math.exp(0.4))) / 2
    assert float(dpo_loss(chosen, rejected, *reference, 0.1)) == pytest.approx(by_hand, abs=1e-7)


def test_at_its_reference_the_loss_is_ln_2_whatever_beta():
    one, other = torch.tensor([-3.0, -90.0]), torch.tensor([-70.0, -1.0])
    for beta in (0.01, 0.1, 5.0):
        assert float(dpo_loss(one, other, one, other, beta)) == pytest.approx(math.log(2), abs=1e-7)


def test_the_gradient_is_that_of_the_formula():
    """Rafailov et al. 2023, §4: -β σ(-margin) on the wanted answer, + on the other (and a mean of N)."""
    dice = torch.Generator().manual_seed(4)
    policy = torch.randn(2, 5, generator=dice, dtype=torch.float64).requires_grad_(True)
    reference = torch.randn(2, 5, generator=dice, dtype=torch.float64)
    dpo_loss(policy[0], policy[1], *reference, 0.3).backward()
    margin = 0.3 * ((policy[0] - reference[0]) - (policy[1] - reference[1])).detach()
    expected = -0.3 * torch.sigmoid(-margin) / 5
    torch.testing.assert_close(policy.grad, torch.stack((expected, -expected)))


def test_far_margins_stay_finite():
    far, zero = torch.tensor([1e4]), torch.zeros(1)
    assert float(dpo_loss(far, zero, zero, zero, 1.0)) == 0.0
    assert float(dpo_loss(zero, far, zero, zero, 1.0)) == pytest.approx(1e4)


@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
def test_beta_must_be_a_number_above_0(beta):
    one = torch.zeros(1)
    with pytest.raises(ValueError, match="beta must be"):
        dpo_loss(one, one, one, one, beta)
    with pytest.raises(ValueError, match="beta must be"):
        TrainConfig(beta=beta)


def test_the_probability_of_an_answer_is_the_product_over_its_tokens(small_model):
    model = small_model(vocab_size=256)
    rows = encode_preferences([Preference("ab", "xyz", "w")], PLAIN, 16)
    batch = rows.batch([0], torch.zeros(1, 2))
    with torch.no_grad():
        found = answer_log_probs(model(batch.inputs[0]), batch.targets[0])
        for k, text in enumerate((b"ab\nxyz\n", b"ab\nw\n")):
            log_probs = log_softmax(model(torch.tensor([list(text)]))[0].numpy())
            by_hand = sum(log_probs[i - 1, text[i]] for i in range(3, len(text)))
            assert float(found[k]) == pytest.approx(by_hand, abs=1e-4)


def test_both_answers_have_the_same_prompt_before_them_also_when_it_is_cut():
    rows = encode_preferences([Preference("abcdef", "x", "xyz")], PLAIN, 6)
    assert bytes(rows.chosen[0].tolist()) == b"ef\nx\n" and bytes(rows.rejected[0].tolist()) == b"ef\nxyz\n"
    assert rows.starts == [3] and rows.cut == 1
    batch = rows.batch([0], torch.zeros(1, 2))
    assert batch.targets[0, 0].tolist() == [IGNORED, IGNORED, ord("x"), ord("\n"), IGNORED, IGNORED]
    with pytest.raises(ValueError, match="line 9 doesn't fit"):
        encode_preferences([Preference("a", "b", "vwxyz", 9)], PLAIN, 5)


def test_files_of_preferences():
    text = '{"prompt": "a", "chosen": "b", "rejected": "c"}\n'
    assert read_preferences(text) == read_preferences("prompt,chosen,rejected\na,b,c\n")
    with pytest.raises(ValueError, match="line 2, both answers are the same"):
        read_preferences(text + text.replace('"c"', '"b"'))
    with pytest.raises(ValueError, match="has no “rejected”"):
        read_preferences('{"prompt": "a", "chosen": "b"}')


# ---- in training


def test_before_the_first_step_loss_margin_and_accuracy_are_those_of_no_knowledge():
    model = small()
    rows = encode_preferences(MORE, PLAIN, 16)
    config = dpo(eval_rows=30)
    first = next(train(model, [], [], config, aim=PreferencesAim(model, rows, rows, config)))
    assert isinstance(first, EvalEvent)
    assert first.val_loss == pytest.approx(math.log(2), abs=1e-6)
    assert first.train_loss == pytest.approx(math.log(2), abs=1e-6)
    assert first.margin == pytest.approx(0.0, abs=1e-5)
    assert first.perplexity is None and first.bits_per_byte is None


def test_the_gradient_of_a_step_is_autograds_of_the_formula_by_hand():
    model = small()
    rows = encode_preferences(SOME, PLAIN, 16)
    start = reference_of(model, rows, dpo())
    with torch.no_grad():  # away from the start, where all margins are 0
        for p in model.parameters():
            p.mul_(1.1)
    config = dpo(batch_size=3)
    training = train(
        model, [], [], config, aim=PreferencesAim(model, rows, rows, config, reference=(start, start))
    )
    batch = training.draw()
    loss, _ = training.gradients(batch)
    found = [p.grad.clone() for p in model.parameters()]
    training.close()

    total = 0.0
    for inputs, targets, reference in zip(*batch, strict=True):
        sums = []
        for row, wanted_ids in zip(inputs, targets, strict=True):
            log_probs = torch.log_softmax(model(row[None])[0], -1)
            at = [i for i, t in enumerate(wanted_ids.tolist()) if t != IGNORED]
            sums.append(sum(log_probs[i, wanted_ids[i]] for i in at))
        margin = 0.5 * ((sums[0] - reference[0]) - (sums[1] - reference[1]))
        total = total - torch.log(torch.sigmoid(margin)) / 3
    assert loss == pytest.approx(total.item(), rel=1e-5)
    for ours, theirs in zip(found, torch.autograd.grad(total, list(model.parameters())), strict=True):
        torch.testing.assert_close(ours, theirs.to(ours), rtol=1e-3, atol=1e-5)


def test_training_moves_the_margins_the_right_way_and_the_reference_stays():
    model = small()
    rows = encode_preferences(MORE[::2], PLAIN, 16)
    held_out = encode_preferences(MORE[1::2], PLAIN, 16)
    config = dpo(steps=40, learning_rate=1e-3, eval_every=40)
    reference = reference_of(model, rows, config), reference_of(model, held_out, config)
    kept = reference[0].clone()
    aim = PreferencesAim(model, rows, held_out, config, reference=reference)
    events = list(train(model, [], [], config, aim=aim))
    first, last = (e for e in events if isinstance(e, EvalEvent))
    assert torch.equal(reference[0], kept)
    assert last.val_loss < 0.2 < first.val_loss and last.margin > 1 and last.accuracy > 0.9
    assert all(e.tokens == 2 * 4 * rows.length for e in events if isinstance(e, StepEvent))


def test_several_processes_learn_the_same():
    def run(processes):
        model = small()
        rows = encode_preferences(MORE, PLAIN, 16)
        config = dpo(steps=6, batch_size=3, eval_every=3)
        aim = PreferencesAim(model, rows, rows, config)
        events = list(train(model, [], [], config, aim=aim, processes=processes))
        return [(e.val_loss, e.margin, e.accuracy) for e in events if isinstance(e, EvalEvent)]

    alone = run(Threads())
    for events in together(2, run)[0]:
        for ours, theirs in zip(events, alone, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-4)


# ---- from the grammar


def test_story_preferences_are_about_the_prompts_hero_and_only_the_chosen_ones_are_wanted():
    found = story_preferences(2, 40)
    for one in found:
        hero = one.prompt.removeprefix("Begin a story about ").partition(" ")[2].rstrip(".")
        assert hero in one.chosen and hero in one.rejected
        assert wanted(one.chosen) and not wanted(one.rejected)
    assert len({one.chosen for one in found}) > 30
    assert not {p.prompt for p in found} & {p.prompt for p in story_preferences(2, 20, held_out=True)}
