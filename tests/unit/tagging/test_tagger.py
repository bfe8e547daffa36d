import json
import random
from dataclasses import replace

import pytest
import torch

from linearcore.runtime._store import MANIFEST, StoreError
from linearcore.tagging import Tagger
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import BiLSTM
from linearcore.tagging.readers import Layout, ReaderError, Sentence
from tests.tagged_text import sentences

DATA = sentences(60)


def make(loss="lc", **options):
    torch.manual_seed(0)
    vocabulary = Vocabulary.of(DATA)
    encoder = BiLSTM(vocabulary.words, vocabulary.counts, embedding=8, spelling=8, hidden=8, buckets=100)
    model = TaggingModel(encoder, len(vocabulary.tags), loss, **options)
    return Tagger(model, vocabulary, "upos+feats", {"note": 1})


def test_many_sentences_are_tagged_as_one_is():
    tagger = make()
    data = [words for words, _ in sentences(1200, seed=5)] + [[]]
    random.Random(0).shuffle(data)
    found = list(tagger.tag_all(iter(data), batch_tokens=100))
    assert [len(tags) for tags in found] == [len(words) for words in data]
    for place in range(0, len(data), 97):
        assert found[place] == tagger.tag(data[place])


def test_dropout_is_off():
    tagger = make()
    tagger.model.train()
    words = DATA[0][0]
    assert tagger.tag(words) == tagger.tag(words)


def test_any_word_can_be_tagged():
    odd = ["", " ", "\u200b", "𝔘𝔫𝔦", "a" * 5000, "\ud800", "日本語", "٣٤"]
    assert len(make().tag(odd)) == len(odd)
    assert make().tag([]) == []
    one, other = make().tag_all([[], []])
    assert one == other == [] and one is not other


def test_one_string_is_no_sentence():
    with pytest.raises(TypeError, match=r"`words` must have words in a list, got the string .a dog. .*; split it"):
        make().tag("a dog")


@pytest.mark.parametrize("loss", ["lc", "crf", "ce"])
def test_saved_and_loaded(tmp_path, loss):
    tagger = make(loss)
    tagger.layout = Layout("jsonl", "ner")
    tagger.save(tmp_path)
    twin = Tagger.load(tmp_path)
    assert twin.layout == tagger.layout
    data = [words for words, _ in DATA]
    assert list(twin.tag_all(data)) == list(tagger.tag_all(data))
    assert (twin.columns, twin.metadata, twin.vocabulary) == (tagger.columns, tagger.metadata, tagger.vocabulary)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json", ".safetensors"}


def test_options_of_the_loss_are_saved_and_an_older_tagger_has_none(tmp_path):
    tagger = make(rank=2, unary=0.5, sharpness=4.0)
    tagger.save(tmp_path)
    assert repr(Tagger.load(tmp_path).model.head) == repr(tagger.model.head)
    then = {"loss": "lc", "rank": 2, "beam": None}
    assert then.items() < tagger.model.settings().items()
    tagger.model.settings = lambda: then
    tagger.save(tmp_path)
    older = Tagger.load(tmp_path)
    assert older.model.head.unary == 0
    assert older.tag(DATA[0][0]) == tagger.tag(DATA[0][0])


def test_what_cannot_be_loaded(tmp_path):
    with pytest.raises(StoreError, match=r"must be a saved tagger, got no such folder"):
        Tagger.load(tmp_path / "nowhere")
    make().save(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    for name, entry in manifest["files"].items():
        path = tmp_path / entry["file"]
        kept = path.read_bytes()
        path.write_bytes(kept[:-1] + b"?")
        with pytest.raises(StoreError, match="damaged"):
            Tagger.load(tmp_path)
        path.write_bytes(kept)
        assert name in {"encoder", "vocabulary", "tensors"}
    Tagger.load(tmp_path)


def test_weights_of_another_size_are_refused(tmp_path):
    tagger = make()
    tagger.model._settings = replace(tagger.model._settings, rank=3)
    tagger.save(tmp_path)
    with pytest.raises(StoreError, match="does not fit this version of linearcore"):
        Tagger.load(tmp_path)


def test_evaluate():
    tagger = make()
    gold = [Sentence(words, tags, [], [], line=1) for words, tags in DATA]
    found = tagger.evaluate(gold)
    answers = list(tagger.tag_all([words for words, _ in DATA]))
    right = sum(a == b for (_, tags), own in zip(DATA, answers, strict=True) for a, b in zip(tags, own, strict=True))
    assert found.accuracy == pytest.approx(100 * right / sum(len(words) for words, _ in DATA))


def test_what_was_read_before_a_fault_is_still_tagged():
    def stream():
        yield from (Sentence(words, None, [], [], line=1) for words, _ in DATA[:5])
        raise ReaderError("file:9: rubbish; mend it")

    found = []
    with pytest.raises(ReaderError, match="rubbish"):
        for pair in make().tag_sentences(stream()):
            found.append(pair)
    assert len(found) == 5
