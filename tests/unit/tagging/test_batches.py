import torch
from hypothesis import given
from hypothesis import strategies as st

from linearcore.tagging._batches import LENGTH_MULTIPLE, batches, batches_by_length, padded_length

lengths = st.lists(st.integers(0, 70), max_size=60)


@given(lengths, st.integers(1, 200), st.integers(0, 5))
def test_every_sentence_comes_once_and_fits(sizes, tokens, seed):
    for generator in (None, torch.Generator().manual_seed(seed)):
        found = batches(sizes, tokens, generator)
        assert sorted(member for bucket in found for member in bucket.members) == list(range(len(sizes)))
        for bucket in found:
            assert 0 < len(bucket.members) <= bucket.size
            assert bucket.size == 1 or bucket.size * bucket.length <= tokens
            assert all(bucket.length - LENGTH_MULTIPLE < max(1, sizes[member]) <= bucket.length for member in bucket.members)


def test_an_epoch_has_an_order_of_its_own_and_it_can_be_had_again():
    sizes = [5] * 40
    orders = [batches(sizes, 32, torch.Generator().manual_seed(seed)) for seed in (1, 2, 1)]
    assert orders[0] == orders[2] != orders[1]


def test_a_sentence_that_is_too_long_is_a_batch_of_its_own():
    (bucket,) = batches([100], tokens=16)
    assert (bucket.members, bucket.length, bucket.size) == ([0], padded_length(100), 1)


def test_batches_by_length_hold_every_sentence_once_and_few_words():
    lengths = [3, 20, 5, 0, 1, 20, 7]
    found = batches_by_length(lengths, 40)
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[index] for index in batch) <= 40 for batch in found)
    assert [lengths[index] for batch in found for index in batch] == sorted(lengths)
    assert batches_by_length([50, 60], 10) == [[0], [1]]
    assert batches_by_length([], 10) == []
