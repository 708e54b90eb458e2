"""An error whose sentence is made when it is read, in the language of who reads it then.

What runs in a thread or for another person doesn't know that language.
"""

from wording import words

say = words("engine.refused")


def broken_entry(error: Exception) -> str:
    """What is wrong with a file whose entries are not as they should be, in words for people.

    Python's own words, such as "unhashable type", say nothing to who has the file.

    >>> broken_entry(KeyError("vocab")), broken_entry(TypeError("unhashable type: 'list'"))
    ("it has no entry 'vocab'", 'one of its entries is of another kind than it should be')
    """
    return (
        say("lacks", name=repr(error.args[0])[:80]) if type(error) is KeyError and error.args else say("kind")
    )


class RefusedError(ValueError):
    """A refusal in one sentence.

    >>> from wording import words
    >>> str(RefusedError(words("engine.gguf_file").later("byte_order")))[:22]
    'This GGUF file was wri'

    Args:
        sentence: `say.later("key")`.
        values: for the sentence's places; another refusal among them is told in the same language.
    """

    def __init__(self, sentence: str, **values: object) -> None:
        super().__init__(sentence)
        self._sentence, self._values = sentence, values

    def __str__(self) -> str:
        sentence = str(self._sentence)
        return sentence.format(**self._values) if self._values else sentence
