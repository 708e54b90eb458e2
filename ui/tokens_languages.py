"""The same two sentences in many languages: what each language costs in each vocabulary."""

from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from engine.token_costs import count_tokens
from engine.tokenizers import Token
from engine.tokens import repair_text
from ui import session, vocabularies, worked_tokens
from ui.components import show, token_strip
from ui.words import literal
from viz import format_count, language_map
from wording import words

if TYPE_CHECKING:
    from engine.tokenizers import Tokenizer

say = words("ui.tokens_languages")

SENTENCES = {
    "en": "In the morning the children go to school. Today they learn how a machine reads a sentence.",
    "de": "Am Morgen gehen die Kinder zur Schule. Heute lernen sie, wie eine Maschine einen Satz liest.",
    "fr": "Le matin, les enfants vont à l’école. Aujourd’hui, ils apprennent comment une machine lit une "
    "phrase.",
    "es": "Por la mañana los niños van a la escuela. Hoy aprenden cómo una máquina lee una frase.",
    "el": "Το πρωί τα παιδιά πηγαίνουν στο σχολείο. Σήμερα μαθαίνουν πώς μια μηχανή διαβάζει μια πρόταση.",
    "ru": "Утром дети идут в школу. Сегодня они узнают, как машина читает предложение.",
    "ar": "في الصباح يذهب الأطفال إلى المدرسة. واليوم يتعلمون كيف تقرأ الآلة جملة.",
    "he": "בבוקר הילדים הולכים לבית הספר. היום הם לומדים איך מכונה קוראת משפט.",
    "hi": "सुबह बच्चे स्कूल जाते हैं। आज वे सीखते हैं कि एक मशीन वाक्य कैसे पढ़ती है।",
    "th": "ตอนเช้าเด็ก ๆ ไปโรงเรียน วันนี้พวกเขาเรียนรู้ว่าเครื่องจักรอ่านประโยคอย่างไร",
    "zh": "早上，孩子们去上学。今天他们学习机器怎样读一个句子。",
    "ja": "朝、子どもたちは学校へ行きます。今日は、機械がどのように文を読むのかを学びます。",
    "ko": "아침에 아이들은 학교에 갑니다. 오늘은 기계가 문장을 어떻게 읽는지 배웁니다.",
}
REFERENCE = "en"
YOURS = "yours"
DRAWN = 60  # tokens of a sentence
LONGEST = 1000  # characters of one's own translation


class Costs(NamedTuple):
    """Languages, vocabularies (options and names), and (languages, vocabularies) counts of tokens."""

    texts: dict[str, str]  # by the code of the language
    options: list[str]
    names: list[str]
    counts: list[list[int]]


def draw() -> None:
    """The whole view."""
    costs = _costs(_texts())
    language, column = _choose(costs)
    row = list(costs.texts).index(language)
    show(
        language_map([called(code) for code in costs.texts], costs.names, costs.counts, chosen=(row, column)),
        key="tokens_languages",
    )
    _worked(costs, row, column)
    st.text_area(
        say("own"),
        key="tokens_translation",
        max_chars=LONGEST,
        placeholder=SENTENCES[REFERENCE],
        persist_state="session",
        help=say("own_help"),
    )


def called(code: str) -> str:
    """What the screen calls a language."""
    return say(f"called.{code}")


def _texts() -> dict[str, str]:
    own = repair_text(str(st.session_state.get("tokens_translation") or ""))[0].strip()
    return {**SENTENCES, **({YOURS: own} if own else {})}


def _costs(texts: dict[str, str]) -> Costs:
    """Count everything; a few milliseconds."""
    ref = session.model()
    options = [name for name in vocabularies.comparable(ref) if name not in ("stories-512", "stories-1024")]
    everything = "".join(texts.values())
    tokenizers = [vocabularies.find(name, ref, everything) for name in options]
    kept = [i for i, tokenizer in enumerate(tokenizers) if _knows(tokenizer, everything)]
    counts = count_tokens([tokenizers[i] for i in kept], list(texts.values())).tolist()
    options = [options[i] for i in kept]
    return Costs(texts, options, [vocabularies.label(name, ref) for name in options], counts)


def _knows(tokenizer: "Tokenizer", text: str) -> bool:
    try:
        tokenizer.encode(text)
    except ValueError:  # a model of characters
        return False
    return True


def _choose(costs: Costs) -> tuple[str, int]:
    """A language and the column of a vocabulary."""
    for key, there, first in (
        ("tokens_language", list(costs.texts), "hi"),
        ("tokens_language_vocabulary", costs.options, "gpt2" if "gpt2" in costs.options else "model"),
    ):
        if st.session_state.get(key) not in there:
            st.session_state[key] = first if first in there else there[0]
    with st.container(horizontal=True):
        language = st.selectbox(
            say("language"), list(costs.texts), format_func=called, key="tokens_language",
            persist_state="session",
        )  # fmt: skip
        option = st.selectbox(
            say("vocabulary"),
            costs.options,
            format_func=lambda name: costs.names[costs.options.index(name)],
            key="tokens_language_vocabulary",
            persist_state="session",
        )
    return str(language), costs.options.index(str(option))


def _worked(costs: Costs, row: int, column: int) -> None:
    """The chosen cell: both counts, their ratio, and the pieces of the sentence."""
    language, texts = list(costs.texts)[row], list(costs.texts.values())
    reference = list(costs.texts).index(REFERENCE)
    n, n_reference = costs.counts[row][column], costs.counts[reference][column]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.latex(worked_tokens.times(n, n_reference, called(language), called(REFERENCE)), width="content")
        st.markdown(say("price"), width=420)
    tokenizer = vocabularies.find(costs.options[column], session.model(), "".join(texts))
    for which in dict.fromkeys((reference, row)):
        name, n_drawn = called(list(costs.texts)[which]), costs.counts[which][column]
        st.markdown(
            say(
                "sentence_cut_short" if n_drawn > DRAWN else "sentence",
                language=name,
                vocabulary=literal(costs.names[column]),
                characters=len(texts[which]),
                bytes=len(texts[which].encode()),
                tokens=format_count(n_drawn),
                drawn=DRAWN,
            )
        )
        segments = tokenizer.segments(texts[which], most=DRAWN)
        if _is_broken(segments[-1]):
            segments = segments[:-1]  # its other tokens are not drawn
        token_strip(segments, key=f"tokens_sentence_{which == row}", label=name)


def _is_broken(segment: list[Token]) -> bool:
    """Whether these tokens end inside a character."""
    try:
        b"".join(token.data for token in segment).decode()
    except UnicodeDecodeError:
        return True
    return False
