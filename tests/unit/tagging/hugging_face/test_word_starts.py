import pytest
import torch

pytest.importorskip("transformers")

from linearcore.tagging.hugging_face._word_starts import (
    INSIDE,
    SPECIAL,
    START,
    kinds_of_tokens,
    kinds_without_tokenizer,
    word_starts,
)
from tests.tiny_transformer import byte_level, tokenizers, transformers, word_piece


def sentence_piece():
    pieces = [("<unk>", 0.0), ("▁ann", -1.0), ("▁un", -1.0), ("believ", -1.0), ("ably", -1.0), ("▁", -2.0), ("s", -2.0)]
    inner = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")


def words_of(tokenizer, text):
    """The tokens that begin words, and those that the tokenizer itself says begin them."""
    found = tokenizer(text)
    numbers = torch.tensor([found["input_ids"]])
    ours = word_starts(kinds_of_tokens(tokenizer, len(tokenizer) + 3), numbers, torch.ones_like(numbers))[0].tolist()
    words = found.word_ids()
    return ours, [word is not None and (place == 0 or words[place - 1] != word) for place, word in enumerate(words)]


@pytest.mark.parametrize("make", [word_piece, byte_level, sentence_piece])
@pytest.mark.parametrize("text", ["ann lives unbelievably", "ann ann s", "qqq ann", "unbelievably ann ann ann", "ann"])
def test_words_begin_where_the_tokenizer_says(make, text):
    ours, theirs = words_of(make(), text)
    assert ours == theirs and sum(ours) == len(text.split())


def test_entries_are_sorted_by_their_marks():
    tokenizer = word_piece()
    kinds = kinds_of_tokens(tokenizer, 20)
    names = tokenizer.convert_ids_to_tokens(range(18))
    expected = {"[UNK]": START, "[PAD]": SPECIAL, "[CLS]": SPECIAL, "[SEP]": SPECIAL, "[MASK]": SPECIAL}
    for name, kind in zip(names, kinds[:18].tolist(), strict=True):
        assert kind == expected.get(name, INSIDE if name.startswith("##") else START), name


def test_an_unknown_token_that_also_ends_texts_is_special():
    tokenizer = byte_level()
    tokenizer.unk_token = "</s>"
    assert kinds_of_tokens(tokenizer, 300)[tokenizer.eos_token_id] == SPECIAL


def test_without_marks_every_token_is_a_word():
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]")
    assert kinds_of_tokens(tokenizer, 3).tolist() == [START] * 3


def test_without_a_tokenizer_the_configuration_says_what_is_special():
    config = transformers.BertConfig(pad_token_id=0, eos_token_id=4)
    assert kinds_without_tokenizer(config, 6).tolist() == [SPECIAL, START, START, START, SPECIAL, START]


def test_padding_begins_nothing_and_the_first_after_it_does():
    kinds = torch.tensor([SPECIAL, START, INSIDE], dtype=torch.int8)
    numbers, attended = torch.tensor([[1, 1, 2, 2, 1]]), torch.tensor([[0, 0, 1, 1, 1]])
    assert word_starts(kinds, numbers, attended).tolist() == [[False, False, True, False, True]]
    assert word_starts(kinds, numbers, None).tolist() == [[True, True, False, False, True]]


def test_marks_at_the_end_of_words_and_foreign_vocabularies_are_refused():
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a</w>": 0, "b": 1, "b</w>": 2}, unk_token="b"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner)
    with pytest.raises(ValueError, match=r"`tokenizer` must mark where words start, got one that marks where they end"):
        kinds_of_tokens(tokenizer, 3)
    with pytest.raises(ValueError, match=r"`tokenizer` must have at most the encoder's 9 entries, got 18; use the"):
        kinds_of_tokens(word_piece(), 9)
