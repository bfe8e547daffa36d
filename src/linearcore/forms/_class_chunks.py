"""Loss and gradients of a linear layer for sums over competitors (`pairwise`, `centered`), in chunks of classes."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._torch import is_on_host
from linearcore.forms._base import Form
from linearcore.forms._projected import Gradients, Projection, add_product
from linearcore.kernels import fused_kernels_for, row_blocks, slices
from linearcore.surrogates import Surrogate

#: Classes per chunk are a multiple of this, the width of the tiles of matrix products.
MULTIPLE = 256


class MaskedScoresError(Exception):
    """A score is −inf although its bias is finite, so the number of masked classes is not known beforehand."""


def class_chunk_losses(
    form: Form,
    surrogate: Surrogate,
    projection: Projection,
    index: Tensor,
    label_scores: Tensor,
    margin: Tensor | None,
    grad_output: Tensor | None,
    needs_grad: tuple[bool, bool, bool],
    chunk_bytes: int,
) -> tuple[Tensor, Gradients]:
    """Returns the losses (N,) of hard labels for a form with a `class_reference`, and the gradients of the linear layer.

    The reference score, which is the score of the label or the mean score, is computed first. Then every chunk of classes
    takes three matrix products and one pass over its scores, which replaces them by their gradient. The gradient
    of the reference score is minus the sum of the other entries; it is added after the last chunk. (Elsewhere `reference` is
    the reference implementation of a loss.)

    Args:
        form, surrogate: define the loss.
        projection: hidden (N, H), weight (C, H) and bias.
        index: (N,) labels.
        label_scores: (N,) their scores.
        margin: (N,) margins of the labels, or None.
        grad_output: (N,) gradient of the losses; None computes no gradients.
        needs_grad: whether hidden, weight and bias need a gradient.
        chunk_bytes: size of a chunk.

    Raises:
        MaskedScoresError: on a CPU, if a score is −inf although its bias is not, and the number of masked classes matters.
            On other devices loss and gradients are then NaN.
    """
    accumulator = _ChunkAccumulator.start(form, surrogate, projection, index, label_scores, margin, grad_output)
    rows, num_classes = len(index), len(projection.weight)
    step = _classes_per_chunk(projection, chunk_bytes)
    buffer = projection.hidden.new_empty(rows * step)
    gradients = _new_gradients(projection, needs_grad) if grad_output is not None else Gradients(None, None, None)
    for classes in slices(num_classes, step):
        scores = buffer[: rows * (classes.stop - classes.start)].view(rows, -1)
        projection.scores(slice(None), classes, scores)
        accumulator.add(scores, classes.start)
        _add_chunk(gradients, projection, scores, classes)
    del buffer, scores  # Freed before the gradients are finished.
    losses = accumulator.losses()
    if grad_output is not None:
        gradients = accumulator.add_reference(gradients)
    return losses, gradients


def _classes_per_chunk(projection: Projection, chunk_bytes: int) -> int:
    """Returns the number of classes in a chunk; chunks have about the same size."""
    num_classes = len(projection.weight)
    most = max(1, chunk_bytes // (projection.hidden.element_size() * len(projection.hidden)))
    if most < num_classes:
        most = max(MULTIPLE, most // MULTIPLE * MULTIPLE)
    step = math.ceil(num_classes / math.ceil(num_classes / most))
    return min(num_classes, math.ceil(step / MULTIPLE) * MULTIPLE)


def _new_gradients(projection: Projection, needs_grad: tuple[bool, bool, bool]) -> Gradients:
    hidden, weight, bias = projection
    return Gradients(
        torch.empty_like(hidden, dtype=projection.dtype) if needs_grad[0] else None,
        torch.empty_like(weight) if needs_grad[1] else None,
        torch.empty_like(bias, dtype=projection.dtype) if bias is not None and needs_grad[2] else None,
    )


def _add_chunk(gradients: Gradients, projection: Projection, scores: Tensor, classes: slice) -> None:
    """Adds the gradient of hidden, and writes those of weight and bias, from the gradient of a chunk of scores."""
    if gradients.hidden is not None:
        add_product(gradients.hidden, scores, projection.weight[classes], is_first=classes.start == 0)
    if gradients.weight is not None:
        torch.mm(scores.t(), projection.hidden, out=gradients.weight[classes])
    if gradients.bias is not None:
        torch.sum(scores, 0, dtype=projection.dtype, out=gradients.bias[classes])


@dataclass(frozen=True)
class _ChunkAccumulator:
    """Constants of every row, and running sums over chunks of classes.

    Attributes:
        reference: (N,) score of the label, or mean score, minus the margin of the label.
        num_masked: number of masked classes.
        weight_sum: sum of the rows of the weight that are not masked; only for the mean score.
        divisor: (N,) number of competitors, for a mean; None for a sum.
        scale: (N,) gradient of the sum over competitors, or None.
        offset: (N,) value of −φ' in the core, times competitors / classes; None for 0. It is subtracted from every −φ' to
            keep precision. The gradient of `centered` is −φ' minus the mean of all −φ', so the offset cancels in it.
        sums: (3, P, N) losses, row sums of the gradient, numbers of masked classes. P: number of partial sums of the fused
            kernel, otherwise 1.
    """

    form: Form
    surrogate: Surrogate
    projection: Projection
    index: Tensor
    reference: Tensor
    num_masked: Tensor
    weight_sum: Tensor | None
    divisor: Tensor | None
    scale: Tensor | None
    offset: Tensor | None
    sums: Tensor

    @classmethod
    def start(
        cls, form: Form, surrogate: Surrogate, projection: Projection, index: Tensor, label_scores: Tensor,
        margin: Tensor | None, grad_output: Tensor | None,
    ) -> "_ChunkAccumulator":  # fmt: skip
        hidden, weight, bias = projection
        is_masked = label_scores.new_zeros(1) if bias is None else bias == -math.inf
        num_masked = is_masked.sum().to(label_scores.dtype)
        num_unmasked = len(weight) - num_masked
        num_competitors = num_unmasked - (label_scores != -math.inf).to(label_scores.dtype)
        reference, weight_sum, offset = label_scores, None, None
        if form.class_reference == "mean":
            weight_sum, reference = _mean_scores(projection, index, num_unmasked)
            middle = torch.zeros_like(reference) if margin is None else -margin
            offset = -surrogate._derivative(middle) * (num_competitors / num_unmasked.clamp(min=1))
        divisor = num_competitors.clamp(min=1) if form.is_mean else None
        scale = grad_output
        if scale is not None and divisor is not None:
            scale = scale / divisor
        fused = fused_kernels_for(hidden, weight)
        parts = 1 if fused is None else fused.num_parts(len(index), len(weight))
        sums = label_scores.new_zeros(3, parts, len(index))
        reference = reference if margin is None else reference - margin
        return cls(form, surrogate, projection, index, reference, num_masked, weight_sum, divisor, scale, offset, sums)

    def add(self, scores: Tensor, first: int) -> None:
        """Adds a chunk of scores (N, K), and replaces them by their gradient if there is a `scale`."""
        fused, identity = fused_kernels_for(scores), self.surrogate.kernel_identity
        if fused is not None and identity is not None:
            fused.competitor_losses(
                scores, self.index, first, self.reference, self.scale, self.offset, identity, self.sums,
                counts_masked=self.projection.bias is not None,
            )  # fmt: skip
            return
        for rows in row_blocks(scores, scores.shape[1]):
            self._add_block(scores[rows], self.index[rows] - first, rows)

    def _add_block(self, scores: Tensor, label: Tensor, rows: slice) -> None:
        reference = self.reference[rows].unsqueeze(-1).clamp(min=torch.finfo(self.reference.dtype).min)
        has_masked = not is_on_host(scores) or bool((scores == -math.inf).any())
        is_masked = scores == -math.inf if has_masked else None
        block = scores.to(reference.dtype)
        values = self.surrogate._value_of_difference(reference, block, overwrite=False)
        values = values if is_masked is None else values.masked_fill_(is_masked, 0.0)
        self.sums[0, 0, rows] += _set_label(values, label, 0.0).sum(-1)
        if is_masked is not None:
            self.sums[2, 0, rows] += is_masked.sum(-1)
        if self.scale is None:
            return
        scale = self.scale[rows].unsqueeze(-1)
        slopes, factor = self.surrogate._derivative_of_difference(reference, block, overwrite=True)
        gradient = slopes.mul_(-factor)
        if self.offset is not None:
            gradient.sub_(self.offset[rows].unsqueeze(-1))
            _set_label(gradient, label, -self.offset[rows])
        else:
            _set_label(gradient, label, 0.0)
        gradient.mul_(scale)
        gradient = gradient if is_masked is None else gradient.masked_fill_(is_masked, 0.0)
        if self.surrogate.lipschitz == math.inf:
            gradient.masked_fill_(scale == 0, 0.0)  # 0 · inf is NaN.
        self.sums[1, 0, rows] += gradient.sum(-1)
        scores.copy_(gradient)

    def losses(self) -> Tensor:
        """Returns the losses (N,) after the last chunk."""
        losses = self.sums[0].sum(0)
        if self.divisor is None and self.weight_sum is None:
            return losses  # The number of masked classes does not matter.
        losses = losses if self.divisor is None else losses / self.divisor
        if is_on_host(losses):
            if bool(self._is_miscounted().any()):
                raise MaskedScoresError
            return losses
        return losses.masked_fill(self._is_miscounted(), math.nan)

    def _is_miscounted(self) -> Tensor:
        """Returns booleans (N,): more classes of the row are masked than the bias says."""
        return self.sums[2].sum(0) != self.num_masked

    def add_reference(self, gradients: Gradients) -> Gradients:
        """Adds the gradient of the reference, and returns gradients in the dtypes of the projection."""
        missing = -self.sums[1].sum(0)  # Gradient of the reference score.
        if self.scale is not None and not (self.divisor is None and self.weight_sum is None) and not is_on_host(missing):
            missing = missing.masked_fill(self._is_miscounted() & (self.scale != 0), math.nan)
        if self.weight_sum is None:
            return _add_labels(gradients, self.projection, self.index, missing)
        hidden, weight, bias = self.projection
        share = missing / (len(weight) - self.num_masked).clamp(min=1)
        grad_hidden, grad_weight, grad_bias = gradients
        if grad_hidden is not None:
            grad_hidden = grad_hidden.addr_(share, self.weight_sum).to(hidden.dtype)
        is_unmasked = None if bias is None else (bias != -math.inf).to(weight.dtype)
        if grad_weight is not None:
            weighted_hidden = torch.mv(hidden.to(share.dtype).t(), share)
            fused = fused_kernels_for(weight)
            if fused is not None:
                fused.add_to_rows(grad_weight, weighted_hidden, is_unmasked)
            elif is_unmasked is None:
                grad_weight += weighted_hidden.to(weight.dtype)
            else:
                grad_weight.addcmul_(is_unmasked.unsqueeze(-1), weighted_hidden.to(weight.dtype).unsqueeze(0))
        if grad_bias is not None and bias is not None and is_unmasked is not None:
            grad_bias = (grad_bias + is_unmasked.to(share.dtype) * share.sum()).to(bias.dtype)
        return Gradients(grad_hidden, grad_weight, grad_bias)


def _mean_scores(projection: Projection, index: Tensor, num_unmasked: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the sum (H,) of the rows of the weight that are not masked out, and the mean scores (N,)."""
    hidden, weight, bias = projection
    dtype = projection.dtype
    if bias is None:
        weight_sum, bias_sum = weight.sum(0, dtype=dtype), weight.new_zeros((), dtype=dtype)
    else:
        is_unmasked = bias != -math.inf
        weight_sum = weight.new_zeros(weight.shape[1], dtype=dtype)
        for classes in row_blocks(weight, weight.shape[1]):
            weight_sum += torch.mv(weight[classes].to(dtype).t(), is_unmasked[classes].to(dtype))
        bias_sum = bias.masked_fill(~is_unmasked, 0.0).sum(dtype=dtype)
    count = num_unmasked.clamp(min=1)
    mean = Projection(hidden, (weight_sum / count).unsqueeze(0), (bias_sum / count).reshape(1))
    return weight_sum, mean.label_scores(torch.zeros_like(index))


def _add_labels(gradients: Gradients, projection: Projection, index: Tensor, factor: Tensor) -> Gradients:
    """Adds factor (N,) times the gradient of the label scores, and returns gradients in the dtypes of the projection."""
    hidden, weight, bias = projection
    grad_hidden, grad_weight, grad_bias = gradients
    fused = fused_kernels_for(hidden, weight)
    if fused is not None:
        if grad_hidden is not None:
            grad_hidden = fused.add_to_hidden(grad_hidden, weight, index, factor, hidden.dtype)
        if grad_weight is not None:
            # Ignored rows have label 0 and factor 0. Leaving them out avoids many atomic additions to row 0.
            labels = index.masked_fill(factor == 0, len(weight))
            fused.add_to_weight(grad_weight, grad_bias, hidden, labels, factor)
        elif grad_bias is not None:
            grad_bias.index_add_(0, index, factor)
    else:
        if grad_hidden is not None:
            for rows in row_blocks(hidden, hidden.shape[1]):
                grad_hidden[rows].addcmul_(factor[rows].unsqueeze(-1), weight[index[rows]].to(factor.dtype))
            grad_hidden = grad_hidden.to(hidden.dtype)
        if grad_weight is not None:
            _add_rows(grad_weight, hidden, index, factor)
        if grad_bias is not None:
            grad_bias.index_add_(0, index, factor)
    if grad_bias is not None and bias is not None:
        grad_bias = grad_bias.to(bias.dtype)
    return Gradients(grad_hidden, grad_weight, grad_bias)


def _add_rows(grad_weight: Tensor, hidden: Tensor, index: Tensor, factor: Tensor) -> None:
    """Adds factor · hidden to grad_weight[index]; equal labels are added up before they are rounded."""
    rows = factor.unsqueeze(-1) * hidden
    if grad_weight.dtype == rows.dtype:
        grad_weight.index_add_(0, index, rows)
        return
    ordered, order = index.sort(stable=True)
    is_new = torch.cat([ordered.new_ones(1), (ordered[1:] != ordered[:-1]).to(ordered.dtype)])
    group = is_new.cumsum(0) - 1
    sums = torch.zeros_like(rows).index_add_(0, group, rows[order])
    # `labels` and `sums` have N rows. Those beyond the number of groups are 0, and add 0 to class 0.
    labels = torch.zeros_like(index).scatter_(0, group, ordered)
    grad_weight.index_add_(0, labels, sums.to(grad_weight.dtype))


def _set_label(values: Tensor, label: Tensor, fill: Tensor | float) -> Tensor:
    """Sets the label's entry in rows of a chunk (N, K) to `fill`, in place; a label may be outside the chunk."""
    inside = label.clamp(0, values.shape[1] - 1).unsqueeze(-1)
    is_inside = label.unsqueeze(-1) == inside
    fill = fill.unsqueeze(-1) if isinstance(fill, Tensor) else fill
    return values.scatter_(-1, inside, torch.where(is_inside, fill, values.gather(-1, inside)))
