"""A small grammar with registers, and all its stories with their probabilities, as plain loops."""

from itertools import product

from engine.grammar import Grammar, split_terminals

RULES = """
# two heroes, three names (Ann may be she or he), places that begin alike, a part that may be empty
forms she: he=she; his=her
forms he: he=he; his=his

story:
  3 | Once, {a} {h=hero} called {n=h.names} hid {n.his} {c=colour} kite {p=spot}. {search} {end}
  1 | Look, {a} {h=hero}! {A} {g=hero!h} said, “{H}!”

search:
  {n.He} looked {q=spot!p} {again}.

hero:
  2 | cat ; names=girl
  1 | owl ; names=boy

girl:
  2 | Mia ; she
  1 | Ann ; she

boy:
  Ann ; he

colour:
  3 | red
  1 | orange

spot:
  2 | by the sea
  1 | by the old sea
  1 | here

again:
  2 |
  1 | [twice/again]

end:
  1 | There lay {a} {c} kite, {p}.
  3 | “{C} kite!” cried {n}.
"""


def article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def all_stories() -> dict[str, float]:
    """Every story and its probability, by plain loops: the text does not come from the engine."""
    stories: dict[str, float] = {}
    names = [
        ("cat", "Mia", "She", "her", 2 / 3 * 2 / 3),
        ("cat", "Ann", "She", "her", 2 / 3 * 1 / 3),
        ("owl", "Ann", "He", "his", 1 / 3),
    ]
    colours = [("red", 3 / 4), ("orange", 1 / 4)]
    spots = {"by the sea": 2, "by the old sea": 1, "here": 1}
    agains = [("", 2 / 3), (" twice", 1 / 6), (" again", 1 / 6)]
    for (hero, name, he, his, p_name), (colour, p_colour), place, (again, p_again) in product(
        names, colours, spots, agains
    ):
        others = {spot: weight for spot, weight in spots.items() if spot != place}
        for other, weight in others.items():
            p = 3 / 4 * p_name * p_colour * spots[place] / 4 * weight / sum(others.values()) * p_again
            begin = f"Once, {article(hero)} {hero} called {name} hid {his} {colour} kite {place}. "
            middle = f"{he} looked {other}{again}. "
            ends = {
                f"There lay {article(colour)} {colour} kite, {place}.\n": 1 / 4,
                f"“{colour.capitalize()} kite!” cried {name}.\n": 3 / 4,
            }
            for end, p_end in ends.items():
                stories[begin + middle + end] = p * p_end
    stories["Look, a cat! An owl said, “Cat!”\n"] = 1 / 4 * 2 / 3
    stories["Look, an owl! A cat said, “Owl!”\n"] = 1 / 4 * 1 / 3
    return stories


def small_grammar() -> Grammar:
    return Grammar(RULES)


class WordTokenizer:
    """Every terminal is a token; ids are given as they come."""

    def __init__(self, text: str) -> None:
        self.terminals = sorted(set(split_terminals(text)))
        self.ids = {terminal: index for index, terminal in enumerate(self.terminals)}

    @property
    def vocab_size(self) -> int:
        return len(self.terminals)

    def encode(self, text: str) -> list[int]:
        return [self.ids[terminal] for terminal in split_terminals(text)]

    def token_bytes(self, token_id: int) -> bytes:
        return self.terminals[token_id].encode()
