"""Folders of runs: every JSON file changed, records of any kind, files that are missing, links."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as some

from engine import reading
from engine.board import standings
from engine.bundles import export_run
from engine.checkpoints import load_checkpoint
from engine.outcomes import outcome
from engine.run_sets import settings
from engine.runs import RunStore
from engine.verdict import verdict
from trials import inputs_made as made
from trials.inputs_changes import ODD, Change, Cut, as_json, changed, changes, cut_up, cuts
from trials.inputs_kind import Broken, Kind
from viz.curves import thin

os.environ["LOUPE_MAX_RUNS"] = "0"  # nothing is trained here
RUN = "20260101-120000-abcdef"
JSONS = ("run.json", "status.json", "tokenizer.json", "checkpoints/0000006/checkpoint.json")


class Json(NamedTuple):
    """Changes of a JSON file."""

    file: str
    changes: tuple[Change, ...]


class Records(NamedTuple):
    """Changes of records, (which, changes), and lines put in, (where, what)."""

    changes: tuple[tuple[int, tuple[Change, ...]], ...]
    lines: tuple[tuple[int, bytes], ...] = ()


class Bytes(NamedTuple):
    """Changes of a file's bytes."""

    at: int
    cuts: tuple[Cut, ...]


class Place(NamedTuple):
    """A file is missing, a folder, empty, or a link."""

    at: int
    what: str


records = some.one_of(
    some.fixed_dictionaries(
        {
            "kind": some.sampled_from(
                ("step", "eval", "sample", "baseline", "floor", "resume", "notice", "x", None, 3)
            )
        },
        optional={
            name: some.one_of(some.integers(-5, 50), some.sampled_from(ODD))
            for name in (
                "step",
                "loss",
                "val_loss",
                "train_loss",
                "value",
                "bits_per_byte",
                "text",
                "message",
                "uniform",
                "seconds",
                "also",
                "learning_rate",
                "grad_norm",
                "tokens",
                "joules",
                "margin",
                "prompt",
            )
        },
    ),
    some.sampled_from(ODD),
).map(as_json)
junk = some.one_of(
    records,
    some.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")),
    some.sampled_from(
        (
            b"{",
            b"[" * 3000,
            b"null",
            b'{"step": 1}',
            b'{"kind":"eval","step":NaN}',
            b'{"a":' * 2000,
            b"1" * 6000,
        )
    ),
)
cases = some.one_of(
    some.builds(Json, some.sampled_from((*JSONS, "run.json", "status.json")), changes.map(tuple)),
    some.builds(
        Records,
        some.lists(some.tuples(some.integers(0, 50), changes.map(tuple)), max_size=3).map(tuple),
        some.lists(some.tuples(some.integers(0, 50), junk), max_size=4).map(tuple),
    ),
    some.builds(Bytes, some.integers(0, 100), cuts.map(tuple)),
    some.builds(
        Place,
        some.integers(0, 100),
        some.sampled_from(("gone", "folder", "empty", "link", "itself", "nowhere")),
    ),
)


def _set(file: str, name: str, value: Any) -> Json:
    names = list(json.loads(made.run_files()[file]))
    return Json(file, (Change(_index(made.run_files()[file], names, name), "set", value),))


def _index(data: bytes, names: list[str], name: str) -> int:
    from trials.inputs_changes import _places

    content = json.loads(data)
    return next(i for i, (_, key) in enumerate(_places(content)) if key == name)


_ODD: tuple[Any, ...] = (
    None,
    [],
    {},
    "x",
    -1,
    10**30,
    10**400,
    float("nan"),
    float("inf"),
    "running",
    "queued",
    True,
)
_ODDER: tuple[Any, ...] = (None, [], {}, "x" * 5000, -1, 10**400, float("nan"), "\ud800", "<b>x</b>\n$x$")
KNOWN: tuple[Any, ...] = (
    Records(()),
    *(_set("run.json", "format", value) for value in (2, 10**30, "1", None, -1, True, 1.5)),
    *(_set("status.json", name, value) for name in ("state", "step", "updated", "pid") for value in _ODD),
    *(
        _set("run.json", name, value)
        for name in ("name", "created", "corpus", "tokenizer", "also_scored", "group", "owner", "train")
        for value in _ODDER
    ),
    Records((), tuple((i, b'{"kind":"step","step":%d,"loss":1e400}' % i) for i in range(9))),
    Records((), ((0, b'{"kind":"resume","step":"x"}'),)),
    Records((), ((9, b'{"kind":"resume","step":NaN}'),)),
)


def attempt(case: Any, home: Path) -> None:
    """List it, read it, draw it, take it away as a zip, rename it, delete it."""
    files = dict(made.run_files())
    names = sorted(files)
    if isinstance(case, Json):
        files[case.file] = as_json(changed(json.loads(files[case.file]), case.changes))
    elif isinstance(case, Records):
        lines = files["metrics.jsonl"].splitlines()
        for at, made_changes in case.changes:
            lines[at % len(lines)] = as_json(changed(json.loads(lines[at % len(lines)]), made_changes))
        for at, line in case.lines:
            lines.insert(at % (len(lines) + 1), line)
        files["metrics.jsonl"] = b"\n".join(lines) + b"\n"
    elif isinstance(case, Bytes):
        name = names[case.at % len(names)]
        files[name] = cut_up(files[name], case.cuts)
    folder = made.put(home / "runs" / RUN, files)
    made.put(home / "runs" / "20250101-120000-abcdef", made.run_files())
    if isinstance(case, Place):
        _replace(folder / names[case.at % len(names)], case.what, home.parent / "outside")
    store = RunStore(home)
    try:
        _use(store)
    finally:
        store.close()


def _replace(path: Path, what: str, outside: Path) -> None:
    path.unlink()
    if what == "folder":
        path.mkdir()
    elif what == "empty":
        path.touch()
    elif what != "gone":
        path.symlink_to({"link": outside / "secret.txt", "itself": path, "nowhere": outside / "none"}[what])


def _use(store: RunStore) -> None:
    """What the pages Training and Home ask of all runs, and of this one."""
    listed = store.list()
    ids = {info.id for info in listed}
    if "20250101-120000-abcdef" not in ids:
        raise Broken("a damaged run hides a good one")
    if RUN not in ids | set(store.unreadable()):
        raise Broken("a run is neither listed nor told of")
    standings(store, made.OWNER)
    store.size(RUN)
    if RUN not in ids:
        store.info(RUN)  # says why
        raise Broken("a run that is not listed can be read")
    info = store.info(RUN)
    read_all(store, RUN)
    settings(info)
    if newest := store.latest_checkpoint(RUN):
        load_checkpoint(newest)
    export_run(store, RUN)
    if info.owned_by(made.OWNER):
        store.rename(RUN, made.OWNER, name="new")
        store.delete(RUN, made.OWNER)


def read_all(store: RunStore, run_id: str) -> None:
    """Every number that pages read off a run's records."""
    info, found = store.info(run_id), store.history(run_id)
    outcome(info, found)
    reading.curves(found)
    reading.table(found)
    reading.bad_steps(found)
    for unit in ("nats", "bits_per_byte"):
        reading.baselines(found, unit)
        reading.floor_of(found, unit)
    for name in ("loss", "val_loss", "perplexity", "bits_per_byte", "grad_norm", "learning_rate"):
        steps, values = reading.quantity(found, name)
        thin(steps, reading.smooth(values, 3, steps))
    now = reading.read(found, info.n_choices)
    verdict(now, info.n_choices, done=not info.active, objective=info.measure, start=info.start)
    float(info.step + info.steps + info.created + info.updated)
    float(sum(x or 0 for x in (info.tokens_per_second, info.eta_s, info.joules)))
    (info.name + info.device + info.message + info.group + info.label + info.corpus["kind"]).encode()
    float(info.corpus["val_share"])


KIND = Kind("runs", cases, attempt, known=KNOWN, ready=made.run_files)
