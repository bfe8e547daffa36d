import torch
from hypothesis import given
from hypothesis import strategies as st

from linearcore.tagging.encoders import cut_into_rows
from linearcore.tagging.encoders._rows import collate_rows, to_tensors

WORDS = st.lists(st.lists(st.integers(10, 99), min_size=1, max_size=9), max_size=12)


def rows_of(pieces, before, after, max_tokens):
    return to_tensors(*cut_into_rows(pieces, before, after, max_tokens))


@given(WORDS, st.integers(1, 8), st.integers(0, 2), st.integers(0, 2))
def test_every_word_is_found_again_whole_and_no_row_is_too_long(pieces, room, before, after):
    rows = rows_of(pieces, [1] * before, [2] * after, room)
    parts = [part.tolist() for part in rows.numbers.split(rows.lengths.tolist())]
    assert all(part[:before] == [1] * before and part[len(part) - after :] == [2] * after for part in parts)
    assert all(len(part) <= before + room + after for part in parts)
    assert [number for part in parts for number in part[before : len(part) - after]] == [
        number for piece in pieces for number in piece[:room]
    ]
    for (row, place), piece in zip(rows.places.tolist(), pieces, strict=True):
        assert parts[row][place : place + len(piece[:room])] == piece[:room]


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_a_batch_points_at_the_first_sub_word_of_each_word(sentences):
    length = max(map(len, sentences)) + 1
    batch = collate_rows([rows_of(words, [1], [2], 9) for words in sentences], length, padding=7)
    assert batch["index"].shape == (len(sentences), length)
    found = batch["input_ids"].flatten()[batch["index"]]
    for row, words in zip(found.tolist(), sentences, strict=True):
        assert row[: len(words)] == [word[0] for word in words]
    assert bool((batch["input_ids"][batch["attention_mask"] == 0] == 7).all())


def test_rows_are_as_full_as_they_get():
    rows = rows_of([[5], [6, 7], [8], [9, 9]], [1], [2], 4)
    assert rows.lengths.tolist() == [6, 4]


def test_nothing_is_one_row_of_special_tokens_or_one_column_of_padding():
    assert rows_of([], [1], [2], 4).numbers.tolist() == [1, 2]
    batch = collate_rows([rows_of([], [], [], None)], length=2, padding=0)
    assert batch["input_ids"].tolist() == [[0]] and batch["attention_mask"].tolist() == [[0]]
    assert torch.equal(batch["index"], torch.zeros(1, 2, dtype=torch.long))
