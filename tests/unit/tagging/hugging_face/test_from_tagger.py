import pytest
import torch

pytest.importorskip("transformers")

from transformers import pipeline

from linearcore.tagging import Tagger, TaggingModel, Vocabulary
from linearcore.tagging.encoders import BiLSTM, TransformerEncoder
from linearcore.tagging.hugging_face import from_tagger, register
from tests.tiny_transformer import byte_level, tiny_bert, word_piece

WORDS = ["ann", "lives", "in", "paris", "unbelievably", "hams", "bob", "rome", "."]
TEXTS = ["ann lives in paris .", "unbelievably bob lives in rome", "hams", "bob . ann unbelievably hams in paris ."]


def make(loss="lc", tokenizer=None, **options):
    """An untrained tagger whose tags depend on the words and on each other."""
    tokenizer = word_piece() if tokenizer is None else tokenizer
    vocabulary = Vocabulary.of([(WORDS[:5], ["B-PER", "B-V", "I-PER", "B-LOC", "O"])])
    torch.manual_seed(1)
    model = TaggingModel(TransformerEncoder(tiny_bert(len(tokenizer)), tokenizer), vocabulary.tags, loss, **options)
    with torch.no_grad():
        model.projection.weight.mul_(4)
        for parameter in [] if model.head is None else model.head.parameters():
            parameter.mul_(10)
    return Tagger(model, vocabulary, "tag")


@pytest.mark.parametrize(
    "options", ({}, {"loss": "crf", "rank": 2}, {"loss": "ssvm", "beam": 3}, {"loss": "ce"}, {"constraints": "bio"})
)
def test_a_pipeline_predicts_the_tags_of_the_tagger(tmp_path, options):
    tagger = make(**options)
    model, tokenizer = tagger.to_hugging_face()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    register()
    tag = pipeline("token-classification", model=str(tmp_path), aggregation_strategy="none", ignore_labels=[])
    seen = set()
    for text in TEXTS:
        found = {item["start"]: item["entity"] for item in tag(text)}
        place, tags = 0, []
        for word in text.split():
            place = text.index(word, place)
            tags.append(found[place])
            place += len(word)
        assert tags == tagger.tag(text.split())
        seen |= set(tags)
    assert len(seen) > 1
    assert model.head is None or (model.head.constraints is None) == (tagger.model.head.constraints is None)


def test_words_are_grouped_by_their_first_sub_word():
    tagger = make()
    model, tokenizer = from_tagger(tagger)
    tag = pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="first", ignore_labels=[])
    text = TEXTS[1]
    grouped = {word: item["entity_group"] for item in tag(text) for word in item["word"].split()}
    expected = dict(zip(text.split(), tagger.tag(text.split()), strict=True))
    assert grouped == {word: name.removeprefix("B-").removeprefix("I-") for word, name in expected.items()}


def test_byte_level_words_begin_with_a_space():
    tagger = make(tokenizer=byte_level(add_prefix_space=True))
    model, tokenizer = from_tagger(tagger)
    encoding = tokenizer("ann an ann", return_tensors="pt")
    assert model.decode(**encoding) == [tagger.tag(["ann", "an", "ann"])]


def test_the_tagger_is_not_changed_and_not_shared():
    tagger = make()
    before = tagger.tag(WORDS)
    model, _ = from_tagger(tagger)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert tagger.tag(WORDS) == before


def test_a_bilstm_is_refused():
    vocabulary = Vocabulary.of([(["a"], ["X"])])
    tagger = Tagger(TaggingModel(BiLSTM(vocabulary.words, hidden=4), 1), vocabulary, "tag")
    with pytest.raises(ValueError, match=r"`tagger` must have a transformer as encoder, got 'bilstm'; use `tagger.export`"):
        tagger.to_hugging_face()
