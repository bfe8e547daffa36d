import numpy as np
import pytest

from linearcore.tagging import Training, train
from linearcore.tagging._sentences import to_sentences, to_tagged_sentences, to_words
from linearcore.tagging.readers import Sentence
from tests.tagged_text import sentences

WORDS, TAGS = ["a", "dog"], ["DET", "NOUN"]
READ = Sentence(WORDS, TAGS, [], [], line=1)


@pytest.mark.parametrize(
    "given",
    [WORDS, tuple(WORDS), iter(WORDS), dict.fromkeys(WORDS).keys(), np.array(WORDS), {"tokens": WORDS, "id": 3}, READ],
    ids=["list", "tuple", "iterator", "view", "numpy", "dict", "sentence"],
)
def test_words_of_every_usual_form(given):
    words = to_words("words", given)
    assert words == WORDS
    assert {type(word) for word in words} == {str}


def test_many_sentences_and_empty_ones():
    assert list(to_sentences("sentences", (given for given in (WORDS, [], np.array([], dtype=str))))) == [WORDS, [], []]
    assert list(to_sentences("sentences", np.array([["a", "b"], ["c", "d"]]))) == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    "given",
    [
        (WORDS, TAGS),
        [WORDS, TAGS],
        (tuple(WORDS), np.array(TAGS)),
        (iter(WORDS), (tag for tag in TAGS)),
        {"tokens": WORDS, "tags": TAGS},
        READ,
    ],
    ids=["pair", "list", "numpy", "iterators", "dict", "sentence"],
)
def test_tagged_sentences_of_every_usual_form(given):
    assert list(to_tagged_sentences("dev", [given])) == [(WORDS, TAGS)]


@pytest.mark.parametrize(
    "given, fact",
    [
        ("two words", "`sentences` must be a list of sentences, got the string 'two words'"),
        (None, "`sentences` must be a list of sentences, got None"),
        ({"tokens": WORDS}, "`sentences` must be a list of sentences, got an object of type dict"),
        (READ, "`sentences` must be a list of sentences, got an object of type Sentence"),
        (["two words"], "got the string 'two words' as sentence 0; split it"),
        ([WORDS, b"two"], "as sentence 1; split it"),
        ([WORDS, None], "got None as sentence 1"),
        ([WORDS, 3], "got 3 as sentence 1"),
        ([np.array("dog")], "got an object of type ndarray as sentence 0"),
        ([WORDS, ["a", None]], "got None as word 1 of sentence 1"),
        ([["a", 7]], "got 7 as word 1 of sentence 0"),
        ([["a", float("nan")]], "got nan as word 1 of sentence 0"),
        ([[b"a"]], "got the bytes b'a' as word 0 of sentence 0"),
        ([(WORDS, TAGS)], "got an object of type list as word 0 of sentence 0; pass words only"),
        ([{"text": "a dog"}], "`sentences` must have the key 'tokens' in a dict, got only the keys 'text' in sentence 0"),
        ([{}], "must have the key 'tokens' in a dict, got an empty dict in sentence 0"),
        ([{"tokens": "a dog"}], "got the string 'a dog' as sentence 0; split it"),
    ],
)
def test_sentences_that_are_refused(given, fact):
    with pytest.raises(TypeError) as caught:
        list(to_sentences("sentences", given))
    assert fact in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "given, fact",
    [
        ([(WORDS, TAGS), (WORDS, [0, 1])], "got 0 as tag 0 of sentence 1; convert every tag to str"),
        ([(WORDS, ["DET", None])], "got None as tag 1 of sentence 0"),
        ([(["a", None], TAGS)], "got None as word 1 of sentence 0"),
        ([(WORDS, "DN")], "got the string 'DN' as sentence 0"),
        ([("a dog", TAGS)], "got the string 'a dog' as sentence 0; split it"),
        ([("a", "dog")], "got the string 'a' as sentence 0"),
        ([WORDS], "got the string 'a' as sentence 0"),
        ([WORDS * 2], "`dev` must be pairs (words, tags), got an object of type list as sentence 0"),
        ([list(zip(WORDS, TAGS, strict=True))], "got a list of (word, tag) pairs as sentence 0; convert it"),
        (["dog"], "got the string 'dog' as sentence 0"),
        ([{"tokens": WORDS}], "`dev` must have the key 'tags' in a dict, got only the keys 'tokens' in sentence 0"),
    ],
)
def test_tagged_sentences_that_are_refused(given, fact):
    with pytest.raises(TypeError) as caught:
        list(to_tagged_sentences("dev", given))
    assert fact in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_of_words_and_tags():
    with pytest.raises(ValueError, match="`dev` must have a tag for each word, got 2 words and 1 tags in sentence 1"):
        list(to_tagged_sentences("dev", [(WORDS, TAGS), {"tokens": WORDS, "tags": ["DET"]}]))
    with pytest.raises(ValueError, match="`dev` must have tags, got none in sentence 0"):
        list(to_tagged_sentences("dev", [Sentence(WORDS, None, [], [], line=1)]))


def test_train_takes_and_refuses_the_same():
    data = sentences(20)
    as_dicts = ({"tokens": words, "tags": tags} for words, tags in data)
    settings = Training(epochs=1, embedding=4, hidden=4)
    found, expected = train(as_dicts, iter(data), settings), train(data, data, settings)
    assert found.history[0]["loss"] == expected.history[0]["loss"]
    with pytest.raises(TypeError, match=r"`sentences` .* got 1 as tag 0 of sentence 0"):
        train([(["a"], [1])], data, settings)
    with pytest.raises(TypeError, match=r"`dev` .* got the string 'a dog' as sentence 0"):
        train(data, [("a dog", TAGS)], settings)
