"""What the rows about learning add up, without training anything of a size."""

from dataclasses import replace

import pytest

from benchmarks import learning, learning_runs, learning_stories
from benchmarks.learning import LOUPE, OWN, RECIPE, SAME, SHAPE, SHORT_RECIPE, SHORT_SHAPE, Learning, Program
from benchmarks.learning_runs import Parts
from benchmarks.learning_stories import Stories, steps_at
from benchmarks.rows import Options


def test_a_finished_part_is_never_done_again(tmp_path):
    file, done = tmp_path / "there" / "parts.jsonl", []

    def measure():
        done.append(1)
        return {"loss": 1.5}

    assert Parts(file).once({"steps": 2, "seed": 1}, measure) == {"loss": 1.5}
    assert Parts(file).once({"seed": 1, "steps": 2}, measure) == {"loss": 1.5} and len(done) == 1
    Parts(file).once({"steps": 2, "seed": 2}, measure)
    assert len(done) == 2 and len(file.read_text("utf-8").splitlines()) == 2


def test_the_last_of_the_single_changes_is_the_recipe():
    *_, last = learning.ladder().values()
    assert last.shape == SHORT_SHAPE and last.told() == Program("Loupe", SHORT_SHAPE, SHORT_RECIPE).told()


def test_steps_that_fit_follow_from_the_ruler(tmp_path, monkeypatch):
    """A step of the ruler takes 0.05 s, one of Loupe twice that: 60 s are 600 steps."""
    work = Learning(Options(nanogpt=tmp_path), Parts(None))
    monkeypatch.setattr(work, "ruler", lambda program: {"median": 0.05, "low": 0.04, "high": 0.06})
    monkeypatch.setattr(work, "ratio", lambda program, ruler: 2.0)
    assert work.steps(Program("Loupe", SHAPE, RECIPE), 60) == 600


def test_a_ratio_that_was_measured_on_a_busy_machine_is_refused(monkeypatch):
    work = Learning(Options(), learning.Parts(None))
    mine, ruler = Program("Loupe", SHAPE, RECIPE), Program("Loupe", SHORT_SHAPE, RECIPE)
    monkeypatch.setattr(work, "_times", lambda some: {"program": [3.3, 4.4], "ruler": [2.0, 2.0]})
    with pytest.raises(ValueError, match=r"1.65 to 2.20 .* close what else is running"):
        work.ratio(mine, ruler)
    monkeypatch.setattr(work, "_times", lambda some: {"program": [4.0, 4.4], "ruler": [2.0, 2.0]})
    assert work.ratio(mine, ruler) == pytest.approx(2.1), "the refused one is not kept"


def test_programs_with_other_rates_share_one_speed():
    one = Program("Loupe", SHAPE, RECIPE)
    other = replace(one, recipe=replace(RECIPE, learning_rate=1.0, weight_decay=0.0))
    wider = replace(one, shape=replace(SHAPE, d_model=64))
    told = [learning._shape_of_speed(program) for program in (one, other, wider)]
    assert told[0] == told[1] != told[2]


def test_another_precision_has_a_speed_of_its_own():
    plain, rounded = (
        Program("Loupe", SHAPE, replace(RECIPE, precision=precision)) for precision in ("auto", "bfloat16")
    )
    assert learning._shape_of_speed(plain) != learning._shape_of_speed(rounded)


def test_without_units_for_16_bits_the_ladder_is_a_step_shorter(monkeypatch):
    names = list(learning.LADDER)
    for precision, wanted in (("auto", names[:-1]), ("bfloat16", names)):
        steps = {**learning.LADDER, names[-1]: ({}, {"precision": precision})}
        monkeypatch.setattr(learning, "LADDER", steps)
        assert list(learning.ladder()) == wanted


def test_goals_compare_seed_with_seed():
    found = {
        LOUPE: {1: 1.5, 2: 1.6},
        learning.DOCUMENTED: {1: 2.0, 2: 2.0},
        OWN: {1: 1.7, 2: 1.9},
        SAME: {1: 1.8, 2: 1.62},
    }
    ratio, below = learning._goals(found, 0.81)
    assert (ratio.seen.low, ratio.seen.high) == pytest.approx((0.75, 0.8)) and ratio.reached
    assert (below.seen.low, below.seen.high) == pytest.approx((0.02, 0.2)), "the better peer of each seed"


@pytest.mark.parametrize(("need", "first"), [(0, 0), (1, 0), (7, 0), (9, 0), (24, 0), (7, 7), (7, 5), (5, 7)])
def test_the_least_number_of_steps_is_found(need, first, monkeypatch):
    work = object.__new__(Stories)
    work.near = 0.05
    tried = []

    def ends(program, steps, seed):
        tried.append(steps)
        return {"above": 0.05 if steps >= steps_at(need) else 0.06}

    monkeypatch.setattr(work, "ends", ends)
    assert work.least_steps(learning_stories.PROGRAMS[learning_stories.LOUPE], 1, first) == need
    assert max(tried) <= steps_at(max(need + 3, first))


def test_too_few_steps_are_said_to_be_too_few(monkeypatch):
    work = object.__new__(Stories)
    work.near = 0.05
    monkeypatch.setattr(work, "ends", lambda program, steps, seed: {"above": 1.0})
    assert work.least_steps(learning_stories.PROGRAMS[learning_stories.LOUPE], 1) is None


def test_speeds_are_measured_in_turn(monkeypatch):
    told = []

    class Waiting:
        def __init__(self, program, threads, nanogpt):
            self.name = f"{program.who[0]}{threads}"

        def seconds(self, steps):
            told.append((self.name, steps))
            return len(told)

        def end(self):
            told.append((self.name, "end"))

    monkeypatch.setattr(learning_runs, "Waiting", Waiting)
    some = {"ours": Program("Loupe", SHAPE, RECIPE), "peer": learning.programs(60)[SAME]}
    times = learning_runs.seconds_per_step(some, 2, None, steps=4)
    turn = [("L1", 4), ("n1", 4), ("n2", 4)]
    assert told[:3] == [("L1", 5), ("n1", 5), ("n2", 5)], "first they warm up"
    assert told[3:] == [*turn, *turn, ("L1", "end"), ("n1", "end"), ("n2", "end")]
    assert times == {"ours": [4, 7], "peer": [5, 8]}, "of a peer the better number of threads"


def test_a_program_trains_in_a_process_of_its_own():
    small = replace(SHAPE, n_layer=1, d_model=8, context_length=8)
    times = learning_runs.seconds_per_step({"ours": Program("Loupe", small, RECIPE)}, 1, None, steps=2)
    assert 0 < times["ours"][0] < 60
