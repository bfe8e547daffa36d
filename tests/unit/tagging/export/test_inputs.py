"""The integers that numpy computes are those of the encoders."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearcore.tagging.encoders import BiLSTM, TransformerEncoder
from linearcore.tagging.export import make_inputs
from tests.tiny_transformer import byte_level, tiny_bert, word_piece

KNOWN = ["the", "cat", "sleeps", "\ud800", "", "ann", "unbelievably"]
SENTENCES = st.lists(st.lists(st.sampled_from(KNOWN) | st.text(max_size=8), max_size=9), min_size=1, max_size=4)
ENCODERS = {
    "bilstm": BiLSTM(KNOWN, embedding=4, hidden=4, buckets=50),
    "words only": BiLSTM(KNOWN, embedding=4, hidden=4, characters=False),
    "word pieces": TransformerEncoder(tiny_bert(len(word_piece()), layers=1), word_piece(), max_length=7),
    "bytes": TransformerEncoder(tiny_bert(len(byte_level()), layers=1), byte_level(add_prefix_space=True)),
}


@pytest.mark.parametrize("name", ENCODERS)
@given(sentences=SENTENCES)
def test_inputs_are_those_of_the_encoder(name, sentences):
    encoder = ENCODERS[name]
    length = max(1, *map(len, sentences))
    expected = encoder.collate([encoder.featurize(words) for words in sentences], length)
    inputs = make_inputs(encoder.kind, json.loads(json.dumps(encoder.lookup())))(sentences, length)
    assert list(inputs) == list(expected)
    for key, array in inputs.items():
        tensor = expected[key].numpy()
        assert array.dtype == tensor.dtype and np.array_equal(array, tensor)
