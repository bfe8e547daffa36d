"""Instance-dependent noise: the wrong label depends on the input."""

import torch
from torch import Tensor

from linearcore._arrays import Features, Labels, Numbers, check_one_per_row
from linearcore._checks import complaint, one_of
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._noisy_labels import NoisyLabels
from linearcore.noise._stream import normal, uniform, wrong_labels


def instance_dependent(
    features: Numbers,
    labels: Labels,
    rate: float,
    *,
    num_classes: int,
    seed: int,
    inputs: str = "raw",
    projections: str = "per-class",
    spread: float = 0.1,
) -> NoisyLabels:
    """Flips labels at random; the wrong label depends on random projections of the input.

    This is what most papers call instance-dependent noise, from the released code of Xia et al. (2020). W_y is sampled once
    per class, with independent standard normal entries. For input x with clean label y,

        q ~ N(rate, spread²) truncated to [0, 1],    P(ỹ = y) = 1 − q,    P(ỹ = v) = q·softmax_{v≠y}(x·W_y)_v.

    **The flip rate q does not depend on x**; only the wrong label does. For noise that is concentrated near the decision
    boundary, like human errors, use `boundary`.

    Truncation raises the mean of q: rate=0.2 gives 20.55 % wrong labels. rate=0 gives clean labels here, and 8 % wrong
    labels in the released code. With the same seed, labels that are wrong at one rate are wrong at every higher rate. Raw
    pixels saturate the softmax (nearly class-conditional noise); normalised inputs spread wrong labels over many classes.

    Args:
        features: (N, …) finite numbers, a tensor or an array, also memory-mapped; flattened to (N, D).
        labels: (N,) clean labels in 0..n−1.
        rate: mean of the flip-rate distribution before truncation, in [0, 1].
        num_classes: n ≥ 2.
        seed: random seed, a non-negative integer.
        inputs: "raw"; "centred" (minus the mean of each feature); or "normalised" (also divided by its standard deviation).
        projections: "per-class", one W_y per class (released code); or "shared", one W for all classes.
        spread: standard deviation of the flip rates before truncation, at least 0.

    Returns:
        The noisy labels; `law` contains `inputs`, `projections` and `spread`.

    Raises:
        TypeError: if `labels` are not integers or `features` not numbers.
        ValueError: if an argument is out of range.

    Example:
        >>> images = torch.rand(3000, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        >>> noisy = instance_dependent(images, [0, 1, 2] * 1000, 0.4, num_classes=3, seed=0)
        >>> noisy.transitions[0]
        tensor([599,  70, 331])

    Cost: time O(N·D·n), memory O(D·n) plus 32 MiB; with per-class projections, D·n² random numbers.

    Reference: Xia et al., Part-dependent label noise: towards instance-dependent label noise (NeurIPS 2020), and its code.
    """
    draw = LabelDraw.start(labels, num_classes=num_classes, seed=seed, rate=rate)
    one_of("inputs", inputs, ("raw", "centred", "normalised"))
    one_of("projections", projections, ("per-class", "shared"))
    if isinstance(spread, bool) or not isinstance(spread, int | float) or not 0 <= spread < float("inf"):
        raise ValueError(complaint("spread", "be a number of at least 0", repr(spread), "the released code uses 0.1"))
    prepared = Features.prepare(features, inputs)
    check_one_per_row(draw.labels, len(features), "features")
    clean, quantile = draw.clean, uniform(draw.stream, len(draw.clean))
    is_flipped = draw.chance < _flip_rates(quantile, float(rate), float(spread))
    noisy = clean.clone()
    matrix = torch.empty(0)
    for label in range(num_classes):
        # Sampled for absent classes too, so that the matrix of a class does not depend on the other labels.
        if label == 0 or projections == "per-class":
            matrix = normal(draw.stream, prepared.width, num_classes)
        for index in (is_flipped & (clean == label)).nonzero().squeeze(1).split(prepared.chunk):
            scores = prepared.rows(index) @ matrix
            scores[:, label] = -torch.inf
            noisy[index] = wrong_labels(clean[index], scores.softmax(1), draw.which[index])
    law = {"generator": "instance_dependent", "inputs": inputs, "projections": projections, "spread": float(spread)}
    return draw.finish(noisy, rate=rate, law=law)


def _flip_rates(quantile: Tensor, rate: float, spread: float) -> Tensor:
    """Returns the given quantiles of the normal distribution truncated to [0, 1]; each of them increases with the rate."""
    if rate == 0 or spread == 0:
        return torch.full_like(quantile, rate)
    low, high = torch.special.ndtr(torch.tensor([-rate / spread, (1 - rate) / spread], dtype=torch.float64))
    deviation: Tensor = torch.special.ndtri(low + quantile * (high - low))
    return (rate + spread * deviation).clamp(0, 1)
