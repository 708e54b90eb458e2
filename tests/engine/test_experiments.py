"""The studies' runs: what differs and what is equal, counted again from the specs."""

import pytest

from engine import experiments
from engine.experiments import LARGER, STUDIES, larger_spec, study_of, study_specs
from engine.parameter_parts import parameter_count
from engine.plan import Timing


@pytest.mark.parametrize("study", STUDIES)
def test_every_run_could_be_trained_and_they_share_a_group(study: str) -> None:
    specs = study_specs(study)
    for spec in specs:
        spec.check()
    assert len({spec.group for spec in specs}) == 1 and study_of(specs[0].group) == study
    assert len({spec.label for spec in specs}) == len(specs) >= 2
    assert {spec.device for spec in specs} == {"cpu"}


@pytest.mark.parametrize("study", STUDIES)
def test_all_are_checked_with_the_same_fresh_stories_that_none_learns_from(study: str) -> None:
    for spec in study_specs(study):
        assert spec.corpus.val_text == experiments.held_out()
        learned = set(spec.corpus.text.splitlines())
        assert not learned & set(experiments.held_out().splitlines())


def test_another_seed_is_another_group_with_the_same_labels() -> None:
    first, second = study_specs("held-out"), study_specs("held-out", seed=1)
    assert first[0].group != second[0].group
    assert [s.label for s in first] == [s.label for s in second]
    assert {s.train.seed for s in second} == {1}


def test_an_unknown_study_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no study 'luck'.*held-out"):
        study_specs("luck")


@pytest.mark.parametrize(("label", "n_leaked"), [("0 %", 0), ("25 %", 5), ("50 %", 10), ("100 %", 20)])
def test_the_leak_is_exact_and_the_clean_text_never_leaks(label: str, n_leaked: int) -> None:
    spec = next(s for s in study_specs("contamination") if s.label == label)
    learned = spec.corpus.text.splitlines()
    test, clean = spec.also_scored["leaked"].splitlines(), experiments.held_out().splitlines()
    assert (len(test), len(clean)) == (20, 60) and not set(test) & set(clean)
    assert sum(story in test for story in learned) == n_leaked
    assert not set(learned) & set(clean)
    assert len(learned) == 80  # the dose replaces stories: no run reads more than another


def test_learning_rates_are_all_that_differs() -> None:
    specs = study_specs("learning-rate")
    rates = [spec.train.learning_rate for spec in specs]
    assert rates == sorted(rates) and rates[-1] / rates[0] > 1e5
    assert len({str({**s.train.to_json(), "learning_rate": 0}) for s in specs}) == 1
    assert len({str(s.model) for s in specs}) == 1


def test_contexts_read_equally_many_tokens_a_step() -> None:
    specs = study_specs("context")
    assert {s.model.context_length * s.train.batch_size for s in specs} == {1024}
    assert len({s.train.steps for s in specs}) == 1
    assert len({parameter_count(s.model) for s in specs}) == 1  # rotary positions need no weights


def test_shapes_have_nearly_equal_weights() -> None:
    counts = [parameter_count(s.model) for s in study_specs("shape")]
    assert max(counts) / min(counts) < 1.02
    assert [s.model.n_layer for s in study_specs("shape")] == [1, 2, 4, 8]


def test_vocabularies_read_equally_much_text() -> None:
    for spec in study_specs("tokenizer"):
        length = experiments.bytes_a_token(spec.tokenizer)
        window = spec.model.context_length * length
        assert window == pytest.approx(192, rel=0.02)
        assert window * spec.train.batch_size * spec.train.steps == pytest.approx(192 * 16 * 500, rel=0.02)


def test_model_sizes_span_a_factor_of_thirty_and_the_larger_one_lies_beyond() -> None:
    counts = [parameter_count(s.model) for s in study_specs("model-size")]
    larger = larger_spec("model-size")
    assert len(counts) >= 5 and counts == sorted(counts) and counts[-1] / counts[0] >= 30
    assert larger is not None and larger.label == LARGER
    assert parameter_count(larger.model) > 2 * counts[-1]
    assert larger.group == study_specs("model-size")[0].group
    assert experiments.size_of_spec("model-size", larger) == parameter_count(larger.model)


def test_text_sizes_are_nested_and_only_the_text_differs() -> None:
    specs = study_specs("text-size")
    for small, large in zip(specs, specs[1:], strict=False):
        assert large.corpus.text.startswith(small.corpus.text)
    assert len({str(s.model) + str(s.train) for s in specs}) == 1
    larger = larger_spec("text-size")
    assert larger is not None and larger.corpus.text.startswith(specs[-1].corpus.text)
    assert experiments.size_of_spec("text-size", larger) == larger.check()[0]


def test_objectives_have_equal_budgets() -> None:
    clm, mlm = study_specs("objectives")
    assert (clm.model.objective, mlm.model.objective) == ("clm", "mlm")
    assert clm.train == mlm.train and clm.corpus.text == mlm.corpus.text
    assert parameter_count(mlm.model) - parameter_count(clm.model) == mlm.model.d_model  # the mask's row


def test_studies_without_a_law_have_no_larger_run() -> None:
    assert [study for study in STUDIES if larger_spec(study)] == ["model-size", "text-size"]
    assert experiments.labels("text-size")[-1] == LARGER


def test_the_time_is_shared_by_the_slots_and_never_below_the_longest_run() -> None:
    specs = study_specs("learning-rate")
    one, two = (experiments.study_seconds(specs, slots) for slots in (1, 2))
    assert one == pytest.approx(2 * two)
    alone = experiments.study_seconds(specs[:1], 1)
    assert experiments.study_seconds(specs, 100) == pytest.approx(alone)
    slow = Timing(specs[0].model, specs[0].train, 100.0)  # 1,024 tokens take 10 s
    assert experiments.study_seconds(specs[:1], 1, [slow]) > 300 * 10


def test_what_the_true_source_scores_lies_below_what_models_reach() -> None:
    assert 0.05 < experiments.source_loss() < 1.0


def test_groups_of_other_people_s_making_are_no_study() -> None:
    assert study_of("") == study_of("held-out") == study_of("my-runs-1") == ""
