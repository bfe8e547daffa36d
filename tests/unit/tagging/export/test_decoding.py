"""The decoders for export against those of the heads, without tracing."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from linearcore.heads import ChainCRF
from linearcore.structures import bio, bioes
from linearcore.tagging import TaggingModel, Vocabulary
from linearcore.tagging._composition import Composition
from linearcore.tagging.encoders import BiLSTM
from linearcore.tagging.export._decoding import Beam, BeamOrExact, Viterbi, make_decoder
from linearcore.tagging.export._graph import TraceableLSTM

LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def make(constraints, rank=None, seed=0):
    torch.manual_seed(seed)
    options = {"constraints": bio(LABELS)} if constraints else {}
    head = ChainCRF(len(LABELS), batch_first=True, rank=rank, strict_mask=False, **options)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.mul_(10)
    return head


@given(
    rows=st.lists(st.lists(st.booleans(), min_size=1, max_size=9), min_size=1, max_size=4),
    seed=st.integers(0, 99),
    constraints=st.booleans(),
    width=st.integers(0, 6),
)
def test_any_mask_is_decoded_as_the_head_does(rows, seed, constraints, width):
    """Also masks with holes, at the beginning, and of whole sequences."""
    head = make(constraints, seed=seed)
    length = max(map(len, rows))
    mask = torch.tensor([row + [False] * (length - len(row)) for row in rows])
    emissions = torch.randn(len(rows), length, len(LABELS))
    decoder = Beam(head.chain(), width) if width else Viterbi(head.chain())
    expected, scores = head.beam(emissions, mask, width=width) if width else head.viterbi(emissions, mask)
    assert torch.equal(decoder(emissions, mask), expected)
    assert torch.isfinite(scores).all() or width


def test_a_sequence_that_is_not_allowed_has_no_tags():
    head = make(constraints=False)
    emissions = torch.randn(2, 3, len(LABELS))
    emissions[1, 1] = -torch.inf
    mask = torch.ones(2, 3, dtype=torch.bool)
    tags = Viterbi(head.chain())(emissions, mask)
    assert torch.equal(tags, head.viterbi(emissions, mask)[0]) and bool((tags[1] == -100).all())


def test_a_beam_without_allowed_tags_is_decoded_exactly():
    labels = ["O", "B-X", "I-X", "E-X", "S-X"]
    head = ChainCRF(len(labels), batch_first=True, constraints=bioes(labels))
    emissions, mask = torch.randn(2, 3, len(labels)), torch.ones(2, 3, dtype=torch.bool)
    emissions[1, 2, labels.index("B-X")] = 99  # The best tag before the end, where it is not allowed.
    emissions[0, :, 0], emissions[1, :2, 0] = 99, 99
    beam, scores = head.beam(emissions, mask, width=1)
    assert scores[1] == -torch.inf and scores[0] > -torch.inf
    tags = BeamOrExact(head.chain(), 1)(emissions, mask)
    assert torch.equal(tags[1], head.viterbi(emissions, mask)[0][1]) and torch.equal(tags[0], beam[0])


def test_composed_scores_are_those_of_prediction_also_in_training_mode():
    torch.manual_seed(0)
    vocabulary = Vocabulary([], [], ["NOUN Case=Nom", "NOUN Case=Acc", "VERB _"])
    model = TaggingModel(BiLSTM([], hidden=4), vocabulary.tags, composition=Composition.of(vocabulary))
    with torch.no_grad():
        model.head.parametrizations.transitions.original.normal_()
    expected = model.head.eval().chain().transitions.t()
    torch.testing.assert_close(make_decoder(model.train()).columns, expected)
    assert model.head.training


def test_low_rank_transitions():
    head = make(constraints=True, rank=2)
    emissions, mask = torch.randn(3, 40, len(LABELS)), torch.ones(3, 40, dtype=torch.bool)
    assert torch.equal(Viterbi(head.chain())(emissions, mask), head.viterbi(emissions, mask)[0])


@pytest.mark.parametrize("length", (1, 9))
def test_the_lstm_is_that_of_torch(length):
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(5, 7, batch_first=True)
    states = torch.randn(3, length, 5)
    torch.testing.assert_close(TraceableLSTM(lstm)(states)[0], lstm(states)[0])
