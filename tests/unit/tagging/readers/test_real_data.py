"""The treebanks that experiments use; skipped where LINEARCORE_DATA does not name a folder that has them."""

import os
from pathlib import Path

import pytest

from linearcore.tagging.readers import ReaderError, TagColumns, read_sentences

FOLDER = Path(os.environ.get("LINEARCORE_DATA", ""), "tagging")
pytestmark = pytest.mark.skipif("LINEARCORE_DATA" not in os.environ, reason="LINEARCORE_DATA is not set")

EWT = [f"en_ewt-{part}.conllu.xz" for part in ("train", "dev", "test")]
LASLA = [f"la_lasla-{part}.conllu.xz" for part in ("train", "dev", "test")]
TURKISH = ["tr_web.conllu.xz", "tr_wiki.conllu.xz"]


@pytest.mark.parametrize(
    ("files", "tag", "sentences", "words", "tags"),
    [
        (EWT[:1], "xpos", 12_544, 204_577, 49),
        (EWT, "upos+feats", 16_622, 254_818, 340),
        # With its 26,924 ranges, which are no words, there are 1,305,651 lines and one tag more, "_ _".
        (LASLA, "upos+feats", 66_097, 1_278_727, 3594),
        (TURKISH, "upos+feats", 4851, 81_370, 1641),
        (["ptb_sample.zip"], "tag", 3914, 100_676, 46),
        (["brown.zip"], "tag", 57_340, 1_161_192, 472),
    ],
    ids=["ewt train", "ewt", "lasla", "turkish", "penn", "brown"],
)
def test_sizes(files, tag, sentences, words, tags):
    found, number, length = set(), 0, 0
    for file in files:
        for sentence in read_sentences(FOLDER / file, tag, check_ids="lasla" not in file):
            number += 1
            length += len(sentence.words)
            found.update(sentence.tags)
    assert (number, length, len(found)) == (sentences, words, tags)


@pytest.mark.parametrize("file", [EWT[1], LASLA[1], TURKISH[0]])
def test_own_tags_give_the_same_lines(file):
    columns = TagColumns.parse("upos+feats")
    for sentence in read_sentences(FOLDER / file, "upos+feats", check_ids="lasla" not in file):
        assert sentence.tagged_lines(sentence.tags, columns) == sentence.lines


def test_the_faults_of_lasla_are_seen():
    with pytest.raises(ReaderError, match=r"la_lasla-train\.conllu\.xz:1401: id 4 instead of 3"):
        list(read_sentences(FOLDER / LASLA[0], "upos"))
