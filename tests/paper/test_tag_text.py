"""Text of the experiment `tagging`: how it is joined, split and made up, and what is said when it is not there."""

import pytest

from linearcore_paper.experiments.tagging import text as tag_text
from linearcore_paper.experiments.tagging.text import LEAST_WORDS, PARTS, SOURCES, check_data, join, read_text

COLUMNS = "\t_" * 5


def sentence(number: int, words: int) -> tuple[list[str], list[str]]:
    return [f"{number}.{place}" for place in range(words)], [f"t{number}"] * words


def test_joined_sequences_hold_everything_in_order():
    sentences = [sentence(number, 7) for number in range(50)]
    joined = join(sentences, least=30)
    assert [word for words, _ in joined for word in words] == [word for words, _ in sentences for word in words]
    assert [tag for _, tags in joined for tag in tags] == [tag for _, tags in sentences for tag in tags]
    # Five sentences of seven are the first to have thirty.
    assert [len(words) for words, _ in joined] == [35] * 10
    # And four of them have twenty-eight, which is enough.
    assert [len(words) for words, _ in join(sentences, least=28)] == [28] * 12 + [14]
    assert all(len(words) == len(tags) for words, tags in joined)


def test_last_sequence_may_be_short_and_nothing_gives_nothing():
    assert [len(words) for words, _ in join([sentence(0, 5), sentence(1, 2)], least=4)] == [5, 2]
    assert join([], least=4) == []


def test_sentences_of_one_file_are_split_by_number():
    parts = tag_text.every_tenth([sentence(number, 1) for number in range(1, 31)])
    numbers = {part: [int(tags[0][1:]) for _, tags in found] for part, found in parts.items()}
    assert numbers["dev"] == [9, 19, 29] and numbers["test"] == [10, 20, 30]
    assert sorted([*numbers["train"], *numbers["dev"], *numbers["test"]]) == list(range(1, 31))


def test_made_up_text_is_the_same_every_time_and_can_be_learnt():
    first, second = tag_text._generate_text(), tag_text._generate_text()
    assert first == second and list(first) == list(PARTS)
    tags: dict[str, set[str]] = {}
    for words, own in first["train"]:
        for word, tag in zip(words, own, strict=True):
            tags.setdefault(word, set()).add(tag)
    shared = sum(len(found) > 1 for found in tags.values())
    # Most words tell their tag; some do not, so that neighbours matter.
    assert 0 < shared < len(tags) / 2


def test_made_up_text_is_inflated_and_has_long_sequences():
    text = read_text("made", None)
    assert len(text.vocabulary.tags) == SOURCES["made"].inflate
    assert text.vocabulary.tags[-1].startswith("never-")
    for part in PARTS:
        assert all(len(words) >= LEAST_WORDS for words, _ in text.parts[part][:-1])
    assert read_text("made", None) is text


def write(path, sentences):
    lines = []
    for words, tags in sentences:
        numbered = enumerate(zip(words, tags, strict=True), 1)
        lines.append("\n".join(f"{place}\t{word}\t_\tX\t{tag}{COLUMNS}" for place, (word, tag) in numbered))
    path.write_text("\n\n".join(lines) + "\n\n", encoding="utf-8")


@pytest.fixture
def treebank(tmp_path, monkeypatch):
    """Three plain files in the place of EWT's, and a folder that holds them."""
    files = tuple(f"tiny-{part}.conllu" for part in PARTS)
    monkeypatch.setitem(tag_text.SOURCES, "tiny", tag_text.Source("tiny", "xpos", files, 30, epochs=1))
    (tmp_path / "tagging").mkdir()
    for number, file in enumerate(files):
        write(tmp_path / "tagging" / file, [sentence(number, 40)] * 5)
    read_text.cache_clear()
    yield tmp_path
    read_text.cache_clear()


def test_parts_have_files_of_their_own(treebank):
    text = read_text("tiny", treebank)
    assert [len(words) for words, _ in text.parts["train"]] == [120, 80]
    assert {tag for _, tags in text.parts["test"] for tag in tags} == {"t2"}
    # Tags that only dev and test have are none of training's.
    assert text.vocabulary.tags[0] == "t0" and "t1" not in text.vocabulary.tags and len(text.vocabulary.tags) == 30


def test_name_of_the_data_changes_with_every_part(treebank):
    before = read_text("tiny", treebank).hash
    write(treebank / "tagging" / "tiny-test.conllu", [sentence(9, 40)] * 5)
    read_text.cache_clear()
    assert read_text("tiny", treebank).hash != before


def test_missing_data_are_named_in_one_line(treebank):
    check_data(treebank, ["tiny", "made"])
    (treebank / "tagging" / "tiny-dev.conllu").unlink()
    with pytest.raises(ValueError) as error:
        check_data(treebank, ["made", "tiny"])
    message = str(error.value)
    assert "tagging/tiny-dev.conllu" in message and str(treebank) in message and "--data" in message
    assert "\n" not in message
    with pytest.raises(ValueError, match=r"tagging/ptb_sample\.zip, got no folder"):
        check_data(None, ["made", "ptb"])
