"""Runs side by side: what differs, what may share an axis, bands over seeds, and what a seed changes."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine import run_sets, seed_spread
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, own_text
from engine.repeats import more_seeds, spec_of
from engine.run_sets import Named, band, differences, furthest, same_but_seed, shared_axis
from engine.runs import RunInfo, RunSpec, RunStore
from engine.seed_spread import contrast, spread
from engine.tokenizers import byte_tokenizer, char_tokenizer
from tests.pages.made_runs import MINE, make_run

TEXT = "The fox had a hat and the hat had a hole. " * 20


def made(store: RunStore, text: Corpus | str = TEXT, tokenizer=None, objective="clm", **train) -> RunInfo:
    corpus = own_text(text, name="a text") if isinstance(text, str) else text
    return store.info(make_run(store.home, corpus=corpus, tokenizer=tokenizer, objective=objective, **train))


@pytest.fixture
def store(loupe_home: Path) -> RunStore:
    return RunStore(loupe_home)


def names(rows) -> list[tuple[str, str]]:
    return [(row.part, row.name) for row in rows]


# ---- what differs


def test_only_what_differs_is_a_difference(store: RunStore) -> None:
    runs = [run_sets.settings(made(store, learning_rate=rate)) for rate in (1e-3, 3e-3)]
    (row,) = differences(runs)
    assert (row.part, row.name, row.values) == ("training", "learning_rate", (1e-3, 3e-3))
    same = run_sets.alike(runs)
    assert same["training", "steps"] == 20 and ("training", "learning_rate") not in same


def test_differences_keep_the_order_of_the_runs_and_one_odd_run_is_enough(store: RunStore) -> None:
    runs = [run_sets.settings(made(store, seed=seed)) for seed in (3, 3, 5, 3)]
    (row,) = differences(runs)
    assert row.values == (3, 3, 5, 3)


def test_what_only_says_when_to_look_is_no_difference(store: RunStore) -> None:
    runs = [made(store, eval_every=5, checkpoint_every=10), made(store, eval_every=7, moments=9)]
    assert differences([run_sets.settings(run) for run in runs]) == []


def test_a_width_written_out_is_the_width_it_would_have_anyway(store: RunStore) -> None:
    info = made(store)
    written = replace(info, model=replace(info.model, d_ff=32, n_kv_head=1))  # 4 · 8, and its 1 head
    wider = replace(info, model=replace(info.model, d_ff=40))
    assert differences([run_sets.settings(run) for run in (info, written)]) == []
    assert names(differences([run_sets.settings(run) for run in (info, wider)])) == [("model", "d_ff")]


def test_texts_of_one_name_differ_by_what_they_say_and_one_text_under_two_names_does_not(
    store: RunStore,
) -> None:
    one, other = made(store, own_text(TEXT, name="x")), made(store, own_text(TEXT + "More.", name="x"))
    renamed = made(store, own_text(TEXT, name="y"))
    assert names(differences([run_sets.settings(r) for r in (one, other)])) == [("text", "text")]
    assert differences([run_sets.settings(r) for r in (one, renamed)]) == []


def test_the_mask_is_not_counted_as_a_token_of_the_vocabulary(store: RunStore) -> None:
    rows = differences([run_sets.settings(made(store, objective=o)) for o in ("clm", "mlm")])
    assert names(rows) == [("model", "objective"), ("training", "mask_prob")]
    assert rows[1].values == (None, 0.15)


def test_runs_that_repeat_each_other(store: RunStore) -> None:
    infos = [
        made(store, seed=0),
        made(store, seed=0, learning_rate=1e-2),
        made(store, seed=7),
        made(store, seed=1, learning_rate=1e-2),
        made(store, seed=1, steps=21),
    ]
    assert same_but_seed([run_sets.settings(info) for info in infos]) == [[0, 2], [1, 3], [4]]


def test_the_same_run_twice_does_not_count_twice(store: RunStore) -> None:
    runs = [run_sets.settings(made(store, seed=seed)) for seed in (0, 1, 0, 2, 1)]
    assert same_but_seed(runs) == [[0, 1, 3], [2, 4]]


# ---- what may share an axis


def setting(objective="clm", vocabulary="v", text="t", mask_prob=None) -> dict:
    return {
        ("model", "objective"): objective,
        ("tokenizer", "tokenizer"): Named("bpe", vocabulary),
        run_sets.CHECKED_ON: Named("", text),
        ("training", "mask_prob"): mask_prob,
    }


def test_p10_causal_and_masked_losses_never_share_an_axis() -> None:
    for quantity in ("val_loss", "loss", "bits_per_byte"):
        with pytest.raises(ValueError, match="never share an axis"):
            shared_axis([setting("clm"), setting("mlm", mask_prob=0.15)], quantity)


def test_alike_runs_share_any_axis() -> None:
    for quantity in ("val_loss", "loss", "bits_per_byte"):
        shared = shared_axis([setting(), setting(), setting()], quantity)
        assert (shared.quantity, shared.kept, shared.reasons) == (quantity, (0, 1, 2), ())


def test_another_vocabulary_moves_to_bits_per_byte_with_one_sentence() -> None:
    shared = shared_axis([setting(), setting(vocabulary="w")], "val_loss")
    assert shared.quantity == "bits_per_byte" and shared.kept == (0, 1)
    assert len(shared.reasons) == 1 and "bits per byte" in shared.reasons[0]
    assert shared_axis([setting(), setting(vocabulary="w")], "bits_per_byte").reasons == ()


def test_another_text_is_said_even_in_bits_per_byte() -> None:
    shared = shared_axis([setting(), setting(text="u")], "bits_per_byte")
    assert shared.quantity == "bits_per_byte" and "different texts" in shared.reasons[0]
    assert shared_axis([setting(), setting(text="u")], "loss").quantity == "bits_per_byte"


def test_masked_runs_have_no_bits_per_byte_and_the_odd_ones_are_left_out() -> None:
    runs = [
        setting("mlm", mask_prob=0.15),
        setting("mlm", "w", mask_prob=0.15),
        setting("mlm", mask_prob=0.4),
    ]
    shared = shared_axis(runs, "bits_per_byte")
    assert shared.quantity == "val_loss" and shared.kept == (0, 2)
    assert len(shared.reasons) == 3 and shared.reasons[1].startswith("1 left out")


def test_more_text_to_learn_from_is_still_checked_on_the_same_text(store: RunStore) -> None:
    line = "A fox found a hat.\n"
    few, many = (made(store, Corpus("s", "stories", line * n, line * 40)) for n in (100, 200))
    shared = shared_axis([run_sets.settings(few), run_sets.settings(many)], "val_loss")
    assert (shared.quantity, shared.reasons) == ("val_loss", ())


# ---- lines and bands


def test_axes() -> None:
    records = [{"kind": "step", "step": n, "seconds": n / 2, "loss": 1.0} for n in (10, 20)]
    records.insert(0, {"kind": "eval", "step": 0, "seconds": 0.0})
    assert run_sets.along(records, [0, 5, 20], "step", 64).tolist() == [0, 5, 20]
    assert run_sets.along(records, [0, 5, 20], "tokens", 64).tolist() == [0, 320, 1280]
    assert run_sets.along(records, [0, 5, 20], "seconds", 64).tolist() == [0, 2.5, 10]
    assert np.isnan(run_sets.along([], [0, 5], "seconds", 64)).all()
    with pytest.raises(ValueError, match="axis must be"):
        run_sets.along(records, [0], "hours", 64)


def test_a_band_is_mean_and_extremes_and_sample_deviation() -> None:
    x = np.array([0.0, 10, 20])
    found = band([(x, np.array(y)) for y in ([6.0, 4, 1], [6.0, 5, 2], [6.0, 6, 6])])
    assert found is not None and found.n == 3
    assert found.x.tolist() == [0, 10, 20]
    assert found.mean == pytest.approx([6, 5, 3])
    assert found.low.tolist() == [6, 4, 1] and found.high.tolist() == [6, 6, 6]
    # deviations from 3 are -2, -1, 3: (4 + 1 + 9) / 2 = 7
    assert found.std == pytest.approx([0, 1, math.sqrt(7)])


def test_a_band_ends_with_the_shortest_run_and_reads_between_points() -> None:
    found = band(
        [(np.array([0.0, 10, 20]), np.array([6.0, 4, 2])), (np.array([5.0, 10, 15]), np.array([9.0, 8, 7]))]
    )
    assert found is not None
    assert found.x.tolist() == [5, 10, 15]  # only what both cover
    assert found.low.tolist() == [5, 4, 3]  # halfway between 6 and 4, and between 4 and 2
    assert found.high.tolist() == [9, 8, 7]


def test_a_gap_in_one_run_is_a_gap_in_the_band() -> None:
    x = np.array([0.0, 1, 2, 3])
    found = band([(x, np.array([4.0, math.inf, 2, 1])), (x, np.array([4.0, 3, 2, 1]))])
    assert found is not None
    assert np.isnan(found.mean).tolist() == [False, True, False, False]
    assert np.isnan(found.std[1]) and np.isnan(found.low[1])


def test_no_band_of_one_line_or_of_lines_that_never_meet() -> None:
    x = np.array([0.0, 1])
    assert band([(x, x)]) is None and band([]) is None
    assert band([(x, x), (x + 5, x)]) is None
    assert band([(x, x), (np.array([]), np.array([]))]) is None


def test_a_run_that_has_just_begun_does_not_cut_the_band() -> None:
    def line(n: int) -> run_sets.Line:
        return np.arange(n) * 1.0, np.ones(n)

    assert furthest([line(9), line(2), line(9), line(0)]) == [0, 2]
    assert furthest([line(0), line(0)]) == [] and furthest([]) == []


@pytest.mark.parametrize("seed", range(5))
def test_every_run_lies_within_its_band(seed: int) -> None:
    draw = np.random.default_rng(seed)
    lines = [(np.unique(draw.integers(0, 100, 40)).astype(float),) for _ in range(4)]
    lines = [(x, draw.normal(size=len(x))) for (x,) in lines]
    found = band(lines)
    assert found is not None and (found.low <= found.mean).all() and (found.mean <= found.high).all()
    for x, y in lines:
        inside = np.isin(x, found.x)
        at = np.searchsorted(found.x, x[inside])
        assert (found.low[at] <= y[inside]).all() and (y[inside] <= found.high[at]).all()


# ---- what a seed changes


def test_spread_by_hand() -> None:
    s = spread([2.0, 4.0, 9.0, math.nan])
    assert (s.n, s.mean, s.low, s.high) == (3, 5.0, 2.0, 9.0)
    assert s.std == pytest.approx(math.sqrt((9 + 1 + 16) / 2))
    assert math.isnan(spread([1.0]).std) and spread([]).n == 0


def test_the_margin_of_a_difference_by_hand() -> None:
    first, second = spread([1.0, 2.0, 3.0]), spread([2.0, 4.0, 6.0])
    found = contrast(first, second)
    # pooled variance (2·1 + 2·4) / 4 = 2.5; t for 4 degrees of freedom is 2.776
    assert found.difference == 2.0
    assert found.pooled == pytest.approx(math.sqrt(2.5))
    assert found.margin == pytest.approx(2.776 * math.sqrt(2.5) * math.sqrt(2 / 3))
    assert found.clear is False
    assert contrast(first, spread([10.0, 11.0, 12.0])).clear is True


def test_a_single_run_borrows_the_spread_of_the_other_and_two_single_runs_have_none() -> None:
    one, many = spread([5.0]), spread([1.0, 2.0, 3.0])
    found = contrast(one, many)
    assert found.margin == pytest.approx(4.303 * 1.0 * math.sqrt(1 + 1 / 3)) and found.difference == -3.0
    assert contrast(one, one).clear is None and contrast(one, spread([])).clear is None


def test_the_factors_are_those_of_students_t() -> None:
    """The density between -t and t must hold 95 %."""
    for freedom, t in enumerate(seed_spread._STUDENT, start=1):
        x = np.linspace(-t, t, 200_001)
        scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
        density = scale / math.sqrt(freedom * math.pi) * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
        assert np.trapezoid(density, x) == pytest.approx(0.95, abs=1e-4)


# ---- once more


def test_more_seeds_repeat_everything_but_the_seed(store: RunStore) -> None:
    text = Corpus("stories", "stories", "A fox.\r\nA hat é.\n" * 40, "A hen.\n" * 40)
    tokenizer = char_tokenizer(text.text + str(text.val_text))
    info = made(store, text, tokenizer, seed=2)
    specs = more_seeds(info, taken=[0, 2, 4])
    assert [spec.train.seed for spec in specs] == [1, 3, 5, 6]
    assert len({spec.group for spec in specs}) == 1
    again = [store.info(store.create(spec, MINE)) for spec in specs]
    assert same_but_seed([run_sets.settings(i) for i in (info, *again)]) == [[0, 1, 2, 3, 4]]
    assert {i.corpus["sha256"] for i in again} == {text.sha256}


def test_further_texts_are_scored_in_a_repeat_too(store: RunStore) -> None:
    further = {"leaked": "A fox.\r\né" * 30, "clean": TEXT}
    tokenizer = byte_tokenizer()
    model = ModelConfig(tokenizer.model_vocab_size("clm"), 16, 1, 1, 8)
    spec = RunSpec("x", own_text(TEXT), tokenizer, model, TrainConfig(steps=20), also_scored=further)
    again = spec_of(store.info(store.create(spec, MINE)))
    assert again.also_scored == further and again.to_json() == spec.to_json()


def test_a_run_without_its_text_can_not_be_repeated(store: RunStore) -> None:
    info = made(store)
    (info.folder / "corpus.txt").unlink()
    with pytest.raises(ValueError, match="can't be repeated"):
        spec_of(info)


def test_settings_of_a_published_model_in_parts_can_be_grouped():
    from engine import run_sets

    parts = {"base": 1e5, "share": 1.0}
    runs = [{("model", "rotary"): run_sets._flat(value)} for value in (parts, dict(reversed(parts.items())))]
    assert run_sets.same_but_seed(runs) == [[0], [1]] and run_sets.differences(runs) == []
