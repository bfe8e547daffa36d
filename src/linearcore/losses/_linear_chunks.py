"""The loss of a linear layer, hidden · weightᵀ + bias, in chunks of scores, as an autograd function."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from linearcore._checks import nan_where
from linearcore._torch import is_on_host
from linearcore.forms import Form, Gradients, Labels, MaskedScoresError, Projection, can_compile_rows, class_chunk_losses
from linearcore.kernels import FormCode, fused_kernels_for, slices
from linearcore.losses._infinite import mark_infinite_labels
from linearcore.losses._multiclass import form_losses
from linearcore.losses._targets import Rows
from linearcore.surrogates import Surrogate

#: Smallest number of rows in a chunk for which C kernels are used on a CPU. With fewer rows, adding the gradient (C, H) of
#: the weight once per chunk would take most of the time.
FEWEST_ROWS = 64
#: Default size of a chunk of scores in bytes: 167 rows on a CPU with 100,000 classes.
CHUNK_BYTES, DEVICE_CHUNK_BYTES = 2**27, 2**29


@dataclass(frozen=True)
class LinearLoss:
    """The loss of a linear layer, whose scores are computed in chunks.

    Attributes:
        form, surrogate, backend: as in `form_losses`.
        rows: labels with masks of ignored and invalid rows; `rows.scores` is an expanded scalar in the shape of the scores.
        labels: the same labels with margins and smoothing, as the form takes them.
        finish: turns the losses (N,) into the result; it must be linear.
        is_scalar: whether `finish` reduces to a scalar, so that gradients can be computed in the forward pass.
        reference: the result from hidden, weight and bias with plain autograd.
        chunk_bytes: size of a chunk of scores.
    """

    form: Form
    surrogate: Surrogate
    backend: str
    rows: Rows
    labels: Labels
    finish: Callable[[Tensor], Tensor]
    is_scalar: bool
    reference: Callable[[Tensor, Tensor, Tensor | None], Tensor]
    chunk_bytes: int

    def __call__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Returns the result for hidden (N, H), weight (C, H) and bias (C,) or None, differentiable in these."""
        loss: Tensor = _ChunkedLoss.apply(self, hidden, weight, bias, *self.labels.tensors)  # type: ignore[no-untyped-call]
        return loss

    def compute(
        self, projection: Projection, needs_grad: tuple[bool, bool, bool] | None, upstream: Tensor | None
    ) -> tuple[Tensor, Gradients]:
        """Returns the result and the gradients of the projection, for the gradient `upstream` of the result (None: 1)."""
        grad_output = None
        if needs_grad is not None:
            losses_like = projection.hidden.new_zeros(len(projection.hidden), dtype=projection.dtype)
            grad_output = linear_vjp(self.finish, losses_like, upstream)
        if self._takes_class_chunks(projection):
            try:
                losses, gradients = self._class_chunks(projection, needs_grad, grad_output)
                return self.finish(losses), gradients
            except MaskedScoresError:
                pass  # A score is −inf although its bias is not: competitors can be counted only after the whole row.
        losses, gradients = self._row_chunks(projection, needs_grad, grad_output)
        return self.finish(losses), gradients

    def _takes_class_chunks(self, projection: Projection) -> bool:
        if self.form.class_reference is None or not self.labels.is_hard or self.backend == "compiled":
            return False
        # C kernels need whole rows. They are used unless a chunk would have fewer than `FEWEST_ROWS` rows.
        is_compiled = self.backend == "auto" and can_compile_rows(self.form, self.surrogate, projection.hidden, self.labels)
        is_compiled = is_compiled and fused_kernels_for(projection.hidden) is None
        return not is_compiled or self._rows_per_chunk(projection) < min(FEWEST_ROWS, len(projection.hidden))

    def _class_chunks(
        self, projection: Projection, needs_grad: tuple[bool, bool, bool] | None, grad_output: Tensor | None
    ) -> tuple[Tensor, Gradients]:
        assert self.labels.index is not None
        index = self.labels.index.contiguous()
        label_scores = projection.label_scores(index)
        invalid = _InvalidRows.of(label_scores, self.rows, slice(None))
        grad_output = None if grad_output is None else invalid.fill(grad_output, 0.0)
        margin = None if self.labels.margin is None else self.labels.margin.to(label_scores.dtype)[index]
        losses, gradients = class_chunk_losses(
            self.form, self.surrogate, projection, index, label_scores, margin, grad_output,
            needs_grad or (False, False, False), self.chunk_bytes,
        )  # fmt: skip
        return invalid.fill(losses, math.inf), gradients

    def _rows_per_chunk(self, projection: Projection) -> int:
        # Scores and their gradient; only the fused kernel overwrites the scores.
        copies = 1 if self._is_fused(projection) else 2
        return max(1, self.chunk_bytes // (copies * projection.hidden.element_size() * len(projection.weight)))

    def _is_fused(self, projection: Projection) -> bool:
        return (
            self.backend in ("auto", "fused")
            and self.form.code is FormCode.LOGODDS
            and self.labels.is_hard
            and self.surrogate.kernel_identity is not None
            and fused_kernels_for(projection.hidden, projection.weight) is not None
        )

    def _row_chunks(
        self, projection: Projection, needs_grad: tuple[bool, bool, bool] | None, grad_output: Tensor | None
    ) -> tuple[Tensor, Gradients]:
        hidden, weight, _ = projection
        num_chunks = math.ceil(len(hidden) / self._rows_per_chunk(projection))
        row_step = math.ceil(len(hidden) / num_chunks)  # Chunks of about the same size.
        buffer = hidden.new_empty(row_step, len(weight))
        losses = hidden.new_empty(len(hidden), dtype=projection.dtype)
        gradients = _empty_gradients(projection, needs_grad)
        for rows in slices(len(hidden), row_step):
            scores = projection.scores(rows, slice(None), buffer[: rows.stop - rows.start])
            grad_of_losses = None if grad_output is None else grad_output[rows]
            losses[rows], gradient = self._losses_of_rows(scores, rows, grad_of_losses, projection)
            if gradient is not None:
                _add_rows(gradients, projection, gradient, rows)
        if gradients.bias is not None and projection.bias is not None:
            gradients = gradients._replace(bias=gradients.bias.to(projection.bias.dtype))
        return losses, gradients

    def _losses_of_rows(
        self, scores: Tensor, rows: slice, grad_output: Tensor | None, projection: Projection
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the losses of a chunk of rows, and the gradient of the scores, which may overwrite them."""
        labels = self.labels.rows(rows)
        if self._is_fused(projection):
            return self._fused_rows(scores, labels, rows, grad_output)
        chunk = rows_of_chunk(self.rows, scores, rows)

        def losses(scores: Tensor) -> Tensor:
            values = form_losses(self.form, self.surrogate, scores, labels, self.backend)
            return mark_infinite_labels(nan_where(values, chunk.is_out_of_range), chunk, labels)

        if grad_output is None:
            return losses(scores), None
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            values = losses(leaf)
            (gradient,) = torch.autograd.grad(values, leaf, grad_output)
        return values.detach(), gradient

    def _fused_rows(
        self, scores: Tensor, labels: Labels, rows: slice, grad_output: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        fused, identity, index = fused_kernels_for(scores), self.surrogate.kernel_identity, labels.index
        assert fused is not None and identity is not None and index is not None
        label_scores = scores.gather(-1, index.unsqueeze(-1)).to(torch.float32)
        invalid = _InvalidRows.of(label_scores.squeeze(-1), self.rows, rows)
        grad_output = None if grad_output is None else invalid.fill(grad_output, 0.0)
        margin = labels.label_margin(label_scores)
        base_score = label_scores if margin is None else label_scores - margin
        losses = fused.log_odds_losses(scores, index.contiguous(), base_score.squeeze(-1), grad_output, identity)
        return invalid.fill(losses, math.inf), None if grad_output is None else scores


class _InvalidRows(NamedTuple):
    """Masks (N,) of rows with an infinite or NaN loss, as in `batch_loss`; None if there are none.

    Attributes:
        is_masked: the label is masked out; the loss is inf.
        is_invalid: the label is out of range or has score +inf; the loss is NaN.
    """

    is_masked: Tensor | None
    is_invalid: Tensor | None

    @classmethod
    def of(cls, label_scores: Tensor, rows: Rows, chunk: slice) -> "_InvalidRows":
        """Returns the masks of a chunk of rows, from the scores (N,) of its labels."""
        if rows.is_counted is not None:
            label_scores = label_scores.masked_fill(~rows.is_counted[chunk], 0.0)
        if is_on_host(label_scores) and not bool(label_scores.isinf().any()):
            return cls(None, None)
        is_invalid = label_scores == math.inf
        if rows.is_out_of_range is not None:
            is_invalid = is_invalid | rows.is_out_of_range[chunk]
        return cls(label_scores == -math.inf, is_invalid)

    def fill(self, values: Tensor, number: float) -> Tensor:
        """Returns values (N,) with `number` for masked labels, and NaN for invalid ones."""
        if self.is_masked is None or self.is_invalid is None:
            return values
        return values.masked_fill(self.is_masked, number).masked_fill_(self.is_invalid, math.nan)


def rows_of_chunk(rows: Rows, scores: Tensor, chunk: slice) -> Rows:
    """Returns a chunk of rows, with its scores."""
    index, is_counted, is_out_of_range, probability = (
        None if part is None else part[chunk]
        for part in (rows.index, rows.is_counted, rows.is_out_of_range, rows.probability)
    )
    return Rows(scores, index, is_counted, is_out_of_range, probability, scores.shape[:1])


def linear_vjp(function: Callable[[Tensor], Tensor], like: Tensor, upstream: Tensor | None) -> Tensor:
    """Returns the vector-Jacobian product of a linear function at a tensor like `like`; `upstream` None stands for 1."""
    with torch.enable_grad():
        leaf = torch.zeros_like(like).requires_grad_()
        value = function(leaf)
        (gradient,) = torch.autograd.grad(value, leaf, torch.ones_like(value) if upstream is None else upstream)
    return gradient.contiguous()


def _empty_gradients(projection: Projection, needs_grad: tuple[bool, bool, bool] | None) -> Gradients:
    hidden, weight, bias = projection
    needs_hidden, needs_weight, needs_bias = needs_grad or (False, False, False)
    return Gradients(
        torch.empty_like(hidden) if needs_hidden else None,
        torch.empty_like(weight) if needs_weight else None,
        torch.zeros_like(bias, dtype=projection.dtype) if bias is not None and needs_bias else None,
    )


def _add_rows(gradients: Gradients, projection: Projection, gradient: Tensor, rows: slice) -> None:
    hidden, weight, _ = projection
    if gradients.hidden is not None:
        torch.mm(gradient, weight, out=gradients.hidden[rows])
    if gradients.weight is not None:
        if rows.start == 0:
            torch.mm(gradient.t(), hidden[rows], out=gradients.weight)
        else:
            torch.addmm(gradients.weight, gradient.t(), hidden[rows], out=gradients.weight)
    if gradients.bias is not None:
        gradients.bias.add_(gradient.sum(0, dtype=gradients.bias.dtype))


class _ChunkedLoss(torch.autograd.Function):
    """Computes the gradients in the forward pass for a scalar result. Double backward uses the reference."""

    @staticmethod
    def forward(
        ctx: Any, loss: LinearLoss, hidden: Tensor, weight: Tensor, bias: Tensor | None, *labels: Tensor | None
    ) -> Tensor:
        # float16 gradients could underflow here. They are computed in `backward`, where GradScaler has scaled grad_output.
        computes_gradients = loss.is_scalar and hidden.dtype != torch.float16 and any(ctx.needs_input_grad[1:4])
        needs_grad = ctx.needs_input_grad[1:4] if computes_gradients else None
        ctx.loss, ctx.gradients = loss, None
        ctx.save_for_backward(hidden, weight, bias, *labels)
        with torch.autocast(hidden.device.type, enabled=False):
            value, gradients = loss.compute(Projection.of(hidden, weight, bias), needs_grad, None)
        if needs_grad is not None:
            ctx.gradients = gradients
        return value

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, *labels = ctx.saved_tensors
        rest = [None] * len(labels)
        needs_grad = ctx.needs_input_grad[1:4]
        # The gradients are released, so that autograd need not copy them; a second backward pass computes them again.
        gradients, ctx.gradients = ctx.gradients, None
        with torch.autocast(hidden.device.type, enabled=False):
            if torch.is_grad_enabled():
                return None, *_reference_gradients(ctx.loss, (hidden, weight, bias), grad_output, needs_grad), *rest
            if gradients is None:
                _, gradients = ctx.loss.compute(Projection.of(hidden, weight, bias), needs_grad, grad_output)
            else:
                for gradient in gradients:
                    if gradient is not None:
                        scale_gradient(gradient, grad_output)
        return None, *gradients, *rest


def _reference_gradients(
    loss: LinearLoss, inputs: Sequence[Tensor | None], grad_output: Tensor, needs_grad: Sequence[bool]
) -> list[Tensor | None]:
    required = [tensor for tensor, is_needed in zip(inputs, needs_grad, strict=True) if is_needed and tensor is not None]
    hidden, weight, bias = inputs
    assert hidden is not None and weight is not None
    gradients = iter(torch.autograd.grad(loss.reference(hidden, weight, bias), required, grad_output, create_graph=True))
    return [next(gradients) if is_needed else None for is_needed in needs_grad]


def scale_gradient(gradient: Tensor, factor: Tensor) -> None:
    """Multiplies `gradient` by a scalar tensor, in place and without synchronisation; a factor of 1 costs nothing."""
    fused = fused_kernels_for(gradient)
    if fused is not None:
        fused.scale_by(gradient, factor.contiguous())
    elif not gradient.is_cpu or factor.item() != 1:
        gradient.mul_(factor)
