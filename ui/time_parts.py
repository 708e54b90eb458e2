"""The time machine's picture as numbers and words, for the component that draws it."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import viz
from engine import reading
from engine.metrics import most_likely, tail_of
from ui import lesson, passes, resources
from ui.components.moments import chips
from ui.model_refs import ModelRef
from ui.time_data import BARS, SEED, WRITTEN, Past, Samples
from viz import moments as drawn
from wording import words

if TYPE_CHECKING:
    from engine.tokenizers import Tokenizer

say = words("ui.time_parts")

KEPT = ("int8", "float16")  # weights that were kept rounded


_MARK = "\0"  # where the token stands in a sentence


@dataclass(frozen=True, eq=False)
class Scene:
    """What is looked at: a model's past, from one position, through one head.

    Attributes:
        position: counted in the tokens that the model reads.
        truth: (V,) the true distribution for the position, if known.
        records: of the training, for the curve.
    """

    ref: ModelRef
    text: str
    past: Past
    position: int
    layer: int
    head: int
    truth: NDArray[np.float64] | None
    records: list[dict[str, Any]]

    @property
    def causal(self) -> bool:
        """Whether the model predicts the next token."""
        return self.ref.objective == "clm"

    @cached_property
    def ids(self) -> list[int]:
        """(T,) ids of the text that is read."""
        return [token.id for token in passes.window(self.ref, self.text).tokens]

    @property
    def came(self) -> int | None:
        """Id of the token that the position has to predict, if the text has one."""
        at = self.position + self.causal
        return self.ids[at] if at < len(self.ids) else None

    def name(self, token_id: int) -> str:
        """How a token is written."""
        return viz.visible(self._data(token_id))

    @cached_property
    def _tokenizer(self) -> "Tokenizer":  # looked up once: a cache that is asked for each token takes longer
        return resources.tokenizer(self.ref)

    def _data(self, token_id: int) -> bytes:
        try:
            return self._tokenizer.token_bytes(token_id)
        except ValueError:
            return f"id {token_id}".encode()  # a gap in a published vocabulary

    def parts(self, token_id: int) -> list[tuple[str, bool]]:
        """A token in pieces that can be seen."""
        return viz.visible_parts(self._data(token_id)[:40])


def parts_of(scene: Scene, samples: Samples) -> dict[str, Any]:
    """Everything that the component draws."""
    lines = scene.past.leaders(scene.came)
    rows, names = _bars(scene, lines)
    n_rest = scene.past.probs.shape[1] - (len(rows[-1]) - 1)
    true = None if scene.truth is None else scene.truth[lines]
    came = lines.index(scene.came) if scene.came in lines else None
    return {
        "chips": _chips(scene),
        "notes": _notes(scene),
        "said": [_said(scene, row, moment) for row, moment in zip(rows, scene.past.moments, strict=True)],
        "heading": _heading(scene),
        "bars": {
            "rows": rows,
            "names": names,
            "truth": scene.truth is not None,
            "rest": say("others", n=n_rest),
            "color": viz.objective_color(scene.ref.objective) if not scene.causal else viz.MODEL,
            "cameNote": say("came"),
        },
        "lines": drawn.prob_lines(
            [scene.name(i) for i in lines], scene.past.probs[:, lines], true=true, came=came
        ),
        "linesTitle": say(f"lines.{'after' if scene.causal else 'in_place_of'}", token=_here(scene, 14)),
        "curve": _curve(scene),
        "head": _head(scene),
        "samples": samples.got(),
        "sampleHeading": say("sample.clm") if scene.causal else say("sample.mlm"),
        "sampleNote": _sample_note(scene),
    }


def _here(scene: Scene, most: int = 24) -> str:
    return viz.clip(scene.name(scene.ids[scene.position]), most)


def _heading(scene: Scene) -> list[tuple[str, bool]]:
    """A sentence in parts, and which of them is the token: it is written in another letter."""
    kind = "after" if scene.causal else "in_place_of"
    before, _, behind = say(f"heading.{kind}", at=scene.position, token=_MARK).partition(_MARK)
    return [(before, False), (_here(scene), True), (behind, False)]


def _chips(scene: Scene) -> dict[str, Any]:
    strip = lesson.strip_of(scene.ref, scene.text)
    most = math.log(scene.past.probs.shape[1])
    looks = [drawn.chip_looks(row, most) for row in scene.past.log_probs]
    found = chips(
        strip.segments,
        selected=strip.n_greyed + scene.position,
        n_greyed=strip.n_greyed,
        hidden=not scene.causal,
    )
    note = say("chips_note.clm") if scene.causal else say("chips_note.mlm")
    last = scene.past.log_probs[-1]
    if not scene.causal and np.isnan(last[resources.tokenizer(scene.ref).inner(len(last))]).any():
        note = say("chips_note.mlm_long")
    return {
        **found,
        "label": say("chips_label"),
        "note": note,
        "values": [texts for texts, _ in looks],
        "colors": [colors for _, colors in looks],
    }


def _bars(scene: Scene, lines: list[int]) -> tuple[list[list[dict[str, Any]]], dict[int, Any]]:
    rows: list[list[dict[str, Any]]] = []
    names: dict[int, Any] = {}
    for probs in scene.past.probs:
        top = most_likely(probs, BARS, also=scene.came)
        ids = top.ids.tolist()
        known = scene.truth
        rows.append(
            drawn.bar_rows(
                ids,
                top.probs,
                tail=top.tail,
                true=None if known is None else known[ids],
                true_tail=0.0 if known is None else tail_of(known, ids),
                came=scene.came,
                lines=lines,
            )
        )
        names |= {i: scene.parts(i) for i in ids if i not in names}
    return rows, names


def _notes(scene: Scene) -> list[str]:
    """What stands beside the step: the loss there, and how the weights were kept."""
    losses = {r["step"]: r.get("val_loss") for r in scene.records if r["kind"] == "eval"}
    notes = []
    for moment in scene.past.moments:
        loss = losses.get(moment.step)
        told = [] if loss is None else [say("loss_there", loss=loss)]
        told += [say(f"kept.{moment.dtype}")] if moment.dtype in KEPT else []
        notes.append(" · ".join(told))
    return notes


def _said(scene: Scene, rows: list[dict[str, Any]], moment: ModelRef) -> str:
    best = rows[0]
    return say("said", step=moment.step, name=scene.name(best["id"]), p=best["text"])


def _curve(scene: Scene) -> dict[str, Any]:
    lines = reading.curves(scene.records)
    series = []
    if len(lines.steps):
        series.append(viz.Series(say("training"), lines.steps, lines.losses, "train"))
    if len(lines.eval_steps):
        series.append(viz.Series(say("unseen_text"), lines.eval_steps, lines.val_losses, "valid"))
    floor = next((reading.number(r["value"]) for r in scene.records if r["kind"] == "floor"), math.nan)
    marks = [viz.Reference(math.log(scene.past.probs.shape[1]), say("ln_v"), "start")]
    marks += [viz.Reference(floor, say("floor"), "floor")] if math.isfinite(floor) else []
    title = say("curve.clm") if scene.causal else say("curve.mlm")
    return drawn.curve(series, marks, title)


def _head(scene: Scene) -> dict[str, Any]:
    part = scene.past.part
    weights = scene.past.weights[:, scene.layer, scene.head]  # (S,n,n)
    names = [scene.name(i) for i in scene.ids[part.start : part.stop]]
    row = scene.position - part.start
    said = []
    for moment in weights:
        best = int(moment[row].argmax())
        said.append(
            say(
                "looks_most_at",
                here=viz.clip(names[row], 20),
                there=viz.clip(names[best], 20),
                at=part.start + best,
                weight=moment[row, best] / 255,
            )
        )
    _, n_layer, n_head, _, _ = scene.past.weights.shape
    return {
        "weights": drawn.head_weights(weights),
        "names": names,
        "causal": scene.causal,
        "row": row,
        "color": viz.objective_color(scene.ref.objective),
        "said": said,
        "layers": n_layer,
        "heads": n_head,
        "layer": scene.layer,
        "head": scene.head,
    }


def _sample_note(scene: Scene) -> str:
    if scene.causal:
        return say("sample_note.clm", n=WRITTEN, seed=SEED)
    return say("sample_note.mlm")
