"""The paths of an automaton as the outputs of a batch: their scores, costs and weights."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, holds, shape
from linearcore._torch import is_on_host
from linearcore._typing import compute_dtype
from linearcore.structured._batches import Batch
from linearcore.structured._estimates import Draws, log_difference, scale_weights
from linearcore.structured._paths import PathDistribution
from linearcore.structures import Automaton, Cost
from linearcore.structures.automata import PADDING


@dataclass(frozen=True)
class PathBatch(Batch):
    """All paths of an automaton; samples are arcs (K, B, M), and a path costs what its labels cost.

    Attributes:
        paths: the automaton and the scores (B, A) of its arcs.
        labels: (B, T), the true labels, −100 after their end. They need not be those of a path.
    """

    paths: PathDistribution
    labels: Tensor

    def scores(self, draws: Draws) -> Tensor:
        return self.paths.path_score(draws.tags)

    def mean_score(self) -> Tensor:
        # Under the uniform distribution: a sum over arcs, each with the fraction of the paths that contain it.
        fractions = uniform_paths(self.paths).expected_arc_counts()
        return self.paths.scores @ fractions.to(self.paths.scores.dtype)

    def pair_log_weight(self, cost: Cost, outer: Draws, inner: Draws, *, objective: str, log_count: Tensor | None) -> Tensor:
        differs = (outer.tags != inner.tags).any(-1)
        similarity = (1 - self._costs(outer, cost)).clamp(min=0)
        log_weight = similarity.log().masked_fill(~differs, -math.inf) - outer.log_prob - inner.log_prob
        size = self._log_size
        return scale_weights(log_weight, objective, size + log_difference(size, torch.zeros_like(size)))

    def centered_log_weight(self, cost: Cost, draws: Draws, *, objective: str) -> Tensor:
        return scale_weights(self._costs(draws, cost).log() - draws.log_prob, objective, self._log_size)

    def _costs(self, draws: Draws, cost: Cost) -> Tensor:
        """Returns ℓ(y', y) (K, B), float64."""
        predicted, truth = self.paths.automaton.labels(draws.tags), self.labels
        if cost.compares_lengths:
            return cost.between(  # type: ignore[call-arg]  # Such costs have this argument.
                predicted.clamp(min=0), truth.clamp(min=0), truth >= 0, prediction_mask=predicted >= 0, dtype=torch.float64
            )
        length = int((truth >= 0).sum(-1).amax()) if len(truth) else 0  # That of all outputs.
        return cost.between(predicted[..., :length], truth[:, :length], dtype=torch.float64)

    @property
    def _log_size(self) -> Tensor:
        """log M (B,), float64, for M paths."""
        count = torch.full((len(self.labels),), self.paths.automaton.log_count, dtype=torch.float64)
        return count.to(self.labels.device)


def uniform_paths(paths: PathDistribution) -> PathDistribution:
    """Returns the uniform distribution over the same paths, on the same device."""
    scores = torch.zeros(paths.automaton.num_arcs, dtype=torch.float64, device=paths.scores.device)
    return PathDistribution(paths.automaton, scores)


def path_batch(scores: Tensor, truth: Tensor, automaton: Automaton, cost: Cost) -> PathBatch:
    """Returns the checked batch; `truth` (B, T) are labels. Synchronises with a GPU."""
    floating("scores", scores, "pass one score for every arc")
    if scores.dim() != 2 or scores.shape[1] != automaton.num_arcs:
        must = f"have shape (B, {automaton.num_arcs})"
        raise ValueError(complaint("scores", must, tuple(scores.shape), "pass one score for every arc of the automaton"))
    if is_on_host(scores):
        advice = "leave out arcs that are forbidden; a score of −inf would make losses infinite"
        holds("scores", scores.detach().isfinite(), "be finite", advice, values=scores.detach())
    if truth.dim() != 2:
        must = f"have shape ({len(scores)}, T)"
        raise ValueError(complaint("truth", must, tuple(truth.shape), "pass a row of labels for each row of `scores`"))
    shape("truth", truth, (len(scores), truth.shape[1]), "pass a row of labels for each row of `scores`")
    is_label = truth >= 0
    is_valid = (is_label | (truth == PADDING)) & (is_label == is_label.cummin(-1).values)
    holds("truth", is_valid, f"be labels from 0, and {PADDING} after their end", "pad the rows at their ends", values=truth)
    largest = max((int(labels.max()) for labels in (truth, automaton.label) if labels.numel()), default=0)
    cost.check(max(cost.num_tags or 0, largest + 1))
    _check_lengths(cost, automaton, is_label.sum(-1))
    return PathBatch(PathDistribution(automaton, scores.to(compute_dtype(scores))), truth)


def _check_lengths(cost: Cost, automaton: Automaton, lengths: Tensor) -> None:
    """Raises if outputs have different numbers of labels and the cost cannot compare them."""
    if cost.compares_lengths or not len(lengths):
        return
    has_label = (automaton.label >= 0).double()
    # The numbers of labels of the shortest and of the longest path.
    numbers = [sign * PathDistribution(automaton, sign * has_label).shortest_path().score.item() for sign in (-1, 1)]
    numbers += [lengths.amin().item(), lengths.amax().item()]
    if min(numbers) < max(numbers):
        got = f"{cost.name!r} for outputs of {min(numbers):.0f} to {max(numbers):.0f} labels"
        raise ValueError(complaint("cost", "compare outputs of different lengths", got, 'use "edit" or "bleu"'))
