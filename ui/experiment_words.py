"""The studies in words: the question, what is held equal, and what one can predict."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StudyWords:
    """What a study's section says before there is a result.

    Attributes:
        title: of the section, short.
        question: one sentence.
        setup: what is trained, and what is equal in all runs.
        ask: what to predict.
        choices: answer -> words; empty where a number is asked.
        unit: of the number.
    """

    title: str
    question: str
    setup: str
    ask: str
    choices: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""

    def said(self, answer: str | float) -> str:
        """An answer in words."""
        if isinstance(answer, str):
            return self.choices.get(answer, answer)
        return f"{answer:.0f} {self.unit}"


WORDS = {
    "held-out": StudyWords(
        "Held-out text",
        "Does a falling loss mean that the model gets better?",
        "Two runs of the same small model: one reads 20 stories again and again, the other 4,000. Both are "
        "checked with the same fresh stories.",
        "The model that reads 20 stories again and again: what does its loss on fresh stories do?",
        {
            "falls": "It keeps falling, like the loss in training",
            "stops": "It stops falling and stays there",
            "rises": "It turns and rises",
        },
    ),
    "contamination": StudyWords(
        "Contamination",
        "What happens to a test when its text leaks into the training text?",
        "Four runs on 80 stories each, of which 0, 25, 50 or 100 % of a test text take the place of "
        "others. Each is "
        "then asked about the test text of 20 stories, and about 60 fresh ones.",
        "The whole test text leaks. Which perplexity falls?",
        {
            "leaked": "Only that of the leaked text",
            "both": "That of both texts: it has learned more",
            "neither": "Neither: 20 stories are too few to matter",
        },
    ),
    "learning-rate": StudyWords(
        "Learning rate",
        "How large should the steps be?",
        "Four runs that differ only in the learning rate: 0.00003, 0.004, 0.1 and 10.",
        "What becomes of the run with the largest rate, 10?",
        {
            "best": "It learns fastest and ends lowest",
            "worse": "It learns, but ends higher",
            "lost": "It learns nothing, or breaks off",
        },
    ),
    "context": StudyWords(
        "Context length",
        "How much text should a model look back on?",
        "Five runs with windows of 8 to 128 tokens. The longer the window, the fewer rows in a step: each "
        "step "
        "reads 1,024 tokens.",
        "Which window ends with the lowest loss?",
        {f"{n} tokens": f"{n} tokens" for n in (8, 16, 32, 64, 128)},
    ),
    "shape": StudyWords(
        "Depth or width",
        "With the same number of weights, is it better to be deep or wide?",
        "Four runs with nearly equal weights: 1, 2, 4 or 8 layers, and the width that goes with it.",
        "Which shape ends with the lowest loss?",
        {
            "1 layer of 80": "1 layer, 80 wide",
            "2 layers of 60": "2 layers, 60 wide",
            "4 layers of 44": "4 layers, 44 wide",
            "8 layers of 32": "8 layers, 32 wide",
        },
    ),
    "tokenizer": StudyWords(
        "Tokenizer",
        "Which pieces should a text be cut into?",
        "Four runs on the same text, cut into bytes, characters, and BPE with 384 and 1,024 ids. Each step "
        "reads about the same length of text, in windows of about 192 bytes. A larger vocabulary has a "
        "larger table, so more weights.",
        "Which one needs the fewest bits for a byte of fresh text?",
        {
            "bytes": "Bytes",
            "characters": "Characters",
            "BPE 384": "BPE, 384 ids",
            "BPE 1,024": "BPE, 1,024 ids",
        },
    ),
    "model-size": StudyWords(
        "Model size",
        "Can the loss of a larger model be foretold?",
        "Six runs from 15,000 to 460,000 weights on the same text, 1,000 steps each. A law is fitted "
        "through their "
        "losses; then a model of a million weights is trained to test it.",
        "A model with twice the weights: by how much does its distance shrink to the loss at which more "
        "weights no longer help?",
        unit="%",
    ),
    "text-size": StudyWords(
        "Text size",
        "What is more text worth?",
        "Six runs of the same model on 40 to 1,280 different stories, 600 steps each, the lowest loss on "
        "fresh stories "
        "counted. A law is fitted; then 3,840 stories test it.",
        "Twice the text: by how much does the distance shrink to the loss at which more text no longer "
        "helps?",
        unit="%",
    ),
    "objectives": StudyWords(
        "Objectives",
        "What does a step teach: guessing the next token, or hidden ones?",
        "Two runs on the same text with the same number of steps and tokens: one guesses each next token, "
        "the other "
        "15 % of the tokens that are hidden from it.",
        "Which one comes further from pure guessing to the lowest loss that its own task allows?",
        {"clm": "The one that guesses the next token", "mlm": "The one that guesses hidden tokens",
         "same": "Both the same, within 3 %"},
    ),
}  # fmt: skip
