"""The losses as torch modules."""

import torch
from torch import Tensor, nn

from linearcore._checks import floating, one_of
from linearcore._reduce import check_reduction
from linearcore._typing import Reduction, compute_dtype
from linearcore.forms import Form
from linearcore.kernels import BACKENDS
from linearcore.losses._arguments import takes_input, tensor_or_none, weight_or_none
from linearcore.losses._batch import check_label_smoothing
from linearcore.losses._binary import BINARY_BACKENDS, binary_loss
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_form, check_surrogate, multiclass_loss
from linearcore.losses._robust import ROBUST_SURROGATE, check_radius, check_scale, is_symmetric, robust_loss
from linearcore.losses._targets import class_rows
from linearcore.surrogates import Surrogate

#: Weight of the softmax (or sigmoid) of the scores. In the linear core the loss does not order classes by probability:
#: with two classes both have ½. This part keeps the class with the highest score the most probable one.
_SOFTMAX_WEIGHT = 1e-3


class _MulticlassModule(nn.Module):
    """Base class of the multi-class losses: the options that all have."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None,
        surrogate: Surrogate,
        *,
        ignore_index: int,
        label_smoothing: float,
        reduction: Reduction,
        backend: str,
        validate: bool,
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        check_label_smoothing(label_smoothing)
        one_of("backend", backend, BACKENDS)
        self.surrogate = check_surrogate(surrogate)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.reduction: Reduction = reduction
        self.backend = backend
        self.validate = validate
        self.register_buffer("weight", tensor_or_none("weight", weight))

    def _shared_repr(self) -> str:
        """Returns the reduction, and `ignore_index` and `label_smoothing` if they are not at their default."""
        words = [f"reduction={self.reduction!r}"]
        if self.ignore_index != -100:
            words.append(f"ignore_index={self.ignore_index}")
        if self.label_smoothing:
            words.append(f"label_smoothing={self.label_smoothing}")
        return ", ".join(words)


class LinearCoreLoss(_MulticlassModule):
    """Margin loss for classification with C classes; a drop-in replacement for `nn.CrossEntropyLoss`.

        logodds    φ(s_y − logsumexp_{v≠y} s_v)        accuracy close to cross-entropy (default)
        pairwise   mean_{v≠y} φ(s_y − s_v)             the paper's loss divided by C − 1
        centered   mean_{v≠y} φ(−(s_v − mean s))       has a linear regret bound

    s are the scores, y is the label, and φ is the surrogate. `docs/guarantees.md` compares the forms. The function is
    `multiclass_loss`, which describes the arguments in detail.

    Args:
        weight: (C) class weights.
        surrogate: φ, the function of the margin, for example `LinearCore(tau=1.0)`.
        form: "logodds", "pairwise", "centered", or a `Form`.
        normalize: for "pairwise" and "centered": mean (None, the default, or True) or sum (False) over the classes v ≠ y.
        class_margin: (C). `class_margin[y]` is subtracted from all margins of samples with label y. Use larger values for
            rare classes.
        ignore_index: samples with this target are ignored.
        label_smoothing: ε in [0, 1], as in `nn.CrossEntropyLoss`.
        reduction: "mean", "sum" or "none".
        backend: the implementation; "auto" chooses the fastest.
        validate: raise for invalid scores and targets; synchronises with the GPU.

    Example:
        >>> import torch
        >>> criterion = LinearCoreLoss()
        >>> scores = torch.zeros(4, 10, requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([3, 1, 4, 1]))
        >>> loss.backward()
        >>> scores.grad.shape
        torch.Size([4, 10])
    """

    class_margin: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        surrogate: Surrogate = DEFAULT_SURROGATE,
        form: str | Form = "logodds",
        normalize: bool | None = None,
        class_margin: Tensor | None = None,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: Reduction = "mean",
        backend: str = "auto",
        validate: bool = False,
    ) -> None:
        super().__init__(
            weight,
            surrogate,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
            backend=backend,
            validate=validate,
        )
        self.form = check_form(form, normalize, surrogate)
        self.register_buffer("class_margin", tensor_or_none("class_margin", class_margin))

    @takes_input
    def forward(self, scores: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss; `sample_weight` has the shape of the unreduced loss."""
        buffers = self._buffers  # `self.weight` would take a microsecond, as an attribute that Python does not find at once.
        return multiclass_loss(
            scores,
            target,
            surrogate=self.surrogate,
            form=self.form,
            weight=buffers["weight"],
            sample_weight=sample_weight,
            class_margin=buffers["class_margin"],
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
            backend=self.backend,
            validate=self.validate,
        )

    def probabilities(self, scores: Tensor) -> Tensor:
        """Returns class probabilities in the shape of `scores`, for example as skorch's `predict_nonlinearity`.

        The result is 0.999 · p + 0.001 · softmax(scores). p are the class probabilities for which these scores minimise the
        expected loss. In the linear core they are not unique; the softmax keeps their order equal to that of the scores. p
        refers to the training labels with `weight`, `class_margin` and `label_smoothing` applied.

        Raises:
            ValueError: if the form does not estimate probabilities, as "pairwise" and "centered".

        Example:
            >>> import torch
            >>> LinearCoreLoss().probabilities(torch.tensor([[4.0, 0.0, 0.0]]))
            tensor([[0.8444, 0.0778, 0.0778]])
        """
        floating("scores", scores, "pass the raw output of the network")
        rows = class_rows(scores)
        rows = rows.to(compute_dtype(rows))
        mixed = torch.lerp(self.form.posterior(self.surrogate, rows), rows.softmax(-1), _SOFTMAX_WEIGHT)
        dimension = min(1, scores.dim() - 1)
        outer = scores.shape[:dimension] + scores.shape[dimension + 1 :]
        return mixed.reshape(*outer, scores.shape[dimension]).movedim(-1, dimension)

    def extra_repr(self) -> str:
        return f"surrogate={self.surrogate}, form={self.form}, {self._shared_repr()}"


class RobustLinearCoreLoss(_MulticlassModule):
    """Pairwise loss of scores that are centred and scaled to a fixed norm; called like `nn.CrossEntropyLoss`.

        ℓ = scale · mean_{v≠y} φ(z_y − z_v)        z = radius · (s − s̄) / ‖s − s̄‖

    Use it for a ResNet-like network on images if up to about a third of the labels are wrong. For small networks and linear
    layers use symmetric cross-entropy or ELR (`linearcore.losses.baselines`). It is not convex in the scores. The function
    is `robust_loss`.

    Hyper-parameters tuned for cross-entropy are not suitable. Tune the learning rate and the number of epochs; with SGD also
    `scale` and weight decay: `docs/wrong-labels.md`.

    Args:
        weight: (C) class weights.
        radius: norm of the scaled scores.
        scale: factor of the loss.
        surrogate, ignore_index, label_smoothing, reduction, backend, validate: as in `robust_loss`.

    Attributes:
        is_symmetric: True if τ ≥ √2 · radius. Then Σ_y ℓ(s, y) is constant (a symmetric loss), and the guarantees of
            `robust_loss` hold.

    Example:
        >>> import torch
        >>> criterion = RobustLinearCoreLoss(scale=0.1)
        >>> criterion(torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([0]))
        tensor(0.2326)
        >>> criterion.is_symmetric
        True
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        radius: float = 1.0,
        surrogate: Surrogate = ROBUST_SURROGATE,
        scale: float = 1.0,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: Reduction = "mean",
        backend: str = "auto",
        validate: bool = False,
    ) -> None:
        super().__init__(
            weight,
            surrogate,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
            backend=backend,
            validate=validate,
        )
        self.radius = check_radius(radius)
        self.scale = check_scale(scale)
        self.is_symmetric = is_symmetric(surrogate, self.radius)

    @takes_input
    def forward(self, scores: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss; `sample_weight` has the shape of the unreduced loss."""
        return robust_loss(
            scores,
            target,
            radius=self.radius,
            surrogate=self.surrogate,
            scale=self.scale,
            weight=self._buffers["weight"],
            sample_weight=sample_weight,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
            backend=self.backend,
            validate=self.validate,
        )

    def extra_repr(self) -> str:
        return f"radius={self.radius:g}, surrogate={self.surrogate}, scale={self.scale:g}, {self._shared_repr()}"


class BinaryLinearCoreLoss(nn.Module):
    """Margin loss for binary or multi-label classification; a drop-in replacement for `nn.BCEWithLogitsLoss`.

    The function is `binary_loss`, which has the formula.

    Args:
        pos_weight: weight of positive targets: a number, or a tensor in a shape that broadcasts to the scores.
        surrogate, signed, reduction, backend, validate: as in `binary_loss`.

    Example:
        >>> import torch
        >>> BinaryLinearCoreLoss()(torch.zeros(3), torch.tensor([0.0, 1.0, 0.5]))
        tensor(2.3863)
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        pos_weight: Tensor | float | None = None,
        *,
        surrogate: Surrogate = DEFAULT_SURROGATE,
        signed: bool = False,
        reduction: Reduction = "mean",
        backend: str = "auto",
        validate: bool = False,
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        check_surrogate(surrogate)
        one_of("backend", backend, BINARY_BACKENDS)
        self.surrogate = surrogate
        self.signed = signed
        self.reduction: Reduction = reduction
        self.backend = backend
        self.validate = validate
        self.register_buffer("pos_weight", weight_or_none("pos_weight", pos_weight))

    @takes_input
    def forward(self, scores: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss; `sample_weight` broadcasts to the shape of `scores`."""
        return binary_loss(
            scores,
            target,
            surrogate=self.surrogate,
            pos_weight=self.pos_weight,
            sample_weight=sample_weight,
            signed=self.signed,
            reduction=self.reduction,
            backend=self.backend,
            validate=self.validate,
        )

    def probabilities(self, scores: Tensor) -> Tensor:
        """Returns the probability of the positive label for each score: `surrogate.posterior`, and 0.1 % sigmoid.

        The sigmoid orders scores between −τ and τ, where the posterior is ½: it is above ½ for all scores above 0.

        Example:
            >>> import torch
            >>> BinaryLinearCoreLoss().probabilities(torch.tensor([-4.0, 0.0, 4.0]))
            tensor([0.0866, 0.5000, 0.9134])
        """
        floating("scores", scores, "pass the raw output of the network")
        margins = scores.to(compute_dtype(scores))
        return torch.lerp(self.surrogate.posterior(margins), margins.sigmoid(), _SOFTMAX_WEIGHT)

    def extra_repr(self) -> str:
        return f"surrogate={self.surrogate}, signed={self.signed}, reduction={self.reduction!r}"
