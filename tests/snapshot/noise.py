"""Generators of label noise with fixed seeds, suspects, and how well rankings find wrong labels."""

import json
from collections.abc import Callable, Iterator

import torch

from linearcore.cleaning import flagging_auc, flagging_precision, suspects
from linearcore.noise import (
    CIFAR10_PAIRS,
    NoisyLabels,
    boundary,
    class_conditional,
    instance_dependent,
    linear_posterior,
    pair_flip,
    symmetric,
)
from tests.snapshot.inputs import fixed, simplex, whole
from tests.snapshot.record import SOLVED, Entry, Results

NUMBER, CLASSES = 120, 4
RATES = (0.0, 0.25, 0.5)


def noise() -> Iterator[Entry]:
    """Labels, transitions, the law and the hash of every draw."""
    for name, draw in _draws().items():
        yield Entry(f"noise/{name}", lambda draw=draw: _describe(draw()))
    yield Entry("noise/linear_posterior", lambda: {"probabilities": _posterior()}, tolerance=SOLVED)
    for by in ("margin", "log_odds", "numbers"):
        yield Entry(f"noise/suspects/{by}", lambda by=by: _suspects(by))


def _draws() -> dict[str, Callable[[], NoisyLabels]]:
    labels = whole(110, CLASSES, NUMBER)
    features = fixed(111, NUMBER, 2, 3)
    posterior = simplex(112, NUMBER, CLASSES)
    matrix = simplex(113, CLASSES, CLASSES)
    draws: dict[str, Callable[[], NoisyLabels]] = {}
    for rate in RATES:
        common = {"rate": rate, "num_classes": CLASSES, "seed": 3}
        draws[f"symmetric/{rate}"] = lambda c=common: symmetric(labels, **c)
        draws[f"pair_flip/{rate}"] = lambda c=common: pair_flip(labels, **c)
        draws[f"pair_flip, some/{rate}"] = lambda c=common: pair_flip(labels, **c, to={0: 2, 3: 1})
        for kind in (1, 2, 3):
            draws[f"boundary {kind}/{rate}"] = lambda c=common, k=kind: boundary(labels, posterior=posterior, kind=k, **c)
        for inputs in ("raw", "centred", "normalised"):
            for projections in ("per-class", "shared"):
                options = {**common, "inputs": inputs, "projections": projections}
                name = f"instance_dependent, {inputs}, {projections}/{rate}"
                draws[name] = lambda o=options: instance_dependent(features, labels, **o)
    draws["instance_dependent, spread=0"] = lambda: instance_dependent(
        features, labels, 0.25, num_classes=CLASSES, seed=3, spread=0.0
    )
    draws["pair_flip, CIFAR-10"] = lambda: pair_flip(whole(114, 10, NUMBER), 0.5, num_classes=10, seed=3, to=CIFAR10_PAIRS)
    draws["class_conditional"] = lambda: class_conditional(labels, matrix, seed=3)
    return draws


def _describe(noisy: NoisyLabels) -> Results:
    return {
        "labels": noisy.labels,
        "rate": noisy.rate,
        "realised_rate": noisy.realised_rate,
        "transitions": noisy.transitions,
        "hash": noisy.hash,
        "law": json.dumps(dict(noisy.law), sort_keys=True),
    }


def _posterior() -> torch.Tensor:
    return linear_posterior(fixed(111, NUMBER, 6), whole(110, CLASSES, NUMBER), num_classes=CLASSES, seed=3, folds=3)


def _suspects(by: str) -> Results:
    scores, labels = fixed(115, NUMBER, CLASSES), whole(110, CLASSES, NUMBER)
    scores[5, 1] = -torch.inf
    found = suspects(scores, labels, measure=fixed(116, NUMBER) if by == "numbers" else by)
    is_wrong = symmetric(labels, 0.25, num_classes=CLASSES, seed=3).labels != labels
    return {
        "suspicion": found.suspicion,
        "order": found.order,
        "suggested": found.best_other,
        "margin": found.margin,
        "flag": found.flag(fraction=0.1),
        "flagging_auc": flagging_auc(found.suspicion, is_wrong),
        "flagging_precision": flagging_precision(found.suspicion, is_wrong),
    }
