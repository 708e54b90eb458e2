"""Folders of published models: settings, words and weights of anybody's making, links that lead out."""

import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as some

from engine import chat
from engine.hub import load_folder
from engine.hub_plan import look
from engine.hub_tokenizer import load_tokenizer
from trials import inputs_made as made
from trials.inputs_changes import ODD, Change, Cut, as_json, changed, changes, cut_up, cuts
from trials.inputs_kind import Broken, Kind

MODELS = {
    "llama": made.llama_files,
    "gpt2": made.gpt2_files,
    "bert": made.bert_files,
    "words": made.words_files,
}
SETTINGS, WORDS, WEIGHTS, INDEX = (
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "model.safetensors.index.json",
)
NAMES = (
    "rope_scaling",
    "rope_parameters",
    "sliding_window",
    "use_sliding_window",
    "layer_types",
    "head_dim",
    "n_inner",
    "quantization_config",
    "auto_map",
    "partial_rotary_factor",
    "attention_layers",
    "eos_token_id",
    "rope_theta",
)


class Json(NamedTuple):
    """Changes of a JSON file."""

    model: str
    file: str
    changes: tuple[Change, ...]


class More(NamedTuple):
    """One more setting."""

    model: str
    name: str
    value: Any


class Bytes(NamedTuple):
    """Changes of a file's bytes."""

    model: str
    file: str
    cuts: tuple[Cut, ...]


class Index(NamedTuple):
    """Weights in shards, with an index of anybody's making."""

    places: Any
    link: str = ""


class Link(NamedTuple):
    """A file of the folder is a link to somewhere, or the folder itself holds a folder instead of it."""

    file: str
    to: str


some_model = some.sampled_from(tuple(MODELS))
shards = some.sampled_from(
    (
        "a.safetensors",
        "../outside/model.safetensors",
        "/etc/passwd",
        "..",
        "",
        "a/b.safetensors",
        "A" * 300,
        "a.bin",
        "..\\outside\\model.safetensors",
        "C:\\x.safetensors",
        "a.safetensors\x00",
        ".safetensors",
        "%2e%2e/a.safetensors",
        3,
        None,
    )
)
rope = some.fixed_dictionaries(
    {},
    optional={
        name: some.sampled_from(ODD)
        for name in (
            "rope_type",
            "type",
            "factor",
            "low_freq_factor",
            "high_freq_factor",
            "mscale",
            "original_max_position_embeddings",
            "beta_fast",
            "beta_slow",
            "truncate",
            "mscale_all_dim",
            "attention_factor",
            "rope_theta",
        )
    },
).map(lambda table: {"rope_type": "yarn", "factor": 2.0, **table})
cases = some.one_of(
    some.builds(Json, some_model, some.sampled_from((SETTINGS, SETTINGS, WORDS)), changes.map(tuple)),
    some.builds(More, some_model, some.sampled_from(NAMES), some.one_of(some.sampled_from(ODD), rope)),
    some.builds(Bytes, some_model, some.sampled_from((SETTINGS, WORDS, WEIGHTS, WEIGHTS)), cuts.map(tuple)),
    some.builds(
        Index, some.dictionaries(some.sampled_from(("wte.weight", "lm_head.weight", "x")), shards, max_size=4)
    ),
    some.builds(
        Link,
        some.sampled_from((SETTINGS, WORDS, WEIGHTS, INDEX, "tokenizer_config.json")),
        some.sampled_from(("outside", "/etc/hostname", "nowhere", "itself", "folder", "inside")),
    ),
)
KNOWN: tuple[Any, ...] = (
    *(Bytes(model, SETTINGS, ()) for model in MODELS),
    *(
        More(model, name, value)
        for model in ("llama", "gpt2", "bert")
        for value in (10**6, 10**8, 10**12, 10**400)
        for name in (
            "vocab_size",
            "num_hidden_layers",
            "n_layer",
            "hidden_size",
            "n_embd",
            "max_position_embeddings",
        )
    ),
    *(More("llama", "sliding_window", value) for value in (1, 10**30, -1, True)),
    Index({"x": "../outside/model.safetensors"}),
    Index({"x": "a.safetensors"}),
    Index([]),
    Index("x"),
    Index({str(i): f"{i}.safetensors" for i in range(2000)}),
    Index({"x": "a.safetensors"}, "outside"),
    *(
        Link(file, to)
        for file in (SETTINGS, WORDS, WEIGHTS, INDEX)
        for to in ("outside", "folder", "itself", "inside")
    ),
    Json("llama", WORDS, (Change(0, "set", "[" * 5000),)),
    More("llama", "chat_template", "{% for i in range(10**9) %}"),
)


def attempt(case: Any, home: Path) -> None:
    """Look at it as the list of models does, and load it."""
    files = dict(MODELS[getattr(case, "model", "gpt2")]())
    if isinstance(case, Json):
        files[case.file] = as_json(changed(json.loads(files[case.file]), case.changes))
    elif isinstance(case, More):
        files[SETTINGS] = as_json({**json.loads(files[SETTINGS]), case.name: case.value})
    elif isinstance(case, Bytes):
        files[case.file] = cut_up(files[case.file], case.cuts)
    elif isinstance(case, Index):
        files["a.safetensors"] = files.pop(WEIGHTS)
        files[INDEX] = as_json({"weight_map": case.places})
    folder = made.put(home / "models" / "one", files)
    outside = home.parent / "outside"
    if isinstance(case, Index) and case.link:
        (folder / "a.safetensors").unlink()
        (folder / "a.safetensors").symlink_to(outside / WEIGHTS)
    if isinstance(case, Link):
        _link(folder, case, outside)
    found = look(folder)
    tokenizer = load_tokenizer(folder, found.config.vocab_size)
    chat.chat_form(folder, tokenizer)
    checkpoint = load_folder(folder)
    if (
        isinstance(case, Link)
        and case.to in ("outside", "/etc/hostname")
        and case.file in (SETTINGS, WORDS, WEIGHTS)
    ):
        raise Broken("a file outside the folder was read")
    if isinstance(case, Index) and case.link:
        raise Broken("weights outside the folder were read")
    ids = checkpoint.tokenizer.encode("the cat")
    checkpoint.tokenizer.tokens("the cat")
    checkpoint.tokenizer.decode(ids)


def _link(folder: Path, case: Link, outside: Path) -> None:
    path = folder / case.file
    path.unlink(missing_ok=True)
    if case.to == "folder":
        path.mkdir()
    elif case.to == "itself":
        path.symlink_to(path)
    elif case.to == "inside":
        (folder / "kept").write_bytes(made.gpt2_files().get(case.file, b"{}"))
        path.symlink_to("kept")
    else:
        goals = {"outside": outside / "config.json", "nowhere": outside / "nothing"}
        path.symlink_to(goals.get(case.to, Path(case.to)))


def header(entries: Any, length: int | None = None, n_bytes: int = 0) -> bytes:
    """The bytes of a safetensors file with a header of any making."""
    head = as_json(entries)
    return struct.pack("<Q", len(head) if length is None else length) + head + bytes(n_bytes)


KIND = Kind("published", cases, attempt, known=KNOWN, ready=lambda: [files() for files in MODELS.values()])
