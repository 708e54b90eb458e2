"""Texts that want to be more than text: put wherever somebody may type, and looked for in all that is sent.

A browser draws some of a page's strings as plain text, others as Markdown or HTML. A payload may reach it as
it is only where it is drawn as plain text; everywhere else its signs must be escaped.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from engine import own_vocabularies
from engine.classes import ClassStore
from engine.corpus import own_text
from engine.folders import write_file
from engine.progress import ProgressStore
from engine.runs import RunSpec, RunStore
from engine.tokenizers import train_bpe
from trials.outcomes import Check
from trials.strangers_people import Spy, spec, strings

ROOT = Path(__file__).parent.parent
MARK = "qz9"  # stands in every payload
HOST = f"{MARK}.example"
PAYLOADS = (
    f"<script>window.__pwned='{MARK}'</script>",
    f"<img src={MARK} onerror=window.__pwned=1>",
    f"<svg onload=window.__pwned='{MARK}'>",
    f"<a href=http://{HOST}>{MARK}</a>",
    f"[{MARK}](javascript:window.__pwned=1)",
    f"[{MARK}](http://{HOST})",
    f"![{MARK}](http://{HOST}/a.png)",
    rf"$\href{{javascript:window.__pwned=1}}{{{MARK}}}$",
    rf"$\includegraphics{{http://{HOST}/b.png}}$",
    f":red[{MARK}] :material/{MARK}:",
    f"</style></pre><style>*{{--{MARK}:1}}",
    f"`{MARK}` **{MARK}** # {MARK}",
)
# How they begin, where a page cuts a long text: none of these is ever wanted where signs mean something.
BEGINNINGS = (
    "<script>w", f"<img src={MARK}", "<svg onload", "<a href=http", f"[{MARK}](", f"![{MARK}", r"$\href",
    r"$\includeg", f":red[{MARK}", "</style></", f"`{MARK}`",
)  # fmt: skip
# Drawn as plain text: "element.field", or "element" for all of it. A component's data is put on the page by
# its script, see `scripts`; the signs of a figure are its own matter, see `tags`.
PLAIN = (
    "text.body", "code.code_text", "text_area", "text_input", "selectbox.options", "selectbox.raw_value",
    "multiselect.options", "multiselect.raw_values", "dataframe", "number_input", "file_uploader",
    "bidi_component", "plotly_chart", "download_button.url", "exception",
)  # fmt: skip
NOT_PLAIN = ("label", "help")  # of every element
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser"
    r"|createContextualFragment|setHTML|\.on\w+\s*=\s*[\"'`]|setAttribute\(\s*[\"'`](on|href|src)"
)
PAGES = (
    "home", "tokens", "embeddings", "next_token", "attention", "inside", "compare", "masking", "generation",
    "models", "training", "tuning", "experiments", "teacher", "lessons", "glossary", "exercises", "guess",
    "examples", "selftest",
)  # fmt: skip


def settle(home: str, word: str) -> list[str]:
    """Give a person things with these names; gives the ids of their runs."""
    folder, store, ids = Path(home), RunStore(home), list[str]()
    text = " ".join(PAYLOADS) + " "
    for place, payload in enumerate(PAYLOADS):
        made = spec(payload[:80], text * 4, seed=place)
        named = own_text(made.corpus.text, name=payload[:80], kind="uploaded")
        ids.append(store.create(RunSpec(made.name, named, made.tokenizer, made.model, made.train), word))
        _records(store.root / ids[-1], payload)
        broken = folder / "models" / payload.replace("/", "")
        broken.mkdir(parents=True, exist_ok=True)
        write_file(broken / "config.json", json.dumps({"model_type": payload}).encode())
        tokenizer = train_bpe(text * 4, 260 + place)
        own_vocabularies.save(word, tokenizer, payload, home=folder)
    store.close()
    people = ProgressStore(folder)
    people.rename(word, PAYLOADS[1][:40])
    classes = ClassStore(folder)
    rooms = [classes.create(word, payload[:60]) for payload in PAYLOADS]
    for place, payload in enumerate(PAYLOADS):  # pupils of the first class, with such names
        other = f"{place:032x}"
        people.rename(other, payload[:40])
        people.join(other, rooms[0])
    return ids


def _records(folder: Path, payload: str) -> None:
    """What a run measured and wrote."""
    evals = [
        {"kind": "eval", "step": step, "train_loss": 3.0 - step / 10, "val_loss": 3.1 - step / 10,
         "bits_per_byte": 4.0, "seconds": 1.0 * step}
        for step in (0, 5)
    ]  # fmt: skip
    wrote = {"kind": "sample", "step": 5, "prompt": payload, "text": payload}
    said = {"kind": "notice", "step": 5, "message": payload}
    lines = "".join(json.dumps(record) + "\n" for record in [*evals, wrote, said])
    (folder / "metrics.jsonl").write_text(lines, "utf-8")
    status = json.loads((folder / "status.json").read_text("utf-8"))
    (folder / "status.json").write_text(json.dumps({**status, "step": 5, "message": payload}), "utf-8")


def addresses(ids: list[str], toy: bool) -> Iterable[tuple[str, dict[str, str]]]:
    """Pages, and what stands in their address."""
    text = " ".join(PAYLOADS)
    odd = {name: PAYLOADS[0] for name in ("model", "run", "class", "view", "lesson", "word", "lang", "hide")}
    pages = ("tokens", "training", "generation", "teacher") if toy else PAGES
    for page in pages:
        yield page, {"text": text}
    for watch in ("runs", "class") if toy else ("train", "one-step", "time-machine", "runs", "class"):
        yield "training", {"watch": watch, "run": ids[1]}
    for page in () if toy else PAGES:
        yield page, {**odd, "hidden": PAYLOADS[1], "set": PAYLOADS[2], "desk": PAYLOADS[4]}
    for run in ids[:2] if toy else ids:
        yield "training", {"watch": "train", "run": run}


def plain(place: str) -> bool:
    """Whether a string of a message is drawn as plain text.

    >>> plain("delta.new_element.text.body"), plain("delta.new_element.markdown.body")
    (True, False)
    """
    parts = place.split(".")
    if parts[0] != "delta":
        return parts[0] != "page_config_changed"  # the address, sent back
    if len(parts) < 4 or parts[3] in NOT_PLAIN:
        return False
    return parts[2] in PLAIN or ".".join(parts[2:4]) in PLAIN


def tags(spec_of: str) -> list[str]:
    """Payloads that a figure would read as tags: Plotly knows a few, such as links."""
    return [payload for payload in PAYLOADS if "<" in payload and payload[:9] in spec_of]


def raw(spy: Spy) -> tuple[int, list[str]]:
    """How many strings with a payload were sent, and those that a browser would not draw as text."""
    n, bad = 0, list[str]()
    for message in (message for tab in spy.listeners for message in tab.heard):
        for place, said in strings(message):
            if MARK not in said:
                continue
            n += 1
            if place.endswith(("plotly_chart.spec", "html.body")):  # there only tags mean something
                bad += [f"{place}: {payload}" for payload in tags(said)]
            elif not plain(place):
                found = [begin for begin in BEGINNINGS if re.search(rf"(?<!\\){re.escape(begin)}", said)]
                bad += [f"{place}: {begin} in {said[:120]!r}" for begin in found]
    return n, bad


async def sent(spy: Spy, ids: list[str], toy: bool) -> Check:
    """Open pages with all of it on them."""
    errors, pages = list[str](), 0
    for page, query in addresses(ids, toy):
        tab = await spy.listen(page, **query)
        pages += 1
        errors += tab.exceptions()
        await tab.close()
    n, bad = raw(spy)
    seen = f"{len(PAYLOADS)} texts in 10 kinds of places, {pages} pages, {n} strings of theirs sent; " + (
        "; ".join(bad[:3]) or "none where signs have a meaning"
    )
    seen += f"; {len(errors)} errors on the screen {errors[:1] or ''}"
    return Check("What somebody types is shown as text, never read as HTML, Markdown, a formula or a link",
                 seen, n > 50 and not bad and not errors)  # fmt: skip


def scripts(folder: Path = ROOT / "ui" / "components") -> Check:
    """Read the components' scripts and pages: they write text, never HTML."""
    files = sorted([*folder.glob("*.js"), *folder.glob("*.html")])
    found = [
        f"{file.name}: {hit.group()}" for file in files for hit in DANGEROUS.finditer(file.read_text("utf-8"))
    ]
    return Check("The browser's side of a component puts texts on the page as text only",
                 f"{len(files)} files read, {', '.join(found[:3]) or 'no way to write HTML in them'}",
                 bool(files) and not found)  # fmt: skip
