"""Items of `corrections.py` about Algorithm 1, on output spaces that are small enough to enumerate."""

import itertools
from typing import Any

import numpy as np
import torch

from linearcore import Hinge, LinearCore, Surrogate

Table = dict[str, Any]

SETTINGS: Table = {
    "chain": {"tags": 3, "length": 3},
    "variance": {"tags": [2, 3, 4, 5], "length": 3, "weight_norm": 1.0},
    "sampling": {"scale": 3.0, "draws": 400_000, "samples": [1, 4, 16]},
    "cost_above_one": {"scores": [0.0, -10.0, -100.0, -1000.0]},
}


def chain_features(tags: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Lists all tag sequences and their features: one-hot emissions and transition counts, scaled to radius R = 1."""
    outputs = np.array(list(itertools.product(range(tags), repeat=length)))
    emissions = np.eye(tags)[outputs].reshape(len(outputs), -1)
    transitions = np.eye(tags * tags)[outputs[:, :-1] * tags + outputs[:, 1:]].sum(1)
    features = np.hstack([emissions, transitions])
    return outputs, features / np.linalg.norm(features, axis=1).max()


def expected_step(weight: np.ndarray, slope: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Σ_{y', y''} weight(y') slope(y', y'') (f(y') − f(y''))."""
    pairs = weight[:, None] * slope
    return (pairs.sum(1) - pairs.sum(0)) @ features


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Computes the cosine between two vectors."""
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def exact_gradient(phi: Surrogate, weights: np.ndarray, features: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """Computes the gradient of Σ_{y'} similarity(y') Σ_{y''} φ(h(y') − h(y'')) by autograd; y'' = y' adds a constant."""
    w = torch.tensor(weights, requires_grad=True)
    scores = torch.from_numpy(features) @ w
    values = phi.value(scores[:, None] - scores[None, :])
    (gradient,) = torch.autograd.grad((torch.from_numpy(similarity)[:, None] * values).sum(), w)
    return gradient.numpy()


def items_b_and_c(seed: int) -> tuple[Table, Table]:
    """Compares the expected step of Algorithm 1 as printed with the gradient by autograd, and checks its sampler."""
    outputs, features = chain_features(**SETTINGS["chain"])
    hamming = (outputs != outputs[0]).mean(1)
    similarity = 1 - hamming
    phi = LinearCore(sides=2)
    direction = np.random.default_rng(seed).standard_normal(features.shape[1])
    b: Table = {"outputs": len(outputs), "greatest_margin": [], "cosine_printed": [], "cosine_mended": []}
    c: Table = {"greatest_margin": b["greatest_margin"], "cosine_without_truth": [], "missing_share_of_gradient_norm": []}
    for scale in (0.3, 1.0, 3.0, 10.0):
        scores = features @ (scale * direction)
        margin = scores[:, None] - scores[None, :]
        truth = exact_gradient(phi, scale * direction, features, similarity)
        slope = phi.derivative(margin)
        corrected = expected_step(similarity, slope, features)
        # Printed: slope taken at h(y'') − h(y'), times f(y'') − f(y').
        printed = -expected_step(similarity, slope.T, features)
        b["greatest_margin"].append(float(np.abs(margin).max()))
        b["cosine_printed"].append(cosine(printed, truth))
        b["cosine_mended"].append(cosine(corrected, truth))
        # Weights 1/D_1 correct for the frequency of y', but not for a y' that is never sampled.
        seen = expected_step(similarity * (hamming > 0), slope, features)
        c["cosine_without_truth"].append(cosine(seen, corrected))
        c["missing_share_of_gradient_norm"].append(float(np.linalg.norm(corrected - seen) / np.linalg.norm(corrected)))
    c["probability_of_truth_printed"] = float(hamming[0] / hamming.sum())
    c["probability_of_truth_by_similarity"] = float(similarity[0] / similarity.sum())
    return b, c


def item_g(seed: int) -> Table:
    """Computes the variance of one sample, for the average of Theorem 5.3 and for the weighted sum of Algorithm 1."""
    settings, phi, rows = SETTINGS["variance"], LinearCore(sides=2), []
    for tags in settings["tags"]:
        outputs, features = chain_features(tags, settings["length"])
        n = len(outputs)
        w = np.random.default_rng(seed).standard_normal(features.shape[1])
        scores = features @ (w * settings["weight_norm"] / np.linalg.norm(w))
        slope = phi.derivative(scores[:, None] - scores[None, :])
        similarity = 1 - (outputs != outputs[0]).mean(1)
        step = (similarity[:, None] * slope)[:, :, None] * (features[:, None] - features[None, :])
        pairs = step[~np.eye(n, dtype=bool)]
        around_truth = slope[0][:, None] * (features[0] - features)
        averaged = float(pairs.var(0).sum())
        row = {"tags": tags, "outputs": n, "averaged_around_truth": float(around_truth.var(0).sum())}
        rows.append(row | {"averaged_pairs": averaged, "weighted_sum_pairs": averaged * len(pairs) ** 2})
    return {"bound_4_R_squared": 4.0, "rows": rows}


def item_q(seed: int) -> Table:
    """Samples the steps of Algorithm 1, corrected, for the hinge and for a linear core: bias and variance.

    y' is drawn in proportion to its similarity and y'' uniformly from the others, so that the mean of the steps is the
    gradient divided by the sum of all weights, and every step has norm at most 2 R Lip.
    """
    settings = SETTINGS["sampling"]
    outputs, features = chain_features(**SETTINGS["chain"])
    similarity = 1 - (outputs != outputs[0]).mean(1)
    n, rng = len(outputs), np.random.default_rng(seed)
    weights = settings["scale"] * rng.standard_normal(features.shape[1])
    scores = features @ weights
    first = rng.choice(n, settings["draws"], p=similarity / similarity.sum())
    second = (first + rng.integers(1, n, settings["draws"])) % n
    rows = {}
    for name, phi in (("hinge", Hinge()), ("linear_core", LinearCore())):
        mean = exact_gradient(phi, weights, features, similarity) / (similarity.sum() * (n - 1))
        steps = phi.derivative(scores[first] - scores[second])[:, None] * (features[first] - features[second])
        error = steps.std(0) / np.sqrt(len(steps))
        deviation = np.abs(steps.mean(0) - mean)[error > 0] / error[error > 0]
        grouped = {k: steps.reshape(-1, k, steps.shape[1]).mean(1) for k in settings["samples"]}
        rows[name] = {
            "share_of_zero_slopes": float((phi.derivative(scores[first] - scores[second]) == 0).mean()),
            "components": int((error > 0).sum()),
            "largest_deviation_in_standard_errors": float(deviation.max()),
            "variance_times_K": {str(k): float(k * ((g - mean) ** 2).sum(-1).mean()) for k, g in grouped.items()},
        }
    return {"bound_4_R_squared": 4.0, "draws": settings["draws"], "rows": rows}


def item_s() -> Table:
    """Weights 1 − ℓ and values of the sum loss if ℓ is the number of wrong tags instead of their fraction.

    All scores are 0, except that of one sequence without a correct tag.
    """
    outputs, _ = chain_features(**SETTINGS["chain"])
    wrong = (outputs != outputs[0]).sum(1)
    farthest, phi = int(wrong.argmax()), LinearCore()
    values: dict[str, list[float]] = {"number_of_wrong_tags": [], "fraction_of_wrong_tags": []}
    for score in SETTINGS["cost_above_one"]["scores"]:
        scores = np.zeros(len(outputs))
        scores[farthest] = score
        pairs = phi.value(scores[:, None] - scores[None, :])
        np.fill_diagonal(pairs, 0.0)
        for name, cost in zip(values, (wrong, wrong / outputs.shape[1]), strict=True):
            values[name].append(float(((1 - cost)[:, None] * pairs).sum()))
    return {
        "outputs": len(outputs),
        "negative_weights": int((1 - wrong < 0).sum()),
        "least_weight": int((1 - wrong).min()),
        "score": SETTINGS["cost_above_one"]["scores"],
        "loss": values,
    }
