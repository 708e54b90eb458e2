"""Words for settings: every setting has a name, and things of one name are told apart."""

from dataclasses import fields

from engine import run_sets
from engine.config import BORROWED, ModelConfig, TrainConfig
from engine.run_sets import Difference, Named
from ui import runs_words


def test_every_setting_that_can_differ_has_a_name_for_people() -> None:
    # What only published models have (BORROWED) no run can set.
    names = {f.name for config in (ModelConfig, TrainConfig) for f in fields(config)}
    assert names - set(run_sets._BOOKKEEPING) - set(BORROWED) <= set(runs_words.say.table("name"))


def test_things_of_one_name_are_told_apart_by_their_fingerprints() -> None:
    one, other, third = Named("fox", "abcdef99"), Named("fox", "12345678"), Named("owl", "777777")
    row = Difference("text", "text", (one, other, third))
    assert runs_words.cells(row) == ["fox (abcdef)", "fox (123456)", "owl"]
    assert runs_words.brief(row, 1) == "fox (123456)"


def test_values_and_what_is_alike_in_words() -> None:
    row = Difference("training", "learning_rate", (0.004, 1e-5))
    assert runs_words.cells(row) == ["0.004", "1e-05"] and runs_words.brief(row, 0) == "rate 0.004"
    settings = {("model", "n_layer"): 3, ("model", "bias"): True, ("model", "d_ff"): None}
    assert runs_words.alike(settings, main=True) == "layers 3"
    assert runs_words.alike(settings, main=False) == "bias yes"
