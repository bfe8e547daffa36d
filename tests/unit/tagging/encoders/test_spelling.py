from hypothesis import given
from hypothesis import strategies as st

from linearcore.tagging.encoders._spelling import FEATURES, MAX_PREFIX, MAX_SUFFIX, shape, spelling


def test_two_words_share_what_they_share():
    sings, rings = spelling("sings", 2**20), spelling("rings", 2**20)
    shared = [one == other for one, other in zip(sings, rings, strict=True)]
    # The word, endings of 1 to 6, beginnings of 1 to 3, shape.
    assert shared == [False, True, True, True, True, False, True, False, False, False, True]


def test_short_words_have_no_long_endings():
    found = spelling("a", 1000)
    assert [number > 0 for number in found] == [
        True,
        True,
        *[False] * (MAX_SUFFIX - 1),
        True,
        *[False] * (MAX_PREFIX - 1),
        True,
    ]


def test_case_is_in_the_shape_only():
    assert spelling("Word", 2**20)[:-1] == spelling("word", 2**20)[:-1]
    assert spelling("Word", 2**20)[-1] != spelling("word", 2**20)[-1]


def test_the_numbers_are_the_same_on_every_machine():
    # 1 + CRC-32 modulo 2^16 of "0 linear", "1 r", "2 ar", …, "10 xx"; saved models rely on it.
    assert spelling("linear", 2**16) == (44185, 25096, 58145, 55625, 2066, 34445, 42272, 9175, 46310, 11298, 53915)


@given(st.text())
def test_any_text_has_numbers_in_range(word):
    found = spelling(word, 97)
    assert len(found) == FEATURES
    assert all(0 <= number <= 97 for number in found)


def test_shape():
    assert shape("iPhone-12") == "xXxx-00"
    assert shape("AAAAaaaa") == "XXxx"
    assert shape("") == ""
    assert shape("漢字") == "xx"
