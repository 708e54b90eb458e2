"""Standings: who of all that use this server got furthest with the same text.

Runs are comparable where text and held-out share are the same. Bits per byte is fair across vocabularies and
sizes; masked runs have none and are listed apart, by their loss per masked token, which is no fair measure
across vocabularies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.config import ModelConfig
from engine.parameter_parts import parameter_count
from engine.records import Records
from engine.run_info import RunInfo
from engine.runs import RunStore
from engine.setting_checks import is_number


@dataclass(frozen=True)
class Standing:
    """One run on the board.

    Attributes:
        place: 1 is the best; runs with the very same score share a place.
        score: the best so far: held-out bits per byte, or for a masked run nats per masked token.
        at_step: where that was.
        step, steps: how far the run is.
        parameters: weights of its model.
        vocabulary: its tokenizer's name.
        mine: whether it belongs to who asks.
        imported: whether it came out of a zip.
    """

    place: int
    run_id: str
    name: str
    score: float
    at_step: int
    step: int
    steps: int
    state: str
    parameters: int
    vocabulary: str
    mine: bool
    imported: bool


@dataclass(frozen=True)
class Board:
    """The runs on one text, the best first.

    Attributes:
        text: name of the corpus, as the newest of the runs calls it.
        sha256, val_share: what makes it the same text with the same part held out.
        objective: "clm", scored in bits per byte, or "mlm", scored in nats per masked token.
    """

    text: str
    kind: str
    sha256: str
    val_share: float
    objective: str
    rows: tuple[Standing, ...]


def standings(store: RunStore, owner: str = "") -> list[Board]:
    """A board for each text with a score, the one with the most runs first.

    A run without validation, before its first evaluation, or with damaged files is left out, and so is one
    that starts from a trained model: what it scores, it did not learn on this text alone. Only names are
    given, nothing that tells whose a run is but whether it is the asker's own.

    Args:
        store: all runs of the server.
        owner: token of who asks.
    """
    groups: dict[tuple[str, float, str], list[tuple[float, int, RunInfo]]] = {}
    for info in store.list():
        if info.start:
            continue
        found = best(store.history(info.id), info.model.objective)
        key = _key(info)
        if found is not None and key is not None:
            groups.setdefault(key, []).append((*found, info))
    boards = [_board(key, runs, owner) for key, runs in groups.items()]
    return sorted(boards, key=lambda board: (-len(board.rows), board.text, board.objective))


def best(records: Records, objective: str) -> tuple[float, int] | None:
    """(score, step) of the best evaluation; None without any."""
    quantity = "bits_per_byte" if objective == "clm" else "val_loss"
    found = [
        (float(record[quantity]), int(record["step"]))
        for record in records
        if record.get("kind") == "eval" and is_number(record.get(quantity)) and is_number(record["step"])
    ]
    return min(found, default=None)


def _key(info: RunInfo) -> tuple[str, float, str] | None:
    sha256, share = info.corpus.get("sha256"), info.corpus.get("val_share")
    if not isinstance(sha256, str) or not is_number(share):
        return None
    return sha256, float(str(share)), info.model.objective


def _board(key: tuple[str, float, str], runs: Sequence[tuple[float, int, RunInfo]], owner: str) -> Board:
    ordered = sorted(runs, key=lambda run: (run[0], run[2].created))
    scores = [score for score, _, _ in ordered]
    newest = max((info for _, _, info in ordered), key=lambda info: info.created)
    rows = (_standing(1 + scores.index(score), score, step, info, owner) for score, step, info in ordered)
    corpus = newest.corpus
    return Board(str(corpus.get("name", "")), str(corpus.get("kind", "")), *key, tuple(rows))


def _standing(place: int, score: float, at_step: int, info: RunInfo, owner: str) -> Standing:
    model: ModelConfig = info.model
    return Standing(
        place=place,
        run_id=info.id,
        name=info.name,
        score=score,
        at_step=at_step,
        step=info.step,
        steps=info.steps,
        state=info.state,
        parameters=parameter_count(model),
        vocabulary=info.tokenizer,
        mine=bool(owner) and info.owned_by(owner),
        imported=info.imported,
    )
