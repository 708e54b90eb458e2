"""An error whose sentence is made when it is read, in the language of who reads it then.

What runs in a thread or for another person doesn't know that language.
"""


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
