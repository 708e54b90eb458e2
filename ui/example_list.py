"""All worked examples in their order, and the place of each in the flows and on the other pages."""

from collections.abc import Callable
from typing import NamedTuple

from ui import (
    example_attention,
    example_batch,
    example_five,
    example_loss,
    example_mask,
    example_scale,
    example_softmax,
    example_text,
    example_vectors,
    example_write,
)
from wording import words

say = words("ui.example_list")


class Example(NamedTuple):
    """One worked example.

    Attributes:
        draw: draws it; raises a ValueError with a sentence if what was typed does not fit.
        flow: the diagram in which it has its place.
        lit: the boxes of it that are this example.
        page: where the same happens with a model.
        query: of that page's address.
    """

    draw: Callable[[], None]
    flow: str
    lit: tuple[str, ...]
    page: str
    query: dict[str, str] = {}  # noqa: RUF012


EXAMPLES = {
    "vocabulary": Example(example_text.vocabulary, "flow", ("tokens", "ids"), "tokens"),
    "chain-rule": Example(
        example_text.chain_rule, "flow", ("probability",), "next_token", {"look": "chain-rule"}
    ),
    "joint-space": Example(
        example_text.joint_space, "flow", ("probability",), "next_token", {"look": "chain-rule"}
    ),
    "one-hot": Example(example_vectors.one_hot, "flow", ("embeddings",), "embeddings"),
    "tiny-attention": Example(example_attention.tiny_attention, "flow", ("attention", "logits"), "attention"),
    "causal-mask": Example(example_mask.causal_mask, "objectives", ("both-sides", "left-only"), "attention"),
    "softmax": Example(example_softmax.softmax, "flow", ("logits", "softmax"), "next_token"),
    "sigmoid": Example(example_softmax.sigmoid, "flow", ("softmax",), "next_token"),
    "five-words": Example(example_five.five_words, "flow", ("softmax", "probability"), "next_token"),
    "temperature": Example(example_five.temperature, "writing", ("pick",), "generation"),
    "softmax-twice": Example(
        example_five.softmax_twice, "training", ("loss",), "training", {"watch": "one-step"}
    ),
    "sentence-loss": Example(
        example_text.sentence_loss, "training", ("loss",), "next_token", {"look": "chain-rule"}
    ),
    "one-target": Example(example_loss.one_target, "training", ("loss",), "next_token", {"look": "surprise"}),
    "batch-loss": Example(example_loss.batch, "training", ("loss",), "training", {"watch": "one-step"}),
    "perplexity": Example(
        example_loss.perplexity, "training", ("loss",), "next_token", {"look": "chain-rule"}
    ),
    "gradient": Example(
        example_loss.gradient, "training", ("backward", "update"), "training", {"watch": "one-step"}
    ),
    "shift": Example(
        example_batch.shift, "objectives", ("shift", "next"), "next_token", {"look": "best-guesses"}
    ),
    "windows": Example(example_batch.windows, "training", ("batch",), "training", {"watch": "one-step"}),
    "signal": Example(
        example_batch.signal,
        "objectives",
        ("masked-loss", "causal-loss"),
        "masking",
        {"hide": "what-is-paid"},
    ),
    "fill-blank": Example(
        example_batch.fill_blank, "objectives", ("hide", "fill"), "masking", {"hide": "fill-blanks"}
    ),
    "crop": Example(example_write.crop, "writing", ("crop",), "generation"),
    "generation": Example(
        example_write.generation, "writing", ("predict", "pick", "append"), "generation", {"lab": "waterfall"}
    ),
    "scaling": Example(example_scale.scaling, "training", ("update",), "experiments"),
    "balance": Example(example_scale.balance, "training", ("update",), "experiments"),
}


def title(slug: str) -> str:
    """An example's name."""
    return say(f"title.{slug}")


def aim(slug: str) -> str:
    """One sentence: what an example shows."""
    return say(f"aim.{slug}")


def titles() -> dict[str, str]:
    """Names by slug, in order and numbered."""
    return {slug: f"{i} · {title(slug)}" for i, slug in enumerate(EXAMPLES, 1)}
