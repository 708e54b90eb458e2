"""Which words a page uses, with links to the glossary."""

import streamlit as st

from ui import glossary_words, nav
from wording import words

say = words("ui.glossary")

_OF_PAGE = {
    "home": "token id vocabulary logit softmax probability",
    "lessons": "language-model token attention softmax loss perplexity step clm mlm temperature scaling-law",
    "examples": "chain-rule joint-probability one-hot embedding attention logit softmax sigmoid "
    "surprisal cross-entropy perplexity shift batch window temperature generation "
    "context-length scaling-law",
    "exercises": "probability softmax logit loss perplexity bits-per-byte shift target batch entropy",
    "guess": "surprisal nat n-gram true-distribution validation probability",
    "tokens": "token id vocabulary vocab-size tokenizer byte bpe merge special-token",
    "embeddings": "embedding one-hot id d-model position rotary cosine neighbour",
    "next_token": "logit softmax probability log-probability chain-rule surprisal nat entropy loss "
    "perplexity bits-per-byte kl true-distribution rank context-length",
    "attention": "attention query key value head attention-weights causal-mask d-head kv-head "
    "induction-head rotary",
    "inside": "transformer block residual-stream attention mlp layer-norm logit-lens ablation head "
    "activation",
    "compare": "surprisal loss perplexity bits-per-byte validation checkpoint parameter",
    "generation": "generation prompt temperature top-k top-p min-p repetition-penalty greedy sampling "
    "beam seed kv-cache softmax",
    "training": "loss step batch window gradient backpropagation adam muon learning-rate warmup schedule "
    "weight-decay clipping epoch training-text validation overfitting baseline n-gram "
    "random-guess floor checkpoint quantization parameter d-model d-ff bits-per-byte previous-token-mixing",
    "experiments": "validation contamination overfitting learning-rate context-length scaling-law "
    "compute flop compute-optimal parameter bits-per-byte floor",
    "tuning": "fine-tuning supervised-fine-tuning instruction frozen forgetting preference dpo "
    "reward-margin sigmoid loss step learning-rate validation floor",
    "masking": "mlm clm mask-token mask-prob target causal-mask context pseudo-log-likelihood "
    "self-supervised loss",
}
_WITHOUT = ("glossary", "teacher", "selftest")  # one is all words, the others teach none


def words_of(page: str) -> list[str]:
    """The words that a page uses, names in the glossary; the order is that of the page's ideas."""
    return _OF_PAGE.get(page, "").split()


def draw(page: str) -> None:
    """For the sidebar: the words on this page, each a link."""
    if page in _WITHOUT:
        return
    with (
        st.expander(say("heading"), icon=":material/menu_book:"),
        st.container(horizontal=True, gap="xsmall", key="words_of_page"),
    ):
        for word in words_of(page):
            nav.link("glossary", glossary_words.name(word), icon="", word=word)
        nav.link("glossary", say("all"))
