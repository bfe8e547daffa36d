import pytest
import torch

from linearcore.tagging._batches import batches
from linearcore.tagging._corpus import Corpus, digest, split_dev
from linearcore.tagging._model import IGNORED
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import BiLSTM

SENTENCES = [(["a", "dog"], ["DET", "NOUN"]), (["run"], ["VERB"])]


def make():
    vocabulary = Vocabulary.of(SENTENCES)
    return Corpus.of([*SENTENCES, (["new"], ["X"])], vocabulary, BiLSTM(vocabulary.words))


def test_a_batch():
    corpus = make()
    (bucket,) = batches(corpus.lengths, 32)
    batch = corpus.batch(bucket)
    assert batch.mask.sum(1).tolist() == [2, 1, 1]
    assert batch.tags[:, :2].tolist() == [[0, 1], [2, IGNORED], [IGNORED, IGNORED]]
    assert batch.inputs["words"].shape == (3, 8)
    # A word whose tag training has not is a word.
    assert batch.mask[2, 0]


def test_a_full_batch_has_empty_rows():
    corpus = make()
    (bucket,) = batches(corpus.lengths, 40)
    batch = corpus.batch(bucket, full=True)
    assert batch.mask.shape == (5, 8) and not batch.mask[3:].any()
    assert torch.equal(batch.tags[:3], corpus.batch(bucket).tags)
    assert batch.inputs["spelling"].shape[0] == 5


def test_digest_names_words_tags_and_their_order():
    one = digest(SENTENCES)
    assert one == digest(list(SENTENCES)) and len(one) == 16
    others = [
        SENTENCES[::-1],
        [(["a", "dog"], ["DET", "VERB"]), SENTENCES[1]],
        [(["a"], ["DET"]), (["dog"], ["NOUN"]), SENTENCES[1]],
        [(["adog"], ["DETNOUN"]), SENTENCES[1]],
    ]
    assert len({one, *map(digest, others)}) == 5


def test_every_tenth_is_held_out():
    numbered = [([str(number)], ["X"]) for number in range(1, 25)]
    train, dev = split_dev(numbered)
    assert [words for words, _ in dev] == [["10"], ["20"]]
    assert len(train) == 22
    with pytest.raises(ValueError, match=r"`sentences` must be at least 10 for a validation split, got 3; .*--dev"):
        split_dev(numbered[:3])
