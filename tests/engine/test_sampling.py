import math
import threading

import numpy as np
import pytest
import torch

from engine.dice import cumulative_line, draw
from engine.metrics import softmax
from engine.sampling import Continuation, generate, next_logits, next_token_distribution, sampling_stages
from engine.stages import worked_out

C = [3.2, 1.1, 0.4, 2.4, -1.0]


def kept(logits, **settings):
    return np.flatnonzero(next_token_distribution(logits, **settings)).tolist()


def texts(model, prompt, n, **settings):
    return [step.id for step in generate(model, prompt, n_tokens=n, **settings)]


# -- the stages ----------------------------------------------------------------------------------------------


def test_s01_temperature_0_is_all_on_the_largest():
    assert next_token_distribution(C, temperature=0).tolist() == [1, 0, 0, 0, 0]
    assert next_token_distribution([0.5, -1.2, 3.1, 0.0], temperature=0).tolist() == [0, 0, 1, 0]
    assert next_token_distribution([1, 1, 0], temperature=0).tolist() == [
        1,
        0,
        0,
    ]  # equal ones: the lowest id


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [
        (0.5, [0.81913, 0.01228, 0.00303, 0.16538, 0.00018]),
        (1.0, [0.60695, 0.07432, 0.03691, 0.27272, 0.00910]),
        (2.0, [0.41853, 0.14646, 0.10321, 0.28055, 0.05125]),
    ],
)
def test_s02_temperature_divides_the_logits(temperature, expected):
    assert next_token_distribution(C, temperature=temperature) == pytest.approx(expected, abs=1e-5)


def test_s02_a_high_temperature_flattens_and_never_reorders():
    hot = next_token_distribution(C, temperature=100)
    assert (round(hot.min(), 4), round(hot.max(), 4)) == (0.1956, 0.2040)
    assert np.argsort(hot).tolist() == np.argsort(C).tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("top_p", [0.0, 1e-8, 1e-4])
def test_s04_top_p_near_0_keeps_one(dtype, top_p):
    assert kept(torch.tensor(C, dtype=dtype), top_p=top_p) == [0]


def test_s05_top_p_1_is_the_plain_softmax():
    logits = np.random.default_rng(1).normal(size=32_000) * 4
    assert np.array_equal(next_token_distribution(logits, top_p=1.0), softmax(logits))
    assert len(kept(logits, top_p=0.9999999)) > 1000


def test_s06_a_nucleus_just_below_and_above_a_sum():
    logits = np.log([0.3, 0.1, 0.1, 0.5])
    assert kept(logits, top_p=0.79) == [0, 3]
    assert kept(logits, top_p=0.81) == [0, 1, 3]  # of equal ones the lowest id


def test_s07_top_k_outside_the_vocabulary():
    plain = softmax(C)
    for k in (5, 6, 0, None):
        assert next_token_distribution(C, top_k=k) == pytest.approx(plain)
    with pytest.raises(ValueError, match="top_k.*-1"):
        next_token_distribution(C, top_k=-1)
    assert next_token_distribution([2.0], top_k=50, top_p=0.9, min_p=0.1).tolist() == [1.0]
    assert kept([1.0, 2.0, 2.0, 2.0], top_k=2) == [1, 2]


def test_s09_temperature_comes_before_top_p():
    assert next_token_distribution([3, 2, 1], temperature=0.5, top_p=0.8).tolist() == [1, 0, 0]
    assert kept(C, temperature=0.5, top_p=0.8) == [0]
    assert next_token_distribution(C, top_p=0.8)[[0, 3]] == pytest.approx([0.6900, 0.3100], abs=5e-5)
    hot = next_token_distribution(C, temperature=2, top_p=0.8)
    assert hot[[0, 3, 1]] == pytest.approx([0.4950, 0.3318, 0.1732], abs=5e-5)


def test_top_k_comes_before_top_p():
    # after top-k 2 the shares are .6900 and .3100, so 0.65 keeps one; of the full .6069 and .2727, two
    assert kept(C, top_k=2, top_p=0.65) == [0]
    assert kept(C, top_p=0.65) == [0, 3]


def test_min_p_compares_with_the_likeliest():
    logits = np.log([0.5, 0.3, 0.1, 0.06, 0.04])
    assert kept(logits, min_p=0.19) == [0, 1, 2]
    assert kept(logits, min_p=1.0) == [0] and kept(logits, min_p=0.0) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.0},
        {"temperature": 0.7, "top_k": 40},
        {"top_k": 100, "top_p": 0.9, "min_p": 0.02},
    ],
)
def test_the_distribution_is_the_last_stage_and_masses_add_up(settings):
    logits = np.random.default_rng(2).normal(size=500) * 2
    stages = sampling_stages(logits, **settings)
    assert np.array_equal(next_token_distribution(logits, **settings), stages[-1].probs)
    assert stages[0].probs == pytest.approx(softmax(logits))
    for before, after in zip([stages[0], *stages[1:]], stages[1:], strict=False):
        assert after.probs.sum() == pytest.approx(1.0)
        if after.name != "temperature":
            removed = before.probs[after.probs == 0].sum()
            assert after.removed_mass == pytest.approx(removed, abs=1e-12)
            left = after.probs > 0
            assert after.probs[left] * (1 - removed) == pytest.approx(before.probs[left])
    names = [
        "softmax",
        "temperature",
        *(n for n in ("top-k", "top-p", "min-p") if n.replace("-", "_") in settings),
    ]
    assert [stage.name for stage in stages] == names


@pytest.mark.parametrize(
    "logits", [[math.nan] * 3, [-math.inf] * 3, [math.inf, 0, 0], [0, math.nan, 0]], ids=str
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_s11_logits_that_are_not_finite_are_refused(logits, temperature):
    with pytest.raises(ValueError, match="not finite"):
        next_token_distribution(logits, temperature=temperature)


def test_a_logit_of_minus_infinity_is_a_token_that_cannot_come():
    assert next_token_distribution([0.0, -math.inf, 0.0]).tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("temperature", [1e-5, 1e-300, 5e-324])
def test_s16_tiny_temperatures_do_not_overflow(temperature):
    assert next_token_distribution([5.0, -5.0], temperature=temperature).tolist() == [1.0, 0.0]
    assert next_token_distribution(torch.tensor([5.0, -5.0]).half(), temperature=temperature).tolist() == [
        1,
        0,
    ]
    stages = sampling_stages([5.0, -5.0], temperature=temperature)
    assert worked_out(np.array([5.0, -5.0]), stages, 0, temperature).final == 1.0


@pytest.mark.parametrize("shape", [(0,), (2, 3), ()])
def test_anything_but_one_row_of_logits_is_refused(shape):
    with pytest.raises(ValueError, match="One row"):
        sampling_stages(np.zeros(shape))


# -- drawing -------------------------------------------------------------------------------------------------


def test_s12_a_token_of_probability_0_is_never_drawn():
    dice = np.random.default_rng(0)
    edges = [0.0, np.nextafter(1, 0), 0.5, np.nextafter(0.5, 0)]
    for probs in (
        [0, 1],
        [0, 0.5, 0, 0.5, 0],
        [0.5, 0.5, 0],
        softmax(dice.normal(size=1000)) * ([0, 1] * 500) * 1.9,
    ):
        possible = set(np.flatnonzero(probs).tolist())
        assert {draw(np.array(probs, float), u) for u in (*edges, *dice.random(5000))} <= possible


def test_draws_follow_the_probabilities():
    probs, n = np.array([0.5, 0.0, 0.3, 0.2]), 40_000
    counts = np.bincount([draw(probs, u) for u in np.random.default_rng(3).random(n)], minlength=4)
    for count, p in zip(counts, probs, strict=True):
        assert abs(count - n * p) <= 6 * math.sqrt(n * p * (1 - p))  # false alarm: 2 in a thousand million


def test_the_line_shows_where_a_number_falls():
    probs = softmax(np.random.default_rng(5).normal(size=50) * 3)
    line = cumulative_line(probs, smallest=0.0)
    assert line[0].low == 0 and line[-1].high == pytest.approx(1)
    for u in np.random.default_rng(6).random(500):
        (piece,) = (s for s in line if s.low <= u < s.high)
        assert piece.id == draw(probs, u)


# -- continuing a text ---------------------------------------------------------------------------------------


def test_fewer_than_0_tokens_are_refused(small_model):
    model = small_model()
    assert list(generate(model, [1, 2], n_tokens=0)) == []
    with pytest.raises(ValueError, match="-1 tokens can't be written"):
        next(generate(model, [1, 2], n_tokens=-1))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
def test_k01_cached_and_uncached_texts_are_equal_far_past_the_context(small_model, positions):
    model = small_model(context_length=12, positions=positions)
    for settings in ({"temperature": 0}, {"temperature": 1.5, "seed": 4}):
        cached, plain = (
            list(generate(model, [1, 2, 3], n_tokens=36, use_cache=c, **settings)) for c in (True, False)
        )
        assert [s.id for s in cached] == [s.id for s in plain]
        for one, other in zip(cached, plain, strict=True):
            assert one.probs == pytest.approx(other.probs, abs=1e-4)


@torch.no_grad()
def test_k03_each_step_is_a_forward_over_the_last_tokens(small_model):
    model, ids = small_model(context_length=8), list(range(6))
    for step in generate(model, ids, n_tokens=24, seed=1):
        logits = model(torch.tensor([ids[-8:]]))[0, -1]
        assert step.model_probs == pytest.approx(softmax(logits.numpy()), abs=1e-5)
        assert step.context == min(len(ids), 8)
        assert step.log_prob == pytest.approx(math.log(step.model_probs[step.id]))
        ids.append(step.id)


@pytest.mark.parametrize("n", [32, 33, 500])
def test_k03_of_a_long_prompt_the_last_tokens_count(small_model, n):
    model = small_model(context_length=32)
    prompt = torch.randint(256, (n,), generator=torch.Generator().manual_seed(n)).tolist()
    assert texts(model, prompt, 5, temperature=0) == texts(model, prompt[-32:], 5, temperature=0)
    assert next(generate(model, prompt, n_tokens=1, seed=0)).context == 32


def test_s01_greedy_takes_the_largest_logit_every_time(small_model):
    model, ids = small_model(), [5, 6, 7]
    for step in generate(model, ids, n_tokens=5, temperature=0):
        assert step.id == int(next_logits(model, ids).argmax()) and step.probs[step.id] == 1
        ids.append(step.id)


def test_a_seed_repeats_and_the_global_dice_are_left_alone(small_model, untouched_dice):
    model = small_model()
    one, same, other = (texts(model, [1], 20, seed=s) for s in (7, 7, 8))
    assert one == same != other
    assert texts(model, [1], 20) != texts(model, [1], 20)  # without a seed: fresh each time


def test_skipping_numbers_goes_on_where_a_text_stopped(small_model):
    model = small_model()
    whole = texts(model, [1, 2], 8, seed=3)
    assert whole[3:] == texts(model, [1, 2, *whole[:3]], 5, seed=3, skip=3)


def test_s12_cut_tokens_never_come(small_model):
    for step in generate(small_model(), [1], n_tokens=200, top_k=2, seed=0):
        assert step.id in np.argsort(-step.model_probs)[:2] and (step.probs > 0).sum() == 2


def test_logits_may_be_asked_for_twice(small_model):
    text = Continuation(small_model(), [1, 2, 3])
    assert torch.equal(text.logits(), text.logits())


def test_a_prompt_may_be_a_tensor(small_model):
    assert texts(small_model(), torch.tensor([1, 2]), 3, seed=0) == texts(small_model(), [1, 2], 3, seed=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 2}, "top_p"),
        ({"min_p": -1}, "min_p"),
    ],
)
def test_wrong_settings_are_refused_by_the_call_itself(small_model, settings, message):
    with pytest.raises(ValueError, match=message):
        generate(small_model(), [1], n_tokens=3, **settings)


def test_an_empty_prompt_and_a_masked_model_are_refused(small_model):
    with pytest.raises(ValueError, match="no token to continue"):
        generate(small_model(), [], n_tokens=3)
    with pytest.raises(ValueError, match="masked model"):
        generate(small_model(objective="mlm"), [1], n_tokens=3)


def test_s11_a_model_with_one_nan_weight_stops_with_a_sentence(small_model):
    model = small_model()
    with torch.no_grad():
        model.blocks[1].mlp.down.weight[0, 0] = math.nan
    with pytest.raises(ValueError, match="did its training diverge"):
        list(generate(model, [1, 2], n_tokens=3))


def test_s16_a_model_in_half_precision_generates(small_model):
    model = small_model(positions="rotary").to(torch.bfloat16)
    assert len(texts(model, [1, 2], 20, seed=0)) == 20


def test_r09_generation_and_training_do_not_disturb_each_other(small_model):
    model = small_model(dropout=0.5).train()
    ids = torch.arange(16)[None]

    def learn(results):
        dice = torch.Generator().manual_seed(2)
        results.extend(model(ids, dropout=dice).sum().item() for _ in range(60))

    alone, beside, written = [], [], []
    learn(alone)
    quiet = texts(model, [1, 2, 3], 50, temperature=0)
    worker = threading.Thread(target=learn, args=(beside,))
    worker.start()
    written = [texts(model, [1, 2, 3], 50, temperature=0) for _ in range(2)]
    worker.join()
    assert written == [quiet, quiet] and beside == alone and model.training


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_s14_a_seed_works_on_a_gpu(small_model):
    model = small_model().to("cuda")
    assert texts(model, [1, 2], 20, seed=42) == texts(model, [1, 2], 20, seed=42)
