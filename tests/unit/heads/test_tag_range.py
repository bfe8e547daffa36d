"""Tags out of range and NaN emissions: an error on a CPU, NaN or no tags where numbers cannot be read."""

import math

import pytest
import torch
from torch import Tensor, nn

from linearcore import ChainCRF, ChainSSVM, LinearCoreChain
from linearcore.heads import ChainHead
from linearcore.proposals import Uniform

HEADS = {
    "linear core": LinearCoreChain(4, validate=False),
    "rank": LinearCoreChain(4, rank=2, validate=False),
    "unary": LinearCoreChain(4, unary=0.5, form="centered", validate=False),
    "crf": ChainCRF(4, validate=False),
    "ssvm": ChainSSVM(4, validate=False),
}
BY_HEAD = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)


def emissions(*size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(0))


@BY_HEAD
@pytest.mark.parametrize("wrong", (-1, 4))
def test_a_cpu_refuses_a_tag_out_of_range_even_unvalidated(head: ChainHead, wrong: int) -> None:
    with pytest.raises(ValueError, match=r"`tags` must be in \[0, 4\)"):
        head(emissions(3, 2, 4), torch.tensor([[0, 1], [wrong, 2], [3, 3]]))


@BY_HEAD
def test_under_a_transform_a_tag_out_of_range_makes_its_chain_nan(head: ChainHead) -> None:
    tags = torch.tensor([[0, 1], [-1, 2], [3, 3]])
    found = torch.func.vmap(lambda given: head(given, tags, reduction="none"))(emissions(2, 3, 2, 4))
    assert found.isnan().tolist() == [[True, False]] * 2


def test_the_sampled_loss_refuses_it_too() -> None:
    head = HEADS["linear core"]
    assert isinstance(head, LinearCoreChain)
    with pytest.raises(ValueError, match=r"`tags` must be in \[0, 4\)"):
        head.sampled_loss(emissions(2, 1, 3), nn.Linear(3, 4), torch.tensor([[0], [-1]]), proposal=Uniform(), num_samples=2)


DECODERS = {
    "viterbi": lambda head, given, mask: head.viterbi(given, mask),
    "beam": lambda head, given, mask: head.beam(given, mask, width=2),
    "kbest": lambda head, given, mask: head.kbest(given, mask, k=2),
}
BY_DECODER = pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)


@BY_DECODER
def test_nan_emissions_are_not_decoded(decode) -> None:
    given = emissions(3, 2, 4)
    given[1, 0, 2] = math.nan
    with pytest.raises(ValueError, match="`emissions` must contain neither NaN"):
        decode(ChainCRF(4), given, None)
    # What padding holds may be anything.
    mask = torch.tensor([[True, True], [False, True], [True, True]])
    tags, _ = decode(ChainCRF(4), given, mask)
    assert (tags.reshape(-1, 3, 2)[0][mask] >= 0).all()


@BY_DECODER
def test_unvalidated_nan_emissions_have_no_tags(decode) -> None:
    given = emissions(3, 2, 4)
    given[1, 0, 2] = math.nan
    tags, scores = decode(ChainCRF(4, validate=False), given, None)
    best, score = tags.reshape(-1, 3, 2)[0], scores.reshape(-1, 2)[0]
    assert score.isnan().tolist() == [True, False]
    assert (best[:, 0] == -100).all() and (best[:, 1] >= 0).all()
