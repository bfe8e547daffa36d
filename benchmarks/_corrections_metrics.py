"""Items of `corrections.py` about costs of whole sequences: Hamming, F1 and BLEU."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from linearcore import LinearCore
from linearcore.analysis import regret_ratio
from linearcore.structures import Cost, Sequences

Table = dict[str, Any]
Metric = Callable[[Sequence[int], Sequence[int]], float]

SETTINGS: Table = {
    "hamming": {"tags": 2, "length": 2, "second_position": [0.7, 0.3]},
    "additive": {"tags": 2, "windows": [2, 3, 4], "tolerance": 1e-9},
    # Expected F1 of 10 and 11 is equal; δ moves probability from 10 to 11.
    "f1": {"tags": 2, "length": 2, "probabilities": [0.3, 0.1, 0.4, 0.2], "better": 3, "worse": 2},
    "count_kernel": {"truth": [0, 0, 0, 1], "other": [0, 0, 0, 0]},
}


def f1(prediction: Sequence[int], target: Sequence[int]) -> float:
    """F1 of the positions with tag 1; the target has at least one."""
    hits = sum(a == b == 1 for a, b in zip(prediction, target, strict=True))
    return 2 * hits / (list(prediction).count(1) + list(target).count(1))


def bleu(prediction: Sequence[int], target: Sequence[int]) -> float:
    """BLEU with clipped 1- and 2-grams. Both sequences are equally long, so that there is no brevity penalty."""
    precisions = []
    for n in (1, 2):
        ours, theirs = (Counter(tuple(y[j : j + n]) for j in range(len(y) - n + 1)) for y in (prediction, target))
        precisions.append((ours & theirs).total() / ours.total())
    return float(np.sqrt(precisions[0] * precisions[1]))


def hamming(prediction: Sequence[int], target: Sequence[int]) -> float:
    """Fraction of correct tags."""
    return float(np.mean(np.equal(prediction, target)))


def aligned_bigrams(prediction: Sequence[int], target: Sequence[int]) -> float:
    """Fraction of neighbouring pairs of tags that are both correct."""
    correct = np.equal(prediction, target)
    return float((correct[1:] & correct[:-1]).mean())


def bigrams(sequence: Sequence[int]) -> Counter[tuple[int, int]]:
    """Counts neighbouring pairs of tags."""
    return Counter(itertools.pairwise(sequence))


def count_kernel(prediction: Sequence[int], target: Sequence[int]) -> float:
    """Σ_g c_prediction(g) c_target(g) over pairs of tags g: the n-gram kernel, without clipping."""
    ours, theirs = bigrams(prediction), bigrams(target)
    return float(sum(count * theirs[pair] for pair, count in ours.items()))


def clipped_bigrams(prediction: Sequence[int], target: Sequence[int]) -> float:
    """Σ_g min(c_prediction(g), c_target(g)) over pairs of tags g, as BLEU counts them."""
    return float((bigrams(prediction) & bigrams(target)).total())


METRICS: dict[str, Metric] = {
    "hamming": hamming,
    "aligned_bigrams": aligned_bigrams,
    "count_kernel": count_kernel,
    "clipped_bigrams": clipped_bigrams,
    "f1": f1,
    "bleu": bleu,
}


def mixed_difference(metric: Metric, target: Sequence[int]) -> tuple[float, list[tuple[int, ...]]]:
    """Largest |g(a…b) − g(a'…b) − g(a…b') + g(a'…b')| over changes of the first and the last tag, and the four sequences.

    A sum of functions of windows that do not contain both the first and the last tag has mixed differences of 0.
    """
    found: tuple[float, list[tuple[int, ...]]] = (0.0, [])
    tags = range(SETTINGS["additive"]["tags"])
    ends = [pair for pair in itertools.product(tags, repeat=2) if pair[0] < pair[1]]
    for middle in itertools.product(tags, repeat=len(target) - 2):
        for (a, other_a), (b, other_b) in itertools.product(ends, repeat=2):
            four = [(x, *middle, y) for x, y in ((a, b), (other_a, b), (a, other_b), (other_a, other_b))]
            values = [metric(sequence, target) for sequence in four]
            size = abs(values[0] - values[1] - values[2] + values[3])
            if size > found[0]:
                found = (size, four)
    return found


def additivity() -> list[Table]:
    """For windows of n tags, the sequences of n + 1 tags with the largest mixed difference of each metric.

    The targets have at least one tag 1, so that F1 is defined.
    """
    settings, rows = SETTINGS["additive"], []
    for (name, metric), window in itertools.product(METRICS.items(), settings["windows"]):
        length = window + 1
        targets = [target for target in itertools.product(range(settings["tags"]), repeat=length) if 1 in target]
        size, four, target = max(((*mixed_difference(metric, target), target) for target in targets), key=lambda row: row[0])
        row: Table = {"metric": name, "window": window, "length": length, "mixed_difference": size}
        if size > settings["tolerance"]:
            values = [metric(sequence, target) for sequence in four]
            row |= {"target": list(target), "sequences": [list(sequence) for sequence in four], "values": values}
        rows.append(row)
    return rows


class F1Cost(Cost):
    """1 − F1 of the positions with tag 1; 0 if neither sequence has one."""

    name: ClassVar[str] = "f1"

    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        assert mask is None
        hits = ((prediction == 1) & (target == 1)).sum(-1).to(dtype)
        total = ((prediction == 1).sum(-1) + (target == 1).sum(-1)).to(dtype)
        return torch.where(total > 0, 1 - 2 * hits / total.clamp(min=1), torch.zeros((), dtype=dtype))


def hamming_ratios(deltas: Sequence[float]) -> Table:
    """(a) with Hamming cost: surrogate regret / Hamming regret of a wrong first tag, with any scores allowed.

    The tags are independent, with probabilities (½ ± δ) and those in the settings.
    """
    settings = SETTINGS["hamming"]
    space = Sequences(settings["tags"], settings["length"])
    result: Table = {}
    for form in ("structured-sum", "structured-centered"):
        found = [
            regret_ratio(
                LinearCore(), form, np.outer([0.5 + d, 0.5 - d], settings["second_position"]).ravel(), 2,
                outputs=space, cost="hamming",
            )
            for d in deltas
        ]  # fmt: skip
        result[form.replace("-", "_")] = {
            "ratios": [ratio.ratio for ratio in found],
            "target_regret": [ratio.target_regret for ratio in found],
            "greatest_residual": max(ratio.residual for ratio in found),
        }
    return result


def item_w(deltas: Sequence[float]) -> Table:
    """F1 and BLEU as sums over windows of tags, and the regret ratio of the sum loss with the F1 cost near a tie."""
    settings, ratios, regrets = SETTINGS["f1"], [], []
    for delta in deltas:
        p = list(settings["probabilities"])
        p[settings["better"]] += delta
        p[settings["worse"]] -= delta
        space = Sequences(settings["tags"], settings["length"])
        found = regret_ratio(LinearCore(), "structured-sum", p, settings["worse"], outputs=space, cost=F1Cost())
        ratios.append(found.ratio)
        regrets.append(found.target_regret)
    truth, other = SETTINGS["count_kernel"].values()
    kernel = {"truth": truth, "other": other, "of_truth": count_kernel(truth, truth), "of_other": count_kernel(other, truth)}
    near_tie = {"deltas": list(deltas), "ratios": ratios, "target_regret": regrets}
    return {"additivity": additivity(), "count_kernel": kernel, "f1": near_tie}
