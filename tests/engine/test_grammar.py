"""The story source: its notation, its stories, their probabilities."""

import hashlib
import math
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engine import tokenizers
from engine.automaton import takes_an
from engine.grammar import RULES_PATH, Grammar, count_words, default_grammar, split_terminals, story_text
from tests.engine.small_stories import RULES, all_stories, small_grammar

ROOT = Path(__file__).parents[2]
STORIES = story_text(11, 1200).splitlines(keepends=True)
WORD = r"[^\W\d_]+"


# ---- a small grammar whose stories are all known ----


def test_the_loops_list_every_story_once() -> None:
    assert math.fsum(all_stories().values()) == pytest.approx(1.0, abs=1e-12)


def test_log_prob_of_every_story_is_the_enumerated_one() -> None:
    grammar = small_grammar()
    for story, probability in all_stories().items():
        assert grammar.log_prob(story) == pytest.approx(math.log(probability), abs=1e-12)


def test_samples_come_as_often_as_their_probability_says() -> None:
    grammar, rng, stories, n = small_grammar(), random.Random(5), all_stories(), 20_000
    counts = Counter(grammar.story(rng) for _ in range(n))
    assert counts.keys() <= stories.keys()
    chi_square = sum((counts[story] - n * p) ** 2 / (n * p) for story, p in stories.items())
    freedom = len(stories) - 1
    assert abs(chi_square - freedom) < 4 * math.sqrt(2 * freedom)


def test_entropy_rate_is_the_enumerated_entropy_per_word() -> None:
    stories = all_stories()
    entropy = -math.fsum(p * math.log(p) for p in stories.values())
    words = math.fsum(p * len(re.findall(WORD, story)) for story, p in stories.items())
    estimate = small_grammar().entropy_rate(4000, seed=3)
    assert abs(estimate.mean - entropy / words) < 4 * estimate.error
    assert estimate.error < 0.01


def test_endings_are_the_enumerated_ones() -> None:
    expected = Counter[str]()
    for story, p in all_stories().items():
        expected[split_terminals(story)[-1]] += p  # type: ignore[assignment]
    assert small_grammar().endings == pytest.approx(dict(expected), abs=1e-12)


def test_texts_that_are_no_stories_have_no_probability() -> None:
    grammar = small_grammar()
    story = "Look, a cat! An owl said, “Cat!”\n"
    assert grammar.log_prob(story * 2) == pytest.approx(2 * math.log(1 / 6), abs=1e-12)
    for wrong in (
        "",
        "Look",
        story[:-1],
        story.replace("An owl", "A owl"),
        story.replace("Cat!", "Owl!"),
        " " + story,
    ):
        assert grammar.log_prob(wrong) == -math.inf


def test_variety_is_an_exponent_of_the_weights() -> None:
    flat = Grammar(RULES, variety=0.0)  # 2 alternatives, then 2 heroes: 1/2 * 1/2
    assert flat.log_prob("Look, an owl! A cat said, “Owl!”\n") == pytest.approx(math.log(1 / 4), abs=1e-12)
    sharp = Grammar(RULES, variety=2.0)  # weights 9 and 1, then 4 and 1
    assert sharp.log_prob("Look, an owl! A cat said, “Owl!”\n") == pytest.approx(math.log(1 / 50), abs=1e-12)
    assert len({flat.version, sharp.version, small_grammar().version}) == 3


def test_rules_may_recur() -> None:
    grammar = Grammar("story:\n  {box}.\nbox:\n  2 | stone\n  1 | big {box} box\n")
    assert grammar.log_prob("stone.\n") == pytest.approx(math.log(2 / 3), abs=1e-12)
    assert grammar.log_prob("big big stone box box.\n") == pytest.approx(math.log(2 / 27), abs=1e-12)
    assert grammar.log_prob("big big stone box.\n") == -math.inf


def test_an_article_looks_through_empty_parts_and_drawn_words() -> None:
    grammar = Grammar(
        "story:\n  {A} {look} {x=thing} met {a} {x}.\nlook:\n  1 |\n  2 | old\nthing:\n  ant\n  bee\n"
    )
    probabilities = {
        "An ant met an ant.\n": 1 / 6,
        "A bee met a bee.\n": 1 / 6,
        "An old ant met an ant.\n": 1 / 3,
        "An old bee met a bee.\n": 1 / 3,
    }
    for story, p in probabilities.items():
        assert grammar.log_prob(story) == pytest.approx(math.log(p), abs=1e-12)
    rng = random.Random(0)
    assert {grammar.story(rng) for _ in range(200)} == probabilities.keys()


def test_takes_an_goes_by_sound() -> None:
    assert [
        word for word in ("owl", "useful", "hour", "house", "unicorn", "old", "one") if takes_an(word)
    ] == [
        "owl",
        "hour",
        "old",
    ]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("tale:\n  Hi.\n", "one called `story`"),
        ("story:\n  {who} slept.\n", "'who', which is neither a rule nor a register"),
        ("story:\n", "has no alternatives"),
        ("  Hi.\n", "line 1 .*before the first rule name"),
        ("story:\n  Hi {two words}.\n", "line 2 .*not understood"),
        ("story:\n  Hi 5.\n", "line 2 .*numbers spelt out"),
        ("story:\n  Hi [one/two.\n", r"line 2 .*'\['"),
        ("story:\n  {x=who} slept.\nwho:\n  {b}\nb:\n  Ann\n", "must be plain words"),
        ("story:\n  {who=who} slept.\nwho:\n  Ann\n", "names of rules and of registers"),
        ("story:\n  {x=who} slept.\nwho:\n  Ann ; shee\n", "no `forms shee:`"),
        ("story:\n  “Hi,” said Ann.\n", "must begin with a word"),
        ("story:\n  Ann said, “{hi}”\nhi:\n  Hi.\n", "punctuation of two parts can meet"),
    ],
)
def test_wrong_rules_are_refused_with_the_reason(rules: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Grammar(rules)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("story:\n  {x} and {x=who}.\nwho:\n  Ann\n", "'x' is read before"),
        ("story:\n  {x=who} and {x.him}.\nwho:\n  Ann\n", "no form 'him'"),
        ("story:\n  {x=who} and {y=who!x}.\nwho:\n  Ann\n", "no alternative left"),
    ],
)
def test_registers_that_can_not_be_read_are_named(rules: str, message: str) -> None:
    grammar = Grammar(rules)
    with pytest.raises(ValueError, match=message):
        grammar.story(random.Random(0))
    with pytest.raises(ValueError, match=message):
        grammar.log_prob("Ann and Ann.\n")


# ---- the stories of the product ----


def test_there_are_enough_plots_words_and_choices() -> None:
    grammar = default_grammar()
    assert len(grammar.arcs) >= 12
    assert len(set(grammar.arcs)) == len(grammar.arcs)
    said = {word.lower() for word in re.findall(WORD, "".join(STORIES))}
    assert len(said) >= 350
    assert said <= grammar.words
    estimate = grammar.entropy_rate(300, seed=1)
    assert abs(estimate.mean - 0.55) + 3 * estimate.error < 0.15


def test_stories_have_60_to_130_words_and_end_with_a_line_end() -> None:
    lengths = [count_words(story) for story in STORIES]
    assert lengths[0] == len(re.findall(WORD, STORIES[0]))
    assert min(lengths) >= 60
    assert sum(length > 130 for length in lengths) <= len(lengths) / 100
    assert all(story.endswith((".\n", "!”\n")) for story in STORIES)


def test_every_plot_is_told() -> None:
    """Each plot has a sentence of its own; all are equally likely, 1/15 of the stories within five sigma."""
    marks = (
        "Have you seen", "so that nobody could", "You kept your promise", " wanted to bake", "It was not a ",
        "You shared your", "ran a race", "What will you become", "saw a star fall", "telling the truth",
        " was stuck ", "Let us mix them", "found an old map", "my mother", " to knit ",
    )  # fmt: skip
    assert len(marks) == len(default_grammar().arcs)
    counts = [sum(mark in story for story in STORIES) for mark in marks]
    share, n = 1 / len(marks), len(STORIES)
    assert sum(counts) == n
    assert all(abs(count - n * share) < 5 * math.sqrt(n * share * (1 - share)) for count in counts)


def test_many_stories_begin_once_upon_a_time_with_princess_dragon_and_robot_next() -> None:
    begin = "Once upon a time, there was a "
    told = [story for story in STORIES if story.startswith(begin)]
    assert len(told) / len(STORIES) >= 0.35
    words = Counter(story[len(begin) :].split()[0] for story in told)
    assert all(words[hero] / len(told) > 0.05 for hero in ("princess", "dragon", "robot"))


def test_pronouns_agree_with_the_name_to_the_end() -> None:
    pronouns = {
        "She": "Lily Mia Rosa Anna Nora Zoe",
        "He": "Tom Max Leo Ben Oscar Finn",
        "It": "Bolt Beep Pixel Tick Zip",
    }
    of_name = {name: pronoun for pronoun, names in pronouns.items() for name in names.split()}
    own = {"She": {"she", "her"}, "He": {"he", "his"}, "It": {"it", "its"}}
    counted = 0
    for story in STORIES:
        name = re.search(rf"called ({WORD})", story).group(1)  # type: ignore[union-attr]
        if match := re.search(r"called \w+\. (She|He|It) ", story):
            assert match[1] == of_name[name]
            counted += 1
        people = {word.lower() for word in re.findall(r"\b(?:[Ss]he|[Hh]er|[Hh]e|[Hh]is)\b", story)}
        if "my mother" not in story:  # the mother is a she as well
            assert people <= own[of_name[name]], story
    assert counted > len(STORIES) / 3


def test_what_was_hidden_lies_where_it_was_hidden() -> None:
    pattern = rf"hid an? \w+ (\w+) (\w+) (.+?), so that .* “It is (.+?)\.” And (.+?) lay the (\w+) ({WORD}), "
    tales = [story for story in STORIES if "so that nobody could" in story]
    assert len(tales) > 50
    for story in tales:
        colour, thing, place, said, found, colour_again, thing_again = re.search(pattern, story).groups()  # type: ignore[union-attr]
        assert place == said == found
        assert (colour, thing) == (colour_again, thing_again)


def test_the_lost_thing_is_neither_place_searched_and_lies_where_the_friend_says() -> None:
    pattern = r"looked (.+?) and (.+?), but found only .* “It is (.+?)\.” .* there, and (.+?) lay the "
    tales = [story for story in STORIES if "Have you seen" in story]
    assert len(tales) > 50
    for story in tales:
        first, second, told, found = re.search(pattern, story).groups()  # type: ignore[union-attr]
        assert told == found
        assert len({first, second, found}) == 3


def test_the_promised_gift_is_the_one_that_is_brought() -> None:
    pattern = rf"“An? \w+ (\w+ {WORD}),” .* at the door with an? (\w+ {WORD})\."
    tales = [story for story in STORIES if "You kept your promise" in story]
    assert len(tales) > 50
    for story in tales:
        promised, brought = re.search(pattern, story).groups()  # type: ignore[union-attr]
        assert promised == brought


def test_the_two_paints_give_the_colour_that_was_wanted() -> None:
    mixtures = {
        "green": {"blue", "yellow"}, "orange": {"red", "yellow"}, "purple": {"red", "blue"},
        "pink": {"red", "white"}, "grey": {"black", "white"},
    }  # fmt: skip
    pattern = (
        r"to paint \w+ \w+ (\w+) (\w+)\. .* stirred the (\w+) and the (\w+) in .* the (\w+) was (\w+), and"
    )
    tales = [story for story in STORIES if "Let us mix them" in story]
    assert len(tales) > 50
    for story in tales:
        thing, wanted, one, two, painted, result = re.search(pattern, story).groups()  # type: ignore[union-attr]
        assert mixtures[wanted] == {one, two}
        assert (thing, wanted) == (painted, result)


def test_articles_suit_the_next_word() -> None:
    text = "".join(STORIES)
    assert not re.findall(r"\b[Aa] [aeiou]\w*", text)
    assert not re.findall(r"\b[Aa]n [^aeiou]\w*", text)
    assert re.findall(r"\ban (?:orange|old|elegant|owl)\b", text)


def test_sentences_are_clean() -> None:
    text = "".join(STORIES)
    assert not re.findall(r"  | [,.!?”]|“ |\s\n", text)
    assert not re.findall(r"[.!?] [a-z]", text)  # a sentence begins with a capital
    assert all(story.count("“") == story.count("”") for story in STORIES)
    assert not re.search(r"[0-9'’_]", text)


# ---- seeds, versions, borders ----


def test_a_seed_gives_the_same_stories_in_every_process() -> None:
    text = story_text(7, 5)
    assert text.startswith(story_text(7, 3))
    assert text != story_text(8, 5)
    code = "import sys; from engine.grammar import story_text as t; sys.stdout.buffer.write(t(7, 5).encode())"
    environment = os.environ | {"PYTHONHASHSEED": "99"}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    assert told.stdout.decode() == text


def test_the_version_is_that_of_the_rules() -> None:
    rules = RULES_PATH.read_text(encoding="utf-8")
    assert default_grammar().version == hashlib.sha256(rules.encode()).hexdigest()[:12]
    assert Grammar(rules + "\n").version != default_grammar().version
    assert Grammar.load(RULES_PATH).version == default_grammar().version


def borders_hold(tokenizer: tokenizers.Tokenizer) -> bool:
    text = "".join(STORIES)
    pieces = {terminal: tokenizer.encode(terminal) for terminal in set(split_terminals(text))}
    return tokenizer.encode(text) == [
        token for terminal in split_terminals(text) for token in pieces[terminal]
    ]


def test_terminals_put_together_are_the_text() -> None:
    text = "".join(STORIES)
    assert "".join(split_terminals(text)) == text
    assert split_terminals("Hi,” said a cat. “Oh!”\n") == [
        "Hi",
        ",”",
        " said",
        " a",
        " cat",
        ".",
        " “",
        "Oh",
        "!”\n",
    ]


@pytest.mark.parametrize("kind", ["bytes", "characters", "BPE 300", "BPE 1024"])
def test_own_tokens_stay_inside_terminals(kind: str) -> None:
    text = story_text(1, 300)
    if kind == "bytes":
        tokenizer = tokenizers.byte_tokenizer()
    elif kind == "characters":
        tokenizer = tokenizers.char_tokenizer("".join(STORIES))
    else:
        tokenizer = tokenizers.train_bpe(text, int(kind.split()[1]))
    assert borders_hold(tokenizer)


@pytest.mark.parametrize("name", ["gpt2", "cl100k_base", "o200k_base"])
def test_published_tokens_stay_inside_terminals(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.environ.get("LOUPE_TEST_VOCAB")
    if not folder:
        pytest.skip("LOUPE_TEST_VOCAB names no folder with the published vocabularies")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", folder)
    assert borders_hold(tokenizers.load_vocabulary(name))
