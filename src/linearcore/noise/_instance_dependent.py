"""Instance-dependent noise: which wrong label an input gets depends on the input."""

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
    """Makes labels wrong at random and lets random projections of the input choose the wrong label.

    The noise that most papers mean by "instance-dependent", from the released code of Xia et al. (2020). For input x with
    clean label y, and once for the whole draw W_y with independent standard normal entries,

        q ~ N(rate, spread²) cut off to [0, 1],    P(ỹ = y) = 1 − q,    P(ỹ = v) = q·softmax_{v≠y}(x·W_y)_v.

    **The rate q does not depend on x.** Every input is equally likely to be wrong; only *what* it becomes depends on
    x. Noise that gathers near the decision boundary, as people's does, is `boundary`.

    The cut moves the mean of q to rate + spread·(ϕ(a) − ϕ(b))/(Φ(b) − Φ(a)), with a = −rate/spread, b = (1 − rate)/spread:
    a requested 20 % gives 20.55 % in expectation. A rate of 0 would give 8 %; here it gives clean labels instead.

    Four things in circulation go by one name, and the record tells them apart. Long inputs make the softmax hard: pixels of
    0..255, as the released code feeds, give nearly always the class of the largest projection; and since raw inputs share
    one direction, their mean, all images of a class then tend to the same few wrong ones, so that the noise is close to
    class-conditional. Inputs that are centred or normalised spread over many wrong classes.

    Nested in the rate, with the same wrong labels, as `symmetric`; two machines agree up to the accident that `_stream`
    describes. With `spread=0` the labels that go wrong are those of `symmetric`.

    Args:
        features: (N, …) finite numbers, a tensor or an array; flattened to (N, D). Read in pieces: a memory map will do.
        labels: (N,) clean labels in 0..n−1.
        rate: centre of the rates' law, in [0, 1].
        num_classes: n ≥ 2.
        seed: a non-negative integer that names the draw.
        inputs: "raw", as passed; "centred", minus each feature's mean over the rows; "normalised", also divided by its
            standard deviation, as most training pipelines feed it (they do so by colour channel).
        projections: "per-class", W_y for every class (released code); "shared", one W for all, another variant in use.
        spread: standard deviation of the rates before the cut, at least 0.

    Returns:
        The noisy labels; `law` has `inputs`, `projections` and `spread`.

    Raises:
        TypeError: if `labels` are no integers or `features` no numbers.
        ValueError: if an argument is out of its range.

    Example:
        >>> images = torch.rand(3000, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        >>> noisy = instance_dependent(images, [0, 1, 2] * 1000, 0.4, num_classes=3, seed=0)
        >>> noisy.transitions
        tensor([[599,  70, 331],
                [ 10, 601, 389],
                [ 82, 297, 621]])

    Cost: time O(N·D·n), memory O(D·n) and 32 MiB; with projections per class, D·n² random numbers.

    Xia et al., Part-dependent label noise: towards instance-dependent label noise (NeurIPS 2020), and its code.
    """
    draw = LabelDraw.start(labels, num_classes=num_classes, seed=seed, rate=rate)
    one_of("inputs", inputs, ("raw", "centred", "normalised"))
    one_of("projections", projections, ("per-class", "shared"))
    if isinstance(spread, bool) or not isinstance(spread, int | float) or not 0 <= spread < float("inf"):
        raise ValueError(complaint("spread", "be a number of at least 0", repr(spread), "the released code has 0.1"))
    prepared = Features.prepare(features, inputs)
    check_one_per_row(draw.labels, len(features), "features")
    clean, place = draw.clean, uniform(draw.stream, len(draw.clean))
    flips = draw.chance < _rates(place, float(rate), float(spread))
    noisy = clean.clone()
    matrix = torch.empty(0)
    for label in range(num_classes):
        # Drawn for absent classes as well, so that the matrix of a class does not depend on the other labels.
        if label == 0 or projections == "per-class":
            matrix = normal(draw.stream, prepared.width, num_classes)
        for index in (flips & (clean == label)).nonzero().squeeze(1).split(prepared.chunk):
            scores = prepared.rows(index) @ matrix
            scores[:, label] = -torch.inf
            noisy[index] = wrong_labels(clean[index], scores.softmax(1), draw.which[index])
    law = {"generator": "instance_dependent", "inputs": inputs, "projections": projections, "spread": float(spread)}
    return draw.finish(noisy, rate=rate, law=law)


def _rates(place: Tensor, rate: float, spread: float) -> Tensor:
    """The quantile at `place` of the normal law cut off to [0, 1]: at a fixed place it grows with the rate."""
    if rate == 0 or spread == 0:
        return torch.full_like(place, rate)
    low, high = torch.special.ndtr(torch.tensor([-rate / spread, (1 - rate) / spread], dtype=torch.float64))
    deviation: Tensor = torch.special.ndtri(low + place * (high - low))
    return (rate + spread * deviation).clamp(0, 1)
