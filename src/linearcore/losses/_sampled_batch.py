"""A batch of rows for the sampled multi-class loss: checks, candidates, losses, and what varies with the samples."""

from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, in_range, nan_where, shape
from linearcore._torch import is_on_host
from linearcore._typing import compute_dtype
from linearcore.forms import Form, tensor_attributes
from linearcore.kernels import (
    SampledRows,
    can_compile_sampled,
    entries,
    resolve_backend,
    sampled_kernels,
    sampled_rows,
)
from linearcore.losses._infinite import mark_infinite
from linearcore.proposals import Candidates, Proposal, check_num_samples, mask_targets
from linearcore.surrogates import Surrogate


class SampledBatch(NamedTuple):
    """Rows with their candidates.

    Attributes:
        hidden, weight, bias: as in `sampled_multiclass_loss`.
        target: (N,) int64 labels as the user passed them.
        samples: sampled classes and their weights.
        has_targets: whether the samples may have the targets among them, see `Proposal.shared_samples`.
        form, surrogate, ignore_index: as in `sampled_multiclass_loss`.
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None
    target: Tensor
    samples: Candidates
    has_targets: bool
    form: Form
    surrogate: Surrogate
    ignore_index: int

    @classmethod
    def of(
        cls, hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, sample_weight: Tensor | None, *,
        proposal: Proposal, num_samples: int, form: Form, surrogate: Surrogate, ignore_index: int,
        generator: torch.Generator | None,
    ) -> "SampledBatch":  # fmt: skip
        """Checks the arguments and samples the candidates."""
        check_num_samples(num_samples)
        if not isinstance(proposal, Proposal):
            advice = "pass linearcore.proposals.Uniform(), for example"
            raise TypeError(complaint("proposal", "be a `Proposal`", type(proposal).__name__, advice))
        _check_shapes(hidden, weight, bias, target, sample_weight)
        num_classes = weight.shape[0]
        labels = target.long()  # Before the comparison, because unsigned types cannot represent −100.
        samples = proposal.shared_samples(num_classes, num_samples, labels, generator)
        has_targets = samples is not None
        if samples is None:
            index, _ = _in_range(labels, num_classes, ignore_index)
            samples = proposal.candidates(index, num_classes, num_samples, generator)
        return cls(hidden, weight, bias, labels, samples, has_targets, form, surrogate, ignore_index)

    @property
    def is_counted(self) -> Tensor:
        """(N,) booleans: the row is not ignored."""
        return self.target != self.ignore_index

    def losses(self, backend: str, *, sparse: bool) -> Tensor:
        """Returns the losses (N,), float32 or float64; 0 for ignored rows."""
        hidden, weight, bias, samples = self.hidden, self.weight, self.bias, self.samples
        tensors = [tensor for tensor in (hidden, weight, bias) if tensor is not None]
        code = self.form.sampled_code(self.surrogate)
        has_kernels = code is not None and len(samples.index) == 1
        can_compile = has_kernels and can_compile_sampled(hidden, (weight, bias))
        others = samples.log_weight, *tensor_attributes(self.form, self.surrogate)
        backend = resolve_backend(backend, tensors, others, can_fuse=has_kernels, can_compile=can_compile)
        kernels = sampled_kernels(backend, *tensors)
        if backend == "fused" and is_on_host(self.target):  # Triton's interpreter: labels out of range raise, as elsewhere.
            _in_range(self.target, weight.shape[0], self.ignore_index)

        def reference(hidden: Tensor, weight: Tensor, bias: Tensor | None, *_: None) -> Tensor:
            return self._replace(hidden=hidden, weight=weight, bias=bias)._reference(sparse=sparse)

        if kernels is None or code is None:
            return reference(hidden, weight, bias)
        rows = SampledRows(
            code, weight, bias, None, self.target.contiguous(), samples.index.long().contiguous().view(-1),
            samples.log_weight.expand(len(hidden), -1), ignore_index=self.ignore_index,
        )  # fmt: skip
        return sampled_rows(hidden, rows, kernels, reference, sparse=sparse, dtype=product_dtype(hidden))

    def _reference(self, *, sparse: bool) -> Tensor:
        index, is_out_of_range = _in_range(self.target, self.weight.shape[0], self.ignore_index)
        label_scores, scores, log_weight = self._scores(index, sparse=sparse)
        losses = self.form.sampled_losses(self.surrogate, label_scores, scores, log_weight, self.weight.shape[0])
        is_ignored = ~self.is_counted
        losses = mark_infinite(nan_where(losses, is_out_of_range), label_scores.masked_fill(is_ignored, 0.0))
        return losses.masked_fill(is_ignored, 0.0)

    def _scores(self, index: Tensor, *, sparse: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the scores of the labels `index` (N,) and of the candidates, and the log weights of these."""
        candidates = mask_targets(self.samples, index) if self.has_targets else self.samples
        scores = class_scores(self.hidden, self.weight, self.bias, index, candidates.index, sparse=sparse)
        return *scores, candidates.log_weight

    @torch.no_grad()
    def influences(self) -> tuple[Tensor, Tensor]:
        """Returns what the candidates contribute to the losses, to first order, (N, K), 0 for ignored rows; log weights."""
        index, _ = _in_range(self.target, self.weight.shape[0], self.ignore_index)
        label_scores, scores, log_weight = self._scores(index, sparse=False)
        parts = self.form.sampled_influences(self.surrogate, label_scores, scores, log_weight, self.weight.shape[0])
        return parts.masked_fill(~self.is_counted.unsqueeze(-1), 0.0), log_weight


def _in_range(target: Tensor, num_classes: int, ignore_index: int) -> tuple[Tensor, Tensor | None]:
    """Returns labels in [0, C), 0 for ignored rows, and which ones were out of range; raises for these on a CPU."""
    known = target.masked_fill(target == ignore_index, 0)
    return in_range("target", known, num_classes, "equal to `ignore_index`")


def _check_shapes(hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, sample_weight: Tensor | None) -> None:
    if hidden.dim() != 2:
        raise ValueError(complaint("hidden", "have shape (N, d)", tuple(hidden.shape), "flatten the leading dimensions"))
    floating("linear_weight", weight, "pass the weight of the last layer, as in nn.Linear")
    num_classes = weight.shape[0] if weight.dim() else 1
    shape("linear_weight", weight, (num_classes, hidden.shape[1]), "rows are classes, as in nn.Linear")
    shape("target", target, (hidden.shape[0],), "pass one class per row of `hidden`")
    if bias is not None:
        shape("linear_bias", bias, (num_classes,), "pass one value per class")
    if sample_weight is not None:
        shape("sample_weight", sample_weight, (hidden.shape[0],), "pass one value per row of `hidden`")
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise TypeError(complaint("target", "be integer class indices", target.dtype, "convert it with `.long()`"))


def product_dtype(hidden: Tensor) -> torch.dtype:
    """Returns the dtype of products with `hidden`: its own, or that of autocast for float32."""
    device = hidden.device.type
    if hidden.dtype == torch.float32 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return hidden.dtype


def class_scores(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, candidates: Tensor, *, sparse: bool
) -> tuple[Tensor, Tensor]:
    """Returns the scores (N,) of `labels` (N,) and (N, K) of `candidates`, (N, K) or (1, K); float32 for half precisions.

    Products are computed in the dtype of `hidden`, as in nn.Linear. The gradients of weight and bias are one sparse tensor
    each.
    """
    dtype = compute_dtype(hidden)
    rows = hidden.shape[0]
    classes = torch.cat([labels, candidates.reshape(-1)])
    class_weights = entries(weight, classes, sparse=sparse)
    label_weights, candidate_weights = class_weights[:rows], class_weights[rows:]
    label_scores = (hidden.to(dtype) * label_weights.to(dtype)).sum(-1)
    if candidates.shape[0] == 1:
        scores = (hidden @ candidate_weights.to(hidden.dtype).t()).to(dtype)
    else:
        candidate_weights = candidate_weights.view(*candidates.shape, hidden.shape[1]).to(hidden.dtype)
        scores = torch.einsum("nd,nkd->nk", hidden, candidate_weights).to(dtype)
    if bias is None:
        return label_scores, scores
    class_bias = entries(bias, classes, sparse=sparse).to(dtype)
    return label_scores + class_bias[:rows], scores + class_bias[rows:].view(candidates.shape)
