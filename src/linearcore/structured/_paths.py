"""Distribution over the paths of an acyclic automaton, given scores of its arcs."""

from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, holds
from linearcore._torch import is_on_host
from linearcore.kernels import best_path, best_paths, path_logsumexp, sample_paths
from linearcore.structures import Automaton
from linearcore.structures.automata import PADDING, Plan


class Paths(NamedTuple):
    """Paths of an automaton.

    Attributes:
        arcs: (…, M) the arcs of each path, −100 after its end. `automaton.labels(arcs)` are the labels.
        score: (…) sum of the arcs' scores, without gradient; −inf if there is no such path, whose arcs are all −100.
    """

    arcs: Tensor
    score: Tensor


class PathDistribution:
    """Distribution over the paths of an automaton: P(path) = exp(score) / Z, where a path's score is the sum of its arcs'.

    Scores with leading dimensions are a batch of distributions over one automaton. The best path has the highest score.
    An arc with score −inf is forbidden and has gradient 0. If all paths are, log Z is −inf.

    Args:
        automaton: the paths.
        scores: (…, A), a score for each arc. Float32 or float64; narrower types are computed in float32.

    Raises:
        TypeError: if `automaton` is not an `Automaton`, or `scores` are not floating point.
        ValueError: if the last dimension is not A, or, on a CPU, a score is NaN or +inf. On a GPU results are then NaN.

    Example:
        >>> automaton = Automaton.from_arcs([(0, 1, 7), (0, 1, 8), (1, 2, 9)], final=[2])
        >>> scores = torch.tensor([[0.0, 2.0, 1.0]], requires_grad=True)
        >>> paths = PathDistribution(automaton, scores)
        >>> loss = -paths.log_prob(automaton.arcs_of([[7, 9]]))
        >>> loss
        tensor([2.1269], grad_fn=<NegBackward0>)
        >>> automaton.labels(paths.shortest_path().arcs)
        tensor([[8, 9]])
    """

    def __init__(self, automaton: Automaton, scores: Tensor) -> None:
        if not isinstance(automaton, Automaton):
            advice = "use Automaton.from_arcs, from_chain, from_lexicon or read_att"
            raise TypeError(complaint("automaton", "be an `Automaton`", type(automaton).__name__, advice))
        floating("scores", scores, "pass one score for every arc")
        if scores.dim() < 1 or scores.shape[-1] != automaton.num_arcs:
            must = f"have shape (…, {automaton.num_arcs})"
            raise ValueError(complaint("scores", must, tuple(scores.shape), "pass one score for every arc"))
        # The maximum is NaN if a score is, and is found much faster than the entries that are wrong.
        if is_on_host(scores) and scores.numel() and not scores.detach().amax() < torch.inf:
            advice = "−inf forbids an arc; other scores must be finite"
            holds("scores", scores.detach() < torch.inf, "be below +inf", advice, of="scores", values=scores.detach())
        self.automaton = automaton
        self.scores = scores.to(torch.promote_types(scores.dtype, torch.float32))

    @classmethod
    def uniform(cls, automaton: Automaton) -> "PathDistribution":
        """Returns the distribution in which all paths have probability 1 / `automaton.count`; float64."""
        return cls(automaton, torch.zeros(automaton.num_arcs, dtype=torch.float64))

    def path_score(self, arcs: Tensor) -> Tensor:
        """Returns the scores (K…, …) of paths (K…, …, M): dimensions before the batch's are free. Differentiable.

        Args:
            arcs: the arcs of each path, −100 after its end; M may have any size.

        Raises:
            TypeError: if `arcs` are not int64.
            ValueError: if the shape does not fit, or, on a CPU, arcs are not a path from the start to a final state.

        Time and memory O(K·B·M).
        """
        batch = self._batch_shape
        if arcs.dtype != torch.int64:
            raise TypeError(complaint("arcs", "be int64", arcs.dtype, "convert them with `.long()`"))
        if arcs.dim() <= len(batch) or arcs.shape[arcs.dim() - 1 - len(batch) : -1] != batch:
            must = f"have shape (…, {''.join(f'{size}, ' for size in batch)}length)"
            raise ValueError(complaint("arcs", must, tuple(arcs.shape), "pass a path for each distribution of the batch"))
        if is_on_host(arcs):
            self._check_paths(arcs)
        # An index into all scores: the gradient has their size, however many paths there are.
        row = torch.arange(batch.numel(), device=arcs.device).view(*batch, 1) * self.automaton.num_arcs
        values = self.scores.reshape(-1)[arcs.clamp(min=0) + row]
        return values.masked_fill(arcs < 0, 0.0).sum(-1)

    def logsumexp(self) -> Tensor:
        """Returns log Z (…), differentiable any number of times; its gradient is `expected_arc_counts`. Time O(B·A)."""
        return path_logsumexp(self._rows, self._plan).view(self._batch_shape)

    def log_prob(self, arcs: Tensor) -> Tensor:
        """Returns log P (K…, …) of paths (K…, …, M): `path_score` − `logsumexp`. NaN if all paths are forbidden."""
        return self.path_score(arcs) - self.logsumexp()

    def shortest_path(self) -> Paths:
        """Returns the path with the highest score, `Paths` with arcs (…, M) and score (…).

        The name is that of the field, where costs are −score. Time O(B·A).
        """
        arcs, score = best_path(self._rows, self._plan)
        return Paths(arcs.view(*self._batch_shape, self._plan.max_length), score.view(self._batch_shape))

    def nbest(self, k: int) -> Paths:
        """Returns the k best paths, best first: `Paths` with arcs (k, …, M) and scores (k, …).

        They are different paths, which may have the same labels. If there are fewer than k, the others have score −inf.

        Raises:
            TypeError: if `k` is not an integer.
            ValueError: if `k` is below 1.

        Time O(B·k·A).
        """
        _check_positive("k", k)
        arcs, score = best_paths(self._rows, self._plan, k)
        return Paths(arcs.reshape(k, *self._batch_shape, self._plan.max_length), score.reshape(k, *self._batch_shape))

    def sample(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Returns independent samples: arcs (K, …, M), −100 after the end of a path and if all paths are forbidden.

        Args:
            num_samples: K.
            generator: random number generator on the device of the scores; None for torch's default.

        Raises:
            TypeError: if `num_samples` is not an integer.
            ValueError: if `num_samples` is below 1.

        Time O(B·A + K·B·M·log A). `log_prob` of a sample is the logarithm of its probability.
        """
        _check_positive("num_samples", num_samples)
        arcs = sample_paths(self._rows, self._plan, num_samples, generator)
        return arcs.reshape(num_samples, *self._batch_shape, self._plan.max_length)

    def expected_arc_counts(self) -> Tensor:
        """Returns the probability (…, A) that a path contains each arc; 0 if all paths are forbidden. Time O(B·A).

        Differentiable if gradients are enabled and the scores require them, which is slower.
        """
        is_differentiable = self._rows.requires_grad and torch.is_grad_enabled()
        with torch.enable_grad():
            rows = self._rows if is_differentiable else self._rows.detach().requires_grad_()
            total = path_logsumexp(rows, self._plan).sum()
            return torch.autograd.grad(total, rows, create_graph=is_differentiable)[0].reshape(self.scores.shape)

    @property
    def _batch_shape(self) -> torch.Size:
        return self.scores.shape[:-1]

    @property
    def _rows(self) -> Tensor:
        """(B, A): the scores with one batch dimension."""
        return self.scores.reshape(self._batch_shape.numel(), self.automaton.num_arcs)

    @property
    def _plan(self) -> Plan:
        return self.automaton.plan(self.scores.device)

    def _check_paths(self, arcs: Tensor) -> None:
        """Raises if `arcs` are not paths from the start to a final state."""
        automaton = self.automaton
        is_arc = arcs != PADDING
        is_inside = (arcs >= 0) & (arcs < automaton.num_arcs)
        holds(
            "arcs", is_inside | ~is_arc, f"be in [0, {automaton.num_arcs}) or {PADDING}", "pass indices of arcs", values=arcs
        )
        index = arcs.clamp(min=0)
        start = torch.full((*arcs.shape[:-1], 1), automaton.start)
        before = torch.cat([start, automaton.target[index]], -1)
        follows = (automaton.source[index] == before[..., :-1]) & is_arc.cummin(-1).values
        length = is_arc.sum(-1, keepdim=True)
        ends = torch.isin(before.gather(-1, length), automaton.final).squeeze(-1)
        is_path = ends & (follows | ~is_arc).all(-1)
        advice = "arcs must follow each other from the start to a final state, with −100 after the end"
        holds("arcs", is_path, "be paths of the automaton", advice, of="paths")


def _check_positive(name: str, number: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(complaint(name, "be an integer", repr(number), "pass the number of paths"))
    if number < 1:
        raise ValueError(complaint(name, "be at least 1", number, "pass the number of paths"))
