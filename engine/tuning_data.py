"""The pairs of a run as rows of ids, and what a preference run compares with, kept in its folder."""

from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor

from engine.aims import Aim, AnswersAim, PreferencesAim, reference_of
from engine.batches import Batch
from engine.config import TrainConfig
from engine.corpus import Corpus
from engine.folders import write_file
from engine.framing import framing_for
from engine.instructions import AnswerRows, encode_pairs
from engine.model import Transformer
from engine.pair_files import as_lines, read_pairs, read_preferences
from engine.preferences import PreferenceBatch, PreferenceRows, encode_preferences
from engine.tokenizers import Tokenizer
from wording import words

say = words("engine.tuning_data")

REFERENCE = "reference.safetensors"  # in a run's folder: log-probabilities of the answers by its start
Rows = tuple[AnswerRows, AnswerRows] | tuple[PreferenceRows, PreferenceRows]


def pairs_corpus(text: str, aim: str, *, name: str) -> Corpus:
    """A file of pairs or preferences as the text of a run.

    Raises:
        ValueError: one sentence with the line, if it can't be read; see `engine.pair_files`.
    """
    rows = read_pairs(text) if aim == "answers" else read_preferences(text)
    return Corpus(name, aim, as_lines(rows))


def encode_rows(texts: Sequence[str], config: TrainConfig, tokenizer: Tokenizer, context_length: int) -> Rows:
    """Training and held-out rows of a run whose aim is answers or preferences.

    Args:
        texts: the two parts of its corpus, JSON lines; the second may be empty.
        config: of the run.
        tokenizer: of the run.
        context_length: of the model.

    Raises:
        ValueError: one sentence with the line, if a pair doesn't fit, or there is none to learn from.
    """
    framing, length = framing_for(tokenizer, config.framing), config.longest_row(context_length)
    if not texts[0].strip():
        raise ValueError(say("nothing_to_learn"))
    train, val = (text if text.strip() else "" for text in texts)
    if config.aim == "answers":
        first, second = (encode_pairs(read_pairs(t) if t else [], framing, length) for t in (train, val))
        return first, second
    one, two = (encode_preferences(read_preferences(t) if t else [], framing, length) for t in (train, val))
    return one, two


def first_prompt(texts: Sequence[str], aim: str) -> str:
    """The prompt of the first pair that is held out, or else of the first of all."""
    text = texts[1] if texts[1].strip() else texts[0]
    line = next(line for line in text.split("\n") if line.strip())
    return (read_pairs(line) if aim == "answers" else read_preferences(line))[0].prompt


def cut_notice(rows: Rows) -> str:
    """One sentence if prompts lost their start, else ""."""
    cut, n = rows[0].cut + rows[1].cut, len(rows[0]) + len(rows[1])
    return say("cut", n=cut, of=n) if cut else ""


def make_aim(
    rows: Rows,
    model: Transformer,
    config: TrainConfig,
    reference: tuple[Tensor, Tensor] | None,
) -> Aim[Batch] | Aim[PreferenceBatch]:
    """What a run learns from rows; `reference` as `reference_for` gives it."""
    train, val = rows
    if isinstance(train, AnswerRows) and isinstance(val, AnswerRows):
        return AnswersAim(model, train, val, config)
    assert isinstance(train, PreferenceRows) and isinstance(val, PreferenceRows)
    return PreferencesAim(model, train, val, config, reference=reference)


def kept_reference(folder: Path, rows: Rows) -> tuple[Tensor, Tensor] | None:
    """What the start gives all answers of a preference run, if that is in the run's folder; None else."""
    try:
        found = read_tensors((folder / REFERENCE).read_bytes())
        train, val = found["train"], found["val"]
    except (OSError, KeyError, SafetensorError):
        return None
    fits = train.shape == (len(rows[0]), 2) and val.shape == (len(rows[1]), 2)
    return (train, val) if fits and bool(train.isfinite().all() and val.isfinite().all()) else None


def keep_reference(
    folder: Path, rows: Rows, start: Transformer, config: TrainConfig
) -> tuple[Tensor, Tensor]:
    """Compute it once with the start, and keep it."""
    train, val = rows
    assert isinstance(train, PreferenceRows) and isinstance(val, PreferenceRows)
    found = reference_of(start, train, config), reference_of(start, val, config)
    write_file(folder / REFERENCE, write_tensors({"train": found[0], "val": found[1]}))
    return found
