"""JSON lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearcore.tagging.readers import ReaderError, make_writer, read_sentences
from linearcore.tagging.readers._format import ReadOptions
from linearcore.tagging.readers._jsonl import JSONLines

VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
# All characters but surrogates, which are no valid Unicode in words.
STRING = st.text(st.characters(blacklist_categories=("Cs",)), max_size=5)


def read(*lines: str, tag: str | None = None):
    return list(JSONLines().read(lines, "x.jsonl", ReadOptions(tag=tag)))


def test_words_and_tags():
    line = '{"ner": ["O"], "tokens": ["New York"], "tags": ["LOC"]}'
    assert [(s.words, s.tags, s.line) for s in read("", line, tag="last")] == [(["New York"], ["LOC"], 2)]
    assert read(line, tag="tags")[0].tags == ["LOC"] and read(line, tag="ner")[0].tags == ["O"]
    assert read(line)[0].tags is None


@given(
    st.dictionaries(st.text().filter(lambda key: key not in ("tokens", "tags")), VALUE, max_size=3),
    st.lists(STRING, max_size=4),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_other_keys_and_their_order_are_kept(others, words, is_first, escaped, data):
    values = {"tokens": words, **others} if is_first else {**others, "tokens": words}
    tags = data.draw(st.lists(STRING.filter(bool), min_size=len(words), max_size=len(words)))
    (sentence,) = read(json.dumps(values, ensure_ascii=escaped or bool(others)))
    text = make_writer(sentence)(sentence, tags)
    text.encode()
    assert text.count("\n") == 1 and text.endswith("\n")
    again = json.loads(text)
    assert again == {**values, "tags": tags} and list(again) == [*values, "tags"]
    assert [other.tags for other in read(text, tag="tags")] == ([tags] if words else [])


def test_tags_stay_at_their_place():
    (sentence,) = read('{"tags": [3], "tokens": ["ä"], "n": 1}')
    assert make_writer(sentence)(sentence, ["X"]) == '{"tags": ["X"], "tokens": ["ä"], "n": 1}\n'


def test_a_sentence_without_words():
    line = '{"id": 1, "tokens": [], "tags": []}'
    (sentence,) = read(line)
    assert make_writer(sentence)(sentence, []) == line + "\n"
    assert make_writer(sentence, "columns")(sentence, []) == make_writer(sentence, "conllu", "upos")(sentence, []) == ""
    assert read(line, tag="tags") == []


@pytest.mark.parametrize(
    ("line", "tag", "message"),
    [
        ('{"tokens": ["a"}', None, "this is not valid JSON"),
        ("tokens", None, "this is not valid JSON"),
        ('["a"]', None, "a JSON array instead of an object"),
        ('"a"', None, "a JSON value instead of an object"),
        ('{"words": ["a"]}', None, "the object has no key 'tokens'; its keys: 'words'"),
        ("{}", None, "the object has no key 'tokens'; its keys: none"),
        ('{"tokens": "a dog"}', None, "'tokens' is not a list"),
        ('{"tokens": ["a", 1]}', None, "'tokens' contains '1', which is not a string"),
        ('{"tokens": ["a", null]}', None, "'tokens' contains 'null', which is not a string"),
        ('{"tokens": ["\\ud800"]}', None, r"'tokens' contains '\ud800', which is not valid Unicode"),
        ('{"tokens": ["a"]}', "last", "the object has no key 'tags'"),
        (
            '{"tokens": ["a"], "tags": [4]}',
            "tags",
            "'tags' contains '4', which is not a string; write the names of the tags",
        ),
        ('{"tokens": ["a"], "tags": ["A", "B"]}', "tags", "1 words in 'tokens', but 2 tags in 'tags'"),
        ('{"tokens": [], "tags": ["A"]}', "tags", "0 words in 'tokens', but 1 tags in 'tags'"),
        ('{"tokens": ["a"], "tags": [""]}', "tags", "'tags' contains an empty tag"),
        ('{"tokens": ["a"], "x": NaN}', None, "this JSON cannot be read (NaN is not a JSON value)"),
        ('{"tokens": ["a"], "x": 1e999}', None, "this JSON cannot be read (the number '1e999' is too large)"),
        ('{"tokens": ["a"], "tokens": ["b"]}', None, "this JSON cannot be read (the key 'tokens' occurs twice)"),
        ('{"tokens": ["a"], "x": ' + "[" * 200_000, None, "the JSON is nested too deeply"),
    ],
    ids=range(19),
)
def test_messages(line, tag, message):
    with pytest.raises(ReaderError) as caught:
        read('{"tokens": ["a"], "tags": ["A"]}', line, tag=tag)
    assert str(caught.value).startswith(f"x.jsonl:2: {message}")


def test_the_key_of_the_words_is_no_key_of_tags():
    with pytest.raises(ValueError, match="`tag` must be another key than that of the words, got 'tokens'"):
        read_sentences("x", "tokens", "jsonl")
    (sentence,) = read('{"tokens": ["a"]}')
    with pytest.raises(ValueError, match="`tag` must be another key"):
        make_writer(sentence, tag="tokens")
    with pytest.raises(ValueError, match="`tags` must be as many as the 1 words, got 2"):
        make_writer(sentence)(sentence, ["A", "B"])
