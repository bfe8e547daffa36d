"""The losses as torch modules."""

from torch import Tensor, nn

from linearcore._checks import complaint, one_of
from linearcore._reduce import check_reduction
from linearcore._typing import Reduction
from linearcore.forms import Form
from linearcore.kernels import BACKENDS
from linearcore.losses._batch import check_label_smoothing
from linearcore.losses._binary import binary_loss
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_form, check_surrogate, multiclass_loss
from linearcore.losses._robust import ROBUST_SURROGATE, check_radius, check_scale, is_symmetric, robust_loss
from linearcore.surrogates import Surrogate


class LinearCoreLoss(nn.Module):
    """Module for `multiclass_loss`; a drop-in replacement for `nn.CrossEntropyLoss`.

    Args:
        weight: (C) class weights.
        surrogate, form, normalize, class_margin, ignore_index, label_smoothing, reduction, backend, validate: as in
            `multiclass_loss`.

    Example:
        >>> import torch
        >>> criterion = LinearCoreLoss()
        >>> scores = torch.zeros(4, 10, requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([3, 1, 4, 1]))
        >>> loss.backward()
        >>> scores.grad.shape
        torch.Size([4, 10])
    """

    weight: Tensor | None
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
        super().__init__()
        check_reduction(reduction)
        check_label_smoothing(label_smoothing)
        one_of("backend", backend, BACKENDS)
        self.surrogate = surrogate
        self.form = check_form(form, normalize, surrogate)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.reduction: Reduction = reduction
        self.backend = backend
        self.validate = validate
        self.register_buffer("weight", _tensor_or_none("weight", weight))
        self.register_buffer("class_margin", _tensor_or_none("class_margin", class_margin))

    def forward(self, scores: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss; `sample_weight` has the shape of the unreduced loss."""
        return multiclass_loss(
            scores,
            target,
            surrogate=self.surrogate,
            form=self.form,
            weight=self.weight,
            sample_weight=sample_weight,
            class_margin=self.class_margin,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
            backend=self.backend,
            validate=self.validate,
        )

    def extra_repr(self) -> str:
        return f"surrogate={self.surrogate}, form={self.form}, reduction={self.reduction!r}"


class RobustLinearCoreLoss(nn.Module):
    """Module for `robust_loss`, for training with noisy labels; a drop-in replacement for `nn.CrossEntropyLoss`.

    Args:
        weight: (C) class weights.
        radius, surrogate, scale, ignore_index, label_smoothing, reduction, backend, validate: as in `robust_loss`.

    Attributes:
        is_symmetric: whether the guarantees of `robust_loss` hold: the core is wide enough, τ ≥ √2 · radius.

    Example:
        >>> import torch
        >>> criterion = RobustLinearCoreLoss(scale=0.1)
        >>> criterion(torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([0]))
        tensor(0.2326)
        >>> criterion.is_symmetric
        True
    """

    weight: Tensor | None

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
        super().__init__()
        check_reduction(reduction)
        check_label_smoothing(label_smoothing)
        one_of("backend", backend, BACKENDS)
        self.radius = check_radius(radius)
        self.surrogate = check_surrogate(surrogate)
        self.scale = check_scale(scale)
        self.is_symmetric = is_symmetric(surrogate, self.radius)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.reduction: Reduction = reduction
        self.backend = backend
        self.validate = validate
        self.register_buffer("weight", _tensor_or_none("weight", weight))

    def forward(self, scores: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss; `sample_weight` has the shape of the unreduced loss."""
        return robust_loss(
            scores,
            target,
            radius=self.radius,
            surrogate=self.surrogate,
            scale=self.scale,
            weight=self.weight,
            sample_weight=sample_weight,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
            backend=self.backend,
            validate=self.validate,
        )

    def extra_repr(self) -> str:
        return f"radius={self.radius:g}, surrogate={self.surrogate}, scale={self.scale:g}, reduction={self.reduction!r}"


class BinaryLinearCoreLoss(nn.Module):
    """Module for `binary_loss`; a drop-in replacement for `nn.BCEWithLogitsLoss`.

    Args:
        pos_weight: weight of positive targets, in a shape that broadcasts to the scores.
        surrogate, signed, reduction, backend, validate: as in `binary_loss`.

    Example:
        >>> import torch
        >>> BinaryLinearCoreLoss()(torch.zeros(3), torch.tensor([0.0, 1.0, 0.5]))
        tensor(2.3863)
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        pos_weight: Tensor | None = None,
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
        one_of("backend", backend, BACKENDS)
        self.surrogate = surrogate
        self.signed = signed
        self.reduction: Reduction = reduction
        self.backend = backend
        self.validate = validate
        self.register_buffer("pos_weight", pos_weight)

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

    def extra_repr(self) -> str:
        return f"surrogate={self.surrogate}, signed={self.signed}, reduction={self.reduction!r}"


def _tensor_or_none(name: str, vector: object) -> Tensor | None:
    """Returns `vector`; raises if it is neither a tensor nor None."""
    if vector is None or isinstance(vector, Tensor):
        return vector
    raise TypeError(complaint(name, "be a torch tensor", type(vector).__name__, "wrap it in torch.as_tensor"))
