"""Pairs from files, as rows of which only the answers are scored, and pairs from the story grammar."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.aims import AnswersAim
from engine.batches import Batch
from engine.framing import has_chat
from engine.instructions import Pair, encode_pairs, follows, framing_for, padded, read_pairs, story_pairs
from engine.metrics import IGNORED, log_softmax
from engine.pair_files import MOST_BYTES, as_lines, read_rows
from engine.story_pairs import _apart
from engine.tokenizers import byte_tokenizer, char_tokenizer
from engine.training import EvalEvent, train
from tests.engine.small_training import settings, tiny

PLAIN = framing_for(byte_tokenizer())
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda t: t.strip())


def test_the_three_forms_of_a_file_hold_the_same_pairs():
    pairs = [Pair("Hi", "Hello."), Pair("And, now?", "Bye; “bye”!")]
    lines = "".join(json.dumps({"prompt": p.prompt, "answer": p.answer, "n": 1}) + "\n" for p in pairs)
    table = 'Answer,prompt,n\nHello.,Hi,1\n\nBye; “bye”!,"And, now?",2\n'
    columns = "Hi\tHello.\r\n\nAnd, now?\tBye; “bye”!\r\n"
    assert read_pairs(lines) == read_pairs(table) == read_pairs(columns) == pairs
    numbers = [[p.line for p in read_pairs(text)] for text in (lines, table, columns)]
    assert numbers == [[1, 2], [2, 4], [1, 3]]


def test_a_cell_of_a_table_may_hold_lines_and_quotation_marks():
    found = read_pairs('prompt;answer\n"two\nlines";"say ""hi"""\nnext;one\n')
    assert found == [Pair("two\nlines", 'say "hi"'), Pair("next", "one")]
    assert [p.line for p in found] == [2, 4]


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
def test_every_character_survives_as_json_lines(rows):
    pairs = [Pair(*row) for row in rows]
    assert read_pairs(as_lines(pairs)) == pairs


def test_a_byte_order_mark_is_no_text_and_half_a_surrogate_is_repaired():
    assert read_pairs('\ufeff{"prompt": "a\\ud800", "answer": "b"}') == [Pair("a\ufffd", "b")]


@pytest.mark.parametrize(
    "text, line, why",
    [
        ('{"prompt": "a", "answer": "b"}\n\n{"prompt": "a"', 3, "not valid JSON"),
        ('{"prompt": "a", "answer": "b"}\n["a", "b"]', 2, "no object"),
        ('{"prompt": "a", "reply": "b"}', 1, "has no “answer”. It has: prompt, reply"),
        ('{"prompt": "a", "answer": 3}', 1, "“answer” is no text"),
        ('{"prompt": "a", "answer": " \\n"}', 1, "“answer” is blank"),
        ('[\n{"prompt": "a"}]', 1, "one JSON object a line"),
        ("prompt,answer\na,b\nc\n", 3, "has parts: 1, but it needs 2"),
        ('prompt,answer\na,b\n"c,d\n', 3, "Close every quotation mark"),
        ("a\tb\na\tb\tc\n", 2, "has parts: 3"),
        ("just a text\n", 1, "first line is prompt,answer"),
    ],
)
def test_an_error_names_the_line_and_the_way_out(text, line, why):
    with pytest.raises(ValueError, match=rf"[Ll]ine {line}\b") as caught:
        read_pairs(text)
    assert why in str(caught.value)


def test_no_pairs_and_too_many_are_refused():
    with pytest.raises(ValueError, match="There is no pair here"):
        read_pairs(" \n\n")
    row = json.dumps({"prompt": "a", "answer": "b" * 1000}) + "\n"
    with pytest.raises(ValueError, match=f"limit is {MOST_BYTES:,}"):
        read_rows(row * (MOST_BYTES // len(row) + 1), ("prompt", "answer"))


# ---- rows


def test_only_the_answer_and_its_end_are_scored():
    rows = encode_pairs([Pair("ab", "xyz"), Pair("a", "b")], PLAIN, 20)
    batch = rows.batch([0, 1])
    a, b, x, y, z, end = b"abxyz\n"
    assert batch.inputs.tolist() == [[a, b, end, x, y, z], [a, end, b, 0, 0, 0]]
    no = IGNORED
    assert batch.targets.tolist() == [[no, no, x, y, z, end], [no, b, end, no, no, no]]
    assert rows.cut == 0 and rows.n_tokens == 11


def test_a_long_row_loses_the_start_of_its_prompt_and_that_is_counted():
    rows = encode_pairs([Pair("abcdef", "xy"), Pair("a", "b")], PLAIN, 5)
    # 5 tokens are read, so a row has 6 ids: x, y, the end, and 3 of the prompt
    assert bytes(rows.rows[0].tolist()) == b"ef\nxy\n" and rows.starts == [3, 2]
    assert rows.cut == 1


def test_an_answer_that_does_not_fit_is_refused_with_its_line():
    pairs = [Pair("a", "b", 1), Pair("a", "vwxyz", 7)]
    encode_pairs(pairs, PLAIN, 6)  # 6 ids of the answer with its end, and one of the prompt
    with pytest.raises(ValueError, match="line 7 doesn't fit: .* 6 tokens, and the model reads 5"):
        encode_pairs(pairs, PLAIN, 5)


def test_where_a_line_end_ends_an_answer_it_can_have_only_one():
    with pytest.raises(ValueError, match="line 4 can't be used: .* on one line"):
        encode_pairs([Pair("a", "b\nc", 4)], PLAIN, 20)
    assert encode_pairs([Pair("a", "b\n")], PLAIN, 20).rows[0].tolist() == list(b"a\nb\n")


def test_a_published_vocabulary_ends_an_answer_with_its_own_token(gpt2):
    framing = framing_for(gpt2)
    assert framing.end == 50256 and framing.stop_ids == [50256]
    assert framing.answer_ids("b\nc") == [*gpt2.encode("b\nc"), 50256]
    assert not has_chat(gpt2)
    with pytest.raises(ValueError, match="no chat form"):
        framing_for(gpt2, "chat")


def test_what_fills_a_row_up_changes_no_logit_before_it(small_model):
    model = small_model(vocab_size=256, context_length=24)
    row = torch.tensor(list(b"ab\nxyz\n"))
    alone, long = padded(row, 3, 6), padded(row, 3, 20)
    with torch.no_grad():
        one, other = (model(batch.inputs[None])[0] for batch in (alone, long))
    torch.testing.assert_close(one, other[:6], rtol=0, atol=1e-5)


def test_the_loss_of_a_pair_is_the_mean_over_its_answer_by_hand(small_model):
    model = small_model(vocab_size=256, context_length=24)
    rows = encode_pairs([Pair("abc", "xyz")], PLAIN, 24)
    ids = list(b"abc\nxyz\n")
    with torch.no_grad():
        log_probs = log_softmax(model(torch.tensor([ids]))[0].numpy())
    by_hand = -sum(log_probs[k - 1, ids[k]] for k in range(4, 8)) / 4
    aim = AnswersAim(model, rows, rows, settings())
    assert math.isclose(aim.score(aim.val).loss, by_hand, rel_tol=1e-5)
    loss = aim.loss(model(aim.val.inputs), aim.val)
    assert math.isclose(loss.item(), by_hand, rel_tol=1e-5)


def test_a_batch_weighs_every_answer_token_alike(small_model):
    model = small_model(vocab_size=256, context_length=24)
    pairs = [Pair("a", "b"), Pair("a", "a much longer one")]
    both = encode_pairs(pairs, PLAIN, 24)
    scores = []
    for one in pairs:
        rows = encode_pairs([one], PLAIN, 24)
        aim = AnswersAim(model, rows, rows, settings())
        scores.append((aim.score(aim.val).loss, aim.size(aim.val)))
    aim = AnswersAim(model, both, both, settings())
    mean = sum(loss * n for loss, n in scores) / sum(n for _, n in scores)
    assert [n for _, n in scores] == [2, 18] and math.isclose(aim.score(aim.val).loss, mean, rel_tol=1e-5)


def test_training_on_answers_learns_them_and_not_the_prompts():
    pairs = [Pair(f"{a}{b}", "yes" if a == b else "no") for a in "abcd" for b in "abcd"]
    model = tiny(vocab=256, context_length=12, d_model=32)
    config = settings(steps=60, batch_size=16, learning_rate=1e-2, aim="answers", eval_every=60)
    rows = encode_pairs(pairs, PLAIN, 12)
    events = list(train(model, [], [], config, aim=AnswersAim(model, rows, rows, config)))
    first, last = (e for e in events if isinstance(e, EvalEvent))
    assert abs(first.val_loss - math.log(256)) < 0.5
    assert last.val_loss < 0.6
    assert math.isclose(last.perplexity, math.exp(last.val_loss)) and last.bits_per_byte is None
    with torch.no_grad():
        probs = torch.log_softmax(model(torch.tensor([list(b"ab\n")]))[0], -1)
    assert probs[0, ord("b")] < -2  # of the prompt it has learned nothing


def test_a_pair_may_come_twice_and_the_seed_decides_which():
    rows = encode_pairs([Pair(c, c) for c in "abcdefgh"], PLAIN, 12)
    aim = AnswersAim(tiny(vocab=256), rows, rows, settings(batch_size=50))
    draws = [aim.draw(torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(draws[0].inputs, draws[1].inputs) and not torch.equal(draws[0].inputs, draws[2].inputs)
    assert set(draws[0].inputs[:, 0].tolist()) == set(b"abcdefgh")
    assert isinstance(draws[0], Batch)


def test_characters_that_the_vocabulary_lacks_are_named_with_the_line():
    with pytest.raises(ValueError, match="line 2 can't be used"):
        encode_pairs([Pair("ab", "ba", 1), Pair("ab", "xy", 2)], framing_for(char_tokenizer("ab\n")), 20)


# ---- from the grammar


def test_story_pairs_follow_their_prompts_and_no_other():
    pairs = story_pairs(3, 60)
    assert all(follows(pair, pair.answer) for pair in pairs)
    others = [(a, b) for a in pairs for b in pairs if a.prompt != b.prompt]
    assert others and not any(follows(a, b.answer) for a, b in others)
    assert not follows(Pair("What?", ""), pairs[0].answer)


def test_held_out_heroes_are_never_trained_on():
    train_on, held_out = ({p.prompt for p in story_pairs(4, 400, held_out=h)} for h in (False, True))
    assert len(held_out) >= 10 and not train_on & held_out
    assert _apart(("fox", "Max")) == (sum(b"foxMax") % 5 == 0)


def test_a_seed_gives_the_same_pairs_again():
    assert story_pairs(5, 8) == story_pairs(5, 8) != story_pairs(6, 8)
