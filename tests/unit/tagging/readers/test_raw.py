"""Running text."""

import random
import sys

import pytest

from linearcore._extras import MissingExtraError
from linearcore.tagging.readers import ReaderError, read_sentences
from linearcore.tagging.readers._raw import make_splitter, split_text

spacy = pytest.importorskip("spacy")

TEXT = """\
Dr. Smith paid $3.50 for a
coffee. "Was it good?" (Yes!)   It was

No full stop
\u00a0
He didn't say... 今日は。 ¿Qué? End"""


def read(text: str, language: str = "en"):
    return [sentence.words for sentence in split_text(text.split("\n"), "x.txt", make_splitter(language))]


def test_words_and_sentences_are_those_of_spacy():
    words = read(TEXT)
    assert words[0] == ["Dr.", "Smith", "paid", "$", "3.50", "for", "a", "coffee", ".", '"']
    assert ["It", "was"] in words and ["No", "full", "stop"] in words, "a blank line ends a sentence"
    assert words[-1] == ["End"] and ["Qué", "?"] in words


@pytest.mark.parametrize("seed", range(20))
def test_line_ends_do_not_matter_inside_a_paragraph(seed):
    stream = random.Random(seed)
    pieces = ["a", "Bob", "U.S.", "...", "?", "!)", '"', "don't", "3.5", "x.y", "。", "ok."]
    words = stream.choices(pieces, k=60)
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    expected = [[token.text for token in part] for part in pipeline(" ".join(words)).sents]
    text = "".join(word + stream.choice([" ", "  ", "\n", " \n\t"]) for word in words)
    assert read(text.replace("\n\n", "\n")) == expected


def test_a_sentence_is_yielded_when_the_next_one_begins():
    seen = []

    def lines():
        for line in ("One. Two", "continues. Three", "", "Four"):
            seen.append(line)
            yield line

    sentences = split_text(lines(), "x", make_splitter("xx"))
    assert next(sentences).words == ["One", "."] and len(seen) == 1
    assert next(sentences).words == ["Two", "continues", "."] and len(seen) == 2
    assert next(sentences).words == ["Three"] and len(seen) == 3
    assert [(sentence.words, sentence.line) for sentence in sentences] == [(["Four"], 4)]


def test_a_long_sentence_is_not_split_again_for_every_line():
    lengths, split = [], make_splitter("xx")
    lines = ["some words without an end"] * 400 + ["End. Next"]
    sentences = list(split_text(lines, "x", lambda text: lengths.append(len(text)) or split(text)))
    assert [len(sentence.words) for sentence in sentences] == [2002, 1]
    assert sum(lengths) < 8 * len(" ".join(lines))


def test_a_sentence_without_an_end():
    with pytest.raises(ReaderError, match=r"x\.txt:1: .* more than 100,000 words"):
        read("a " * 100_001 + "\nb")


@pytest.mark.parametrize("language", ["zz", "", "en.punctuation", "EN", "../en", "char_classes"])
def test_unknown_languages_are_refused_at_once(language):
    with pytest.raises(ValueError, match="`language` must be a language code"):
        read_sentences("nowhere", format="raw", language=language)


def test_missing_packages_are_named(monkeypatch):
    def fail(*_):
        raise ImportError("this language\n needs a package")

    with monkeypatch.context() as patch:
        patch.setattr(spacy, "blank", fail)
        with pytest.raises(MissingExtraError, match="'en': this language needs a package"):
            read_sentences("nowhere", format="raw", language="en")
    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.setattr("linearcore.tagging.readers._raw.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install 'spacy"):
        read_sentences("nowhere", format="raw")


def test_it_has_no_tags_and_others_have_no_language():
    with pytest.raises(ReaderError, match=r"the format raw has no tags"):
        read_sentences("x.txt", "last", "raw")
    with pytest.raises(ReaderError, match=r"--language .* has no meaning for the format text"):
        read_sentences("x.txt", format="text", language="en")
