"""Inputs of losses with sampled candidates; see `kernels._sampled`."""

from typing import NamedTuple

from torch import Tensor

from linearcore.kernels._loss_code import LossCode


class EdgeFactors(NamedTuple):
    """Start and end scores (V,) of a chain, and factors (V, r): transitions = sources · targetsᵀ."""

    start: Tensor
    end: Tensor
    sources: Tensor
    targets: Tensor


class SampledRows(NamedTuple):
    """N rows, their labels and candidates, and the tables of V classes.

    Attributes:
        code: the loss.
        weight: (V, H).
        bias: (V,), or None.
        edges: scores of the neighbours in a chain, or None.
        target: (N,) int64 labels. The loss is NaN out of range, and 0 for `ignore_index`.
        candidates: (K,) int64 in [0, V).
        log_weight: (N, K) log importance weights, −inf for candidates that are ignored. A label is always ignored.
        neighbours: for a chain (N,) each: previous and next tags in [0, V), and uint8: whether there is none. None for
            sequences of equal length, time first: the neighbours are `width` rows away.
        width: number of sequences.
        unary: weight of a second loss without the edges.
        ignore_index: label of rows that are ignored.
    """

    code: LossCode
    weight: Tensor
    bias: Tensor | None
    edges: EdgeFactors | None
    target: Tensor
    candidates: Tensor
    log_weight: Tensor
    neighbours: tuple[Tensor, Tensor, Tensor, Tensor] | None = None
    width: int = 0
    unary: float = 0.0
    ignore_index: int = -100

    @property
    def size(self) -> int:
        """N."""
        return len(self.target)

    @property
    def num_candidates(self) -> int:
        """K."""
        return len(self.candidates)

    @property
    def rank(self) -> int:
        """r; 0 without edges."""
        return 0 if self.edges is None else self.edges.sources.shape[1]

    @property
    def scale(self) -> float:
        """Factor of the sum over candidates."""
        return 1 / max(1, self.weight.shape[0] - 1) if self.code.is_mean else 1.0


class Gathered(NamedTuple):
    """Rows of the tables, D = H + 2r columns.

    Attributes:
        rows: (N, D): hidden states, sources of the previous tags and targets of the next tags, 0 where there is none.
        candidate_rows: (K, D): weight, targets and sources of the candidates. Scores are products of the two.
        label_scores: (1, N), or (2, N): without and with edges.
        index: (1, N + K): labels and candidates, or (2, 2N + K): next tags, labels and candidates, and the same with the
            previous tags.
    """

    rows: Tensor
    candidate_rows: Tensor
    label_scores: Tensor
    index: Tensor  # type: ignore[assignment]  # Hides the method `index` of tuples, which is not used.


class TableGradients(NamedTuple):
    """Gradients of hidden states, and values of the gradients of tables at the rows of `Gathered.index`.

    Attributes:
        hidden: (N, H), or None if it is not needed, as for the others.
        weight: (N + K, H).
        vectors: (1, N + K) of bias, or (3, N + K) of bias, start and end.
        edges: (2, 2N + K, r) of targets and sources.
    """

    hidden: Tensor | None
    weight: Tensor | None
    vectors: Tensor
    edges: Tensor | None
