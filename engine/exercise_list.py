"""All exercises, by topic and in order, and one of them with the numbers of a seed."""

from functools import cache

from engine import exercise_attention as attention
from engine import exercise_loss as loss
from engine import exercise_probability as probability
from engine import exercise_runs as runs
from engine import exercise_sampling as sampling
from engine import exercise_targets as targets
from engine import exercise_tokens as tokens
from engine import exercise_training as training
from engine.exercise import SEEDS, Exercise, Maker, Number, generator
from engine.marking import tolerance
from wording import words

say = words("engine.exercise_list")

TOPICS: dict[str, dict[str, Maker]] = {
    "tokens": {
        "utf8-bytes": tokens.utf8_bytes,
        "first-merge": tokens.first_merge,
        "merge-saves": tokens.merge_saves,
        "embedding-parameters": tokens.embedding_parameters,
        "one-hot-row": tokens.one_hot_row,
    },
    "probability": {
        "softmax-equal": probability.softmax_equal,
        "softmax-three": probability.softmax_three,
        "sigmoid-two": probability.sigmoid_two,
        "shift-invariance": probability.shift_invariance,
        "chain-rule": probability.chain_rule,
        "joint-digits": probability.joint_digits,
        "n-gram": probability.n_gram,
        "probability-order": training.probability_order,
    },
    "loss": {
        "minus-log": loss.minus_log,
        "loss-equal": loss.loss_equal,
        "sentence-loss": loss.sentence_loss,
        "cross-entropy": loss.cross_entropy,
        "loss-gap": loss.loss_gap,
        "batch-loss": loss.batch_loss,
        "start-loss": loss.start_loss,
        "perplexity-of-loss": loss.perplexity_of_loss,
        "loss-of-perplexity": loss.loss_of_perplexity,
        "perplexity-of-tokens": loss.perplexity_of_tokens,
        "nats-to-bits": loss.nats_to_bits,
        "bits-per-byte": loss.bits_per_byte,
        "entropy": loss.entropy,
        "divergence": loss.divergence,
        "held-out": training.held_out,
    },
    "targets": {
        "shift-targets": targets.shift_targets,
        "inputs-and-targets": targets.inputs_and_targets,
        "same-shape": targets.same_shape,
        "n-targets": targets.n_targets,
        "why-one-less": targets.why_one_less,
        "targets-per-step": targets.targets_per_step,
        "n-windows": targets.n_windows,
        "logits-shape": targets.logits_shape,
        "slice-meaning": targets.slice_meaning,
        "flatten-shape": targets.flatten_shape,
    },
    "attention": {
        "attention-weight": attention.attention_weight,
        "causal-row": attention.causal_row,
        "causal-pairs": attention.causal_pairs,
        "hide-future": targets.hide_future,
    },
    "sampling": {
        "greedy": sampling.greedy,
        "temperature": sampling.temperature,
        "top-k": sampling.top_k,
        "top-p": sampling.top_p,
        "min-p": sampling.min_p,
        "effective-choices": sampling.effective_choices,
        "crop": targets.crop,
        "generation-order": sampling.generation_order,
    },
    "masked": {
        "masked-targets": attention.masked_targets,
        "mask-split": attention.mask_split,
        "none-masked": attention.none_masked,
        "which-generates": attention.which_generates,
        "pseudo-likelihood": attention.pseudo_likelihood,
    },
    "training": {
        "training-order": training.training_order,
        "warm-up": training.warm_up,
        "tokens-seen": training.tokens_seen,
        "scaling-ratio": training.scaling_ratio,
        "run-unigram": runs.run_unigram,
        "run-stories": runs.run_stories,
        "run-rates": runs.run_rates,
        "run-overfit": runs.run_overfit,
        "run-masked": runs.run_masked,
    },
}
IDS = tuple(name for makers in TOPICS.values() for name in makers)
_TOPIC = {name: topic for topic, makers in TOPICS.items() for name in makers}


def exercise(exercise_id: str, seed: int) -> Exercise:
    """An exercise with the numbers of a seed: the same for everybody, on every machine.

    Args:
        exercise_id: one of `IDS`.
        seed: any whole number.

    Raises:
        ValueError: if there is no such exercise.
    """
    if exercise_id not in _TOPIC:
        raise ValueError(say("unknown", name=repr(exercise_id), names=", ".join(IDS)))
    topic = _TOPIC[exercise_id]
    made = TOPICS[topic][exercise_id](generator(exercise_id, seed % SEEDS))
    answer = _told_apart(made.answer) if isinstance(made.answer, Number) else made.answer
    return Exercise(exercise_id, seed, topic, made.values, answer)


@cache
def has_other_numbers(exercise_id: str) -> bool:
    """Whether other seeds ask for other numbers, and not the same with other options or in another order."""
    return len({repr(exercise(exercise_id, seed).values) for seed in range(8)}) > 1


def _told_apart(answer: Number) -> Number:
    """Leave out mistakes that happen to give what is right, or nearly that."""
    near = 0.5 if answer.whole else 4 * tolerance(answer.value)
    kept = tuple(slip for slip in answer.slips if abs(slip.value - answer.value) > near)
    return Number(answer.value, answer.unit, answer.whole, kept)
