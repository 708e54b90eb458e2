"""No word of the screen stands in the code: pages, ui and viz say everything through the text files."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = sorted(path for room in ("pages", "ui", "viz") for path in (ROOT / room).rglob("*.py"))
SCRIPTS = sorted((ROOT / "ui/components").glob("*.js"))
LOOKS = sorted((ROOT / "ui/components").glob("*.css"))
MARKUP = sorted((ROOT / "ui/components").glob("*.html"))

TWO_WORDS = re.compile(r"[^\W\d_]+[’'\w]*[,;:.!?)»”]*\s+[(«“]?[^\W\d_]{2,}")
WORD = re.compile(r"[^\W\d_]{2,}")
LATEX = re.compile(r"\\[a-zA-Z]+")
LATEX_WORDS = re.compile(r"\\(?:text|textrm|textbf|mbox|operatorname)\{([^{}]*)\}")
SUBSCRIPT = re.compile(r"_\{?\\text\{(?:model|head|ff|flat|bytes|kv)\}\}?")  # names, the same everywhere
SIGNS = {  # words of formulas that are the same in all languages
    "KL", "JS", "LSE", "PLL", "PC", "MLP", "CLM", "MLM", "GELU", "SiLU", "softmax", "rank", "model", "id",
    "ids", "logits", "bytes", "nat", "nats", "bits", "rad", "tokens",
}  # fmt: skip
MARKUP_AROUND = re.compile(r":(?:small|[\0a-z-]+-badge)\[|<[^>]*>")  # what stands around words on the screen
PLACE = re.compile(r"(?:top|middle|bottom) (?:left|center|right)|[xy]\d? domain")  # how Plotly names places
CLASSES = set(re.findall(r"\.([a-z][\w-]*)", "".join(path.read_text("utf-8") for path in LOOKS)))
STYLE = re.compile(r"^\s*[\w.-]+\s*[:{][^ ]|\{\s*[\w-]+:\s|monospace$")  # of a page, or a typeface
NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")
# calls whose first argument is shown, and arguments of any call that are
SHOWN_FIRST = {
    "title", "header", "subheader", "write", "markdown", "caption", "text", "info", "warning", "error",
    "success", "metric", "button", "download_button", "toggle", "checkbox", "selectbox", "radio", "slider",
    "select_slider", "segmented_control", "pills", "multiselect", "number_input", "text_input", "text_area",
    "file_uploader", "expander", "popover", "spinner", "status", "toast", "link_button", "Step",
}  # fmt: skip
SHOWN_AS = {
    "label", "title", "help", "placeholder", "caption", "alt", "x_title", "y_title", "title_text", "unit",
}  # fmt: skip
NEVER_SHOWN = {
    "say", "counted", "words", "later", "table", "compile", "sub", "fullmatch", "search", "match", "findall",
    "html", "component",
}  # fmt: skip

# Names of values that are data: texts for a model to read, in whatever language it has learned.
DATA: dict[str, dict[str, str]] = {
    "pages/embeddings.py": {"NAME": "a story's beginning"},
    "pages/home.py": {"TRY": "beginnings of stories and of something else"},
    "pages/tokens.py": dict.fromkeys(("FAMILY", "SPACES", "CONTROL", "CODE"), "texts to cut"),
    "ui/glossary.py": {"_OF_PAGE": "names of entries"},
    "ui/glossary_words.py": {"WORDS": "names of entries and of places"},
    "ui/lesson.py": {"RECALL": "a story up to a name"},
    "ui/lesson_list.py": dict.fromkeys(
        ("OPENING", "SENTENCE", "SHUFFLED", "STRANGE", "EMOJI", "RARE"), "texts for a model to read"
    ),
    "ui/masking_batch.py": {"SPECIAL": "a story with a gap"},
    "ui/masking_fill.py": dict.fromkeys(("BEAR", "FOUR", "TWICE"), "stories and a part to hide"),
    "ui/masking_limits.py": {"TRY": "a story's beginning"},
    "ui/masking_meaning.py": dict.fromkeys(("COLD", "HER", "LEFT"), "words with two meanings"),
    "ui/masking_pair.py": {"NURSERY": "a text to learn from"},
    "ui/masking_sentence.py": dict.fromkeys(("TWICE", "TYPED"), "stories with a gap"),
    "ui/meaning_sets.py": {"EXAMPLE": "a sentence of the stories"},
    "ui/session.py": {"DEFAULT_TEXT": "a story's beginning"},
    "ui/teacher_table.py": {"WHEN": "a form of times"},
    "ui/tokens_languages.py": {"SENTENCES": "the same in many languages"},
    "ui/tuning_answers.py": {"OWN": "pairs to learn from"},
    "ui/tuning_pairs.py": {"EXAMPLE": "a pair to learn from", "NAMES": "as runs keep them"},
    "ui/tuning_preferences.py": {"OWN": "pairs to learn from"},
    "ui/tuning_text.py": {"RHYME": "a text to learn from"},
    "pages/compare.py": {"STRANGE": "a story", "WORLD": "sentences to read"},
    "pages/next_token.py": {
        "OPENING": "a story's beginning",
        "STRANGE": "a story's beginning",
        **dict.fromkeys(("FACTS", "SWAP"), "sentences to read"),
    },
    "ui/infill_view.py": dict.fromkeys(("CAPITAL", "MILK"), "sentences with a gap"),
    "ui/head_find.py": {"REPEATED": "a text that repeats itself"},
}
# Single strings that look like words.
EXCEPT: dict[str, dict[str, str]] = {
    "pages/home.py": {"Loupe": "a name"},
    "ui/components/_shared.py": {
        "\0\n\0\nexport default () => { meeting(\0).bring(\0) }\n": "JavaScript",
    },
    "viz/kept.py": {
        "\0 has no key: leave this figure without `kept`, or give it data.": "for a programmer",
    },
    "ui/diagram.py": {
        "eᶻ / Σ eᶻ": "a formula",
        "There is no flow \0: take one of \0.": "for a programmer",
        "The flow \0 has no box \0.": "for a programmer",
    },
    "ui/lesson_list.py": {
        "Once upon a time, there was a princess called Lily": "a text to read",
        "x1 … xT,  xt ∈ {0 … V − 1}": "a formula",
        "pv = ezv / ∑u ezu": "a formula",
        "L = −(1/N) ∑t ln p(xt),  PPL = eL": "a formula",
    },
    "viz/masking.py": {"not scored": "a name of a group, said by the text file"},
    "ui/link_panel.py": {"streamlit run app.py --server.address 0.0.0.0": "a command"},
    "ui/inside_parts.py": {
        "norm bias": "a kind of part",
        "attention bias": "a kind of part",
        "head bias": "a kind of part",
    },
}


def written(node: ast.expr) -> str:
    """The text of a literal; of an f-string with a mark where a value goes."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in parts)
    return MARKUP_AROUND.sub("", text)


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def has_words(text: str) -> bool:
    """Whether a literal has two words; of a formula only the words between its signs count."""
    if LATEX.search(text):
        inside = LATEX_WORDS.findall(SUBSCRIPT.sub("", text))
        return any(WORD.search(part) for part in inside if part.strip() not in SIGNS)
    return bool(TWO_WORDS.search(text)) and not STYLE.search(text) and not PLACE.fullmatch(text)


def parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def is_data(node: ast.AST, above: dict[ast.AST, ast.AST], named: set[str]) -> bool:
    """Whether a literal belongs to a module's value of one of these names."""
    while node in above:
        node = above[node]
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return bool(
                {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
                & named
            )
    return False


def is_shown(node: ast.expr, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether a literal is an argument that is put on the screen, where one word is enough."""
    parent = above[node]
    if isinstance(parent, ast.keyword):
        return parent.arg in SHOWN_AS
    if not isinstance(parent, ast.Call) or parent.args[:1] != [node] or name_of(parent) not in SHOWN_FIRST:
        return False
    if isinstance(parent.func, ast.Attribute):
        return ast.unparse(parent.func.value) not in ("nav", "address")
    return name_of(parent) == "Step"


def is_type(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether a literal is part of an annotation, or a key in brackets."""
    while node in above:
        below, node = node, above[node]
        if isinstance(node, ast.arg) or isinstance(node, ast.Subscript) and node.slice is below:
            return True
        if isinstance(node, ast.FunctionDef | ast.AnnAssign):
            return below is (node.returns if isinstance(node, ast.FunctionDef) else node.annotation)
    return False


def is_never_shown(call: ast.Call) -> bool:
    """Whether what a call is given never comes to the screen: the plain log is for who runs the server."""
    return name_of(call) in NEVER_SHOWN or ast.unparse(call.func).startswith("plain_log.")


def literals(tree: ast.Module, above: dict[ast.AST, ast.AST]) -> Iterator[ast.expr]:
    """All strings that are not documentation, types, keys, or what an assertion says."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr | ast.Constant):
            continue
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            continue
        parent = above[node]
        if isinstance(parent, ast.Expr | ast.JoinedStr | ast.FormattedValue | ast.Assert):
            continue
        if isinstance(parent, ast.Call) and is_never_shown(parent) or is_type(node, above):
            continue
        yield node


def words_in(path: Path) -> list[str]:
    """What a file says by itself: line and text."""
    where = str(path.relative_to(ROOT))
    tree = ast.parse(path.read_text("utf-8"))
    above = parents(tree)
    said = []
    for node in literals(tree, above):
        text = written(node)
        data = is_data(node, above, set(DATA.get(where, {}))) and not LATEX.search(text)
        if data or text in EXCEPT.get(where, {}):
            continue
        shown = is_shown(node, above) and WORD.search(text.replace("\0", " ")) and not NAME.fullmatch(text)
        if has_words(text) or shown:
            said.append(f"{where}:{node.lineno} {text!r}")
    return said


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_stands_in_the_code(path: Path) -> None:
    said = words_in(path)
    assert not said, "\n".join(said)


def scripted(path: Path) -> list[str]:
    """Strings of a script with two words, but for its comments, selectors, styles, and names of classes."""
    code = re.sub(r"^\s*//.*$|(?<=\s)// .*$", "", path.read_text("utf-8"), flags=re.M)
    found = re.findall(r'"([^"\n]*)"|`([^`]*)`', code)
    texts = [re.sub(r"\$\{[^}]*\}", "\0", one or other) for one, other in found]
    said = [text for text in texts if TWO_WORDS.search(text) and not re.search(r"[<>=#;]|:scope|\w\(", text)]
    return [text for text in said if not set(text.split()) <= CLASSES]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_told_their_words(path: Path) -> None:
    assert not scripted(path)


@pytest.mark.parametrize("path", MARKUP, ids=lambda path: path.name)
def test_markup_holds_no_words(path: Path) -> None:
    text = path.read_text("utf-8")
    attributes = re.findall(r'(?:aria-label|title|alt|placeholder)="([^"]*)"', text)
    left = [part.strip() for part in [*re.sub(r"<[^>]*>", "\0", text).split("\0"), *attributes]]
    assert not [part for part in left if WORD.search(part) and part != "PNG"]


def test_words_are_told_from_names_and_signs() -> None:
    words = ("Choose one", "the text, read twice", r"\text{loss} = 1", r"p_{\text{true}}", "\0 tokens left")
    names = ("choose_one", "1px", r"d_{\text{model}} \cdot 2", r"D_{\text{KL}}", "top center", "\0 %")
    assert [text for text in (*words, *names) if has_words(text)] == list(words)


if __name__ == "__main__":
    for path in CODE:
        for line in words_in(path):
            print(line)
