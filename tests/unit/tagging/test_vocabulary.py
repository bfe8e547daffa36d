import json

import pytest

from linearcore.tagging._vocabulary import UNSEEN, Vocabulary

SENTENCES = [(["dog", "a", "a"], ["NOUN", "DET", "DET"]), (["run", "dog"], ["VERB", "NOUN"])]


def test_words_by_count_then_by_name_and_tags_by_first_occurrence():
    found = Vocabulary.of(SENTENCES)
    assert found.words == ["a", "dog", "run"]
    assert found.counts == [2, 2, 1]
    assert found.tags == ["NOUN", "DET", "VERB"]


def test_numbers_both_ways():
    found = Vocabulary.of(SENTENCES)
    assert found.encode(["VERB", "NOUN", "PUNCT"]) == [2, 0, UNSEEN]
    assert found.word_numbers["run"] == 2


def test_inflated():
    found = Vocabulary.of(SENTENCES).inflate(6)
    assert found.tags == ["NOUN", "DET", "VERB", "never-0001", "never-0002", "never-0003"]
    assert found.encode(["VERB"]) == [2]
    assert Vocabulary.of(SENTENCES).inflate(4, num_columns=2).tags[-1] == "never-0001 never-0001"
    assert len(found.inflate(8).tags) == len(set(found.inflate(8).tags)) == 8
    with pytest.raises(ValueError, match="`inflate` must be at least 3, the number of tags in the data, got 2"):
        Vocabulary.of(SENTENCES).inflate(2)


def test_json_round_trip():
    found = Vocabulary.of(SENTENCES)
    assert Vocabulary.from_json(json.loads(json.dumps(found.to_json()))) == found
