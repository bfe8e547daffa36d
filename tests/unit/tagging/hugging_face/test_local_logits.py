import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")

from linearcore.heads import ChainCRF, LinearCoreChain
from linearcore.structures import Sites, bioes, path_score
from linearcore.tagging._decoding import best_tags
from linearcore.tagging.hugging_face._local_logits import local_logits

NAMES = ["O", "B-X", "I-X", "E-X", "S-X"]


def problem(seed, whole, constrained, rank=None, batch=3, length=6):
    """A head, emissions and sites; `whole` numbers make many ties."""
    generator = torch.Generator().manual_seed(seed)
    head = ChainCRF(5, batch_first=True, strict_mask=False, rank=rank, constraints=bioes(NAMES) if constrained else None)
    with torch.no_grad():
        for weight in head.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator))
            if whole:
                weight.round_()
    emissions = torch.randn(batch, length, 5, generator=generator)
    sites = torch.rand(batch, length, generator=generator) < 0.7
    return head, emissions.round() if whole else emissions, sites


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from([None, 2]), st.sampled_from([0, 1, 2]))
def test_argmax_is_the_decoded_sequence(seed, whole, constrained, rank, width):
    head, emissions, sites = problem(seed, whole, constrained, rank)
    with torch.no_grad():
        found = best_tags(head, emissions, sites, width)
        logits = local_logits(head, emissions, sites, found)
    assert torch.equal(logits.argmax(-1)[sites], found[sites])
    assert not logits.isnan().any()


@pytest.mark.parametrize("constrained", [False, True])
def test_differences_are_those_of_whole_sequences(constrained):
    head, emissions, sites = problem(3, False, constrained)
    with torch.no_grad():
        found = best_tags(head, emissions, sites, 0)
        logits = local_logits(head, emissions, sites, found)
        times, chain = Sites.of(sites.t()), head.chain(emissions)
        for row, time in sites.nonzero().tolist():
            totals = []
            for label in range(5):
                changed = found.clamp(min=0).clone()
                changed[row, time] = label
                totals.append(path_score(emissions.transpose(0, 1), chain, changed.t(), times)[row])
            expected = torch.stack(totals) - max(totals)
            torch.testing.assert_close(logits[row, time] - logits[row, time].max(), expected, atol=1e-5, rtol=0)


def test_what_is_no_site_follows_the_site_before():
    head, emissions, _ = problem(0, False, False, batch=2)
    sites = torch.tensor([[0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0]]).bool()
    with torch.no_grad():
        logits = local_logits(head, emissions, sites, best_tags(head, emissions, sites, 0))
    assert torch.equal(logits[0, 2], logits[0, 1])
    assert torch.equal(logits[0, 4], logits[0, 3]) and torch.equal(logits[0, 5], logits[0, 3])
    assert torch.equal(logits[0, 0], emissions[0, 0]) and torch.equal(logits[1], emissions[1])


def test_gradients_are_finite_also_under_constraints():
    head, emissions, sites = problem(1, True, True)
    emissions.requires_grad_()
    logits = local_logits(head, emissions, sites, best_tags(head, emissions, sites, 0))
    logits[logits.isfinite()].sum().backward()
    assert bool(emissions.grad.isfinite().all()) and bool(head.transitions.grad.isfinite().all())


def test_a_single_label_needs_no_competitor():
    head = LinearCoreChain(1, batch_first=True)
    emissions, sites = torch.randn(1, 3, 1), torch.ones(1, 3, dtype=torch.bool)
    assert bool(local_logits(head, emissions, sites, torch.zeros(1, 3, dtype=torch.long)).isfinite().all())
