"""The board: who got furthest with the same text, and nobody's secrets."""

from dataclasses import asdict

import pytest

from engine.board import best, standings
from engine.parameter_parts import parameter_count
from engine.records import Metrics
from engine.runs import update_status
from tests.engine.small_runs import TEXT, spec


def with_evals(store, owner, scores, **changes):
    """A run with made-up evaluations: (step, val_loss, bits per byte)."""
    run_id = store.create(spec(**changes), owner)
    metrics = Metrics(store.root / run_id / "metrics.jsonl")
    for step, loss, bits in scores:
        metrics.write("eval", step, train_loss=1.0, val_loss=loss, bits_per_byte=bits)
    metrics.close()
    update_status(store.root / run_id, step=scores[-1][0] if scores else 0)
    return run_id


def test_the_best_of_each_run_on_the_same_text_in_order(store):
    worse = with_evals(store, "a", [(0, 3.0, 4.0), (10, 1.0, 2.0), (20, 1.5, 2.5)], name="Memorises")
    better = with_evals(store, "b", [(0, 3.0, 4.0), (10, 0.9, 1.5)], name="Learns", d_model=32)
    tied = with_evals(store, "b", [(10, 0.9, 1.5)], name="As good")
    with_evals(store, "a", [], name="Nothing yet")
    with_evals(store, "a", [(10, None, None)], name="No validation", val_share=0.0)
    board, *others = standings(store, "a")
    assert others == []
    assert [(r.run_id, r.place, r.score, r.at_step) for r in board.rows] == [
        (better, 1, 1.5, 10),
        (tied, 1, 1.5, 10),
        (worse, 3, 2.0, 10),
    ]
    assert [r.mine for r in board.rows] == [False, False, True]
    first = board.rows[0]
    assert (first.name, first.step, first.steps, first.state) == ("Learns", 10, 30, "stopped")
    assert first.parameters == parameter_count(store.info(better).model)
    assert (board.val_share, board.objective, board.sha256) == (
        0.1,
        "clm",
        store.info(worse).corpus["sha256"],
    )


def test_other_texts_shares_and_objectives_have_boards_of_their_own(store):
    with_evals(store, "a", [(10, 1.0, 2.0)])
    with_evals(store, "a", [(10, 0.5, 1.0)], val_share=0.2)
    with_evals(store, "a", [(10, 0.7, 1.2)], text=TEXT + "the cat sat on the log.\n")
    masked = with_evals(store, "a", [(10, 0.2, None), (20, 0.3, None)], objective="mlm")
    boards = standings(store)
    assert len(boards) == 4 and all(len(board.rows) == 1 for board in boards)
    row = next(b for b in boards if b.objective == "mlm").rows[0]
    assert (row.run_id, row.score, row.at_step, row.mine) == (masked, 0.2, 10, False)


def test_damaged_runs_are_left_out(store):
    good = with_evals(store, "a", [(10, 1.0, 2.0)])
    (store.root / with_evals(store, "a", [(10, 0.1, 0.1)]) / "run.json").write_text("{")
    odd = with_evals(store, "a", [(10, 1.0, "0.1"), (20, 1.0, True)])
    with open(store.root / odd / "metrics.jsonl", "a") as file:
        file.write('{"kind": "eval", "step": 5}\n{"step": 3}\nrubbish')
    assert [r.run_id for r in standings(store)[0].rows] == [good]


def test_a_run_that_lost_its_status_keeps_its_place(store):
    """A power cut may empty status.json; the curve is whole."""
    run_id = with_evals(store, "a", [(10, 1.0, 2.0)])
    (store.root / run_id / "status.json").write_text("{")
    assert [r.run_id for r in standings(store)[0].rows] == [run_id]


def test_nothing_tells_whose_a_run_is(store):
    run_id = with_evals(store, "secret", [(10, 1.0, 2.0)])
    shown = str(asdict(standings(store, "somebody")[0]))
    assert "secret" not in shown and store.info(run_id).owner_hash not in shown


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "1", True])
def test_what_is_no_number_is_no_score(value):
    records = [{"kind": "eval", "step": 1, "bits_per_byte": value}, {"kind": "step", "step": 1}]
    assert best(records, "clm") is None
