"""Structures: costs, constraints, neighbours in a chain, small output spaces, and proposals over sequences."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from linearcore.proposals.sequences import SequenceProposal
from linearcore.structures import (
    FAMILIES,
    Chain,
    Constraints,
    Cost,
    Hamming,
    Sequences,
    Sites,
    ZeroOne,
    bio,
    bioes,
    bmes,
    path_score,
)
from tests.snapshot.chain_inputs import BATCH, LENGTH, TAGS, emissions, masks, tags
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, fixed, generator, whole
from tests.snapshot.record import Entry, Results, refused
from tests.snapshot.sequences import sequence_proposals

SEED, SAMPLES = 90, 6


def structures() -> Iterator[Entry]:
    """Values and draws; the score of a path with its gradients."""
    for mask_name, mask in masks().items():
        sites = _sites(mask)
        yield Entry(f"structures/sites/{mask_name}", lambda s=sites: _neighbours(s))
        for name, law in sequence_proposals().items():
            yield Entry(f"structures/proposals/{name}/{mask_name}", lambda law=law, s=sites: _draws(law, s))
        for name, rules in _constraints().items():
            if rules.num_tags == TAGS:
                entry = f"structures/constraints/{name}/{mask_name}"
                yield Entry(entry, lambda rules=rules, s=sites: {"violations": rules.violations(tags(), s)})
        for name, cost in _costs().items():
            for dtype_name, dtype in DTYPES.items():
                entry = f"structures/costs/{name}/{mask_name}/{dtype_name}"
                yield Entry(entry, lambda cost=cost, m=mask, d=dtype: _cost(cost, m, d))
        for dtype_name, dtype in DTYPES.items():
            entry = f"structures/path_score/{mask_name}/{dtype_name}"
            yield Entry(entry, lambda s=sites, d=dtype: _path_score(s, d))
    for name, rules in _constraints().items():
        yield Entry(f"structures/constraints/{name}", lambda rules=rules: _allowed(rules))
    yield Entry("structures/constraints/none left", lambda: refused(lambda: Constraints.forbid(2, start=[0, 1])))
    yield Entry("structures/constraints/unknown name", lambda: refused(lambda: bio(["O", "X-PER"])))
    for num_tags, length in ((4, 1), (2, 3), (3, 2)):
        space = Sequences(num_tags, length)
        yield Entry(f"structures/Sequences({num_tags}, {length})", lambda space=space: _space(space))


def _sites(mask: Tensor | None) -> Sites:
    return Sites.of(torch.ones(LENGTH, BATCH, dtype=torch.bool), is_full=True) if mask is None else Sites.of(mask)


def _neighbours(sites: Sites) -> Results:
    own = tags()
    results: dict[str, Any] = {name: getattr(sites, name) for name in ("previous", "following", "is_first", "is_last")}
    return results | {"before": sites.before(own), "after": sites.after(own)}


def _draws(law: SequenceProposal, sites: Sites) -> Results:
    drawn = law.sample(tags(), sites, TAGS, SAMPLES, generator(SEED))
    other = whole(91, TAGS, SAMPLES, LENGTH, BATCH)
    results = {
        "sample": drawn,
        "log_prob of draws": law.log_prob(drawn, tags(), sites, TAGS),
        "log_prob": law.log_prob(other, tags(), sites, TAGS),
        "sample around each": law.sample(other, sites, TAGS, SAMPLES, generator(SEED)),
        "log_prob around each": law.log_prob(drawn, other, sites, TAGS),
    }
    log_count = law.log_count(sites, TAGS)
    return results if log_count is None else results | {"log_count": log_count}


def _constraints() -> dict[str, Constraints]:
    return {
        "bio": bio(["O", "B-X", "I-X", "B-Y", "I-Y"]),
        "bioes": bioes(["O", "B-X", "I-X", "E-X", "S-X"]),
        "bmes": bmes(["B", "M", "E", "S"]),
        "forbid": Constraints.forbid(5, pairs=[(0, 2), (3, 3)], start=[2], end=[1, 4]),
        "odd lengths": Constraints.forbid(2, pairs=[(0, 0), (1, 1)], start=[1], end=[1]),
    }


def _allowed(rules: Constraints) -> Results:
    size = rules.num_tags
    chain = Chain(fixed(92, size), fixed(93, size, size), fixed(94, size))
    applied = dict(zip(("applied start", "applied transitions", "applied end"), rules.apply(chain), strict=True))
    has_path = torch.tensor([rules.has_path(length) for length in range(7)])
    return {"start": rules.start, "transitions": rules.transitions, "end": rules.end, "has_path": has_path, **applied}


def _costs() -> dict[str, Cost]:
    return {"zero-one": ZeroOne(), "hamming": Hamming(), "weighted": Hamming(fixed(70, TAGS, low=0.25))}


def _cost(cost: Cost, mask: Tensor | None, dtype: torch.dtype) -> Results:
    answers = torch.cat([tags().t().unsqueeze(0), whole(95, TAGS, SAMPLES, BATCH, LENGTH)])
    results = {"between": cost.between(answers, tags().t(), None if mask is None else mask.t(), dtype=dtype)}
    if isinstance(cost, Hamming):
        results["site_weight"] = cost.site_weight(tags(), dtype)
    return results


def _path_score(sites: Sites, dtype: torch.dtype) -> Results:
    chain = {
        "start": fixed(92, TAGS, dtype=dtype),
        "transitions": fixed(93, TAGS, TAGS, dtype=dtype),
        "end": fixed(94, TAGS, dtype=dtype),
    }
    return derivatives(
        lambda emissions, **parts: path_score(emissions, Chain(**parts), tags(), sites),
        {"emissions": emissions(dtype), **chain},
        second=False,
    )


def _space(space: Sequences) -> Results:
    costs = {f"cost/{name}": space.cost(name) for name in ("zero-one", "hamming")}
    features = {f"features/{family}": space.features(family) for family in FAMILIES}
    return {"size": space.size, "outputs": space.outputs, "changes": space.changes, **costs, **features}
