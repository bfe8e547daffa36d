"""Training settings for images."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from linearcore.runtime import between, complaint, one_of, positive
from linearcore_paper.vision.networks import NETWORKS

PRECISIONS = ("auto", "fp32", "bf16")
SCHEDULES = ("cosine", "linear", "constant")
#: Names of attributes in saved runs and committed records, if they differ.
_SAVED_NAMES = {"lr": "rate", "weight_decay": "decay"}


@dataclass(frozen=True)
class Recipe:
    """All training settings except data, loss and device. The defaults are those of the paper.

    Attributes:
        network: a key of `linearcore_paper.vision.networks.NETWORKS`.
        width: channels of the first stage of the network.
        epochs: number of training epochs.
        batch: batch size; the incomplete last batch of an epoch is dropped.
        lr: largest learning rate of SGD.
        momentum, nesterov: momentum of SGD, and whether it is Nesterov momentum.
        weight_decay: weight decay of all parameters.
        loss_scale: factor of the mean loss of a batch. It acts relative to `weight_decay`: halving the loss, doubling
            `lr` and halving `weight_decay` changes nothing, halving the loss alone does.
        schedule: "cosine" or "linear", both from `lr` to 0, or "constant".
        warmup: fraction of all steps in which the learning rate increases linearly to `lr`.
        augment: shift every image by up to 4 pixels, with zero padding, and mirror each with probability ½.
        precision: "fp32", "bf16" (weights and loss stay in float32), or "auto" (bf16 on GPUs that support it).
        seed: random seed of weights, order and augmentation.
        compiled: use torch.compile for the network; the first step takes longer.

    Raises:
        ValueError: if a value is out of range.

    Example:
        >>> Recipe(epochs=10, lr=0.05).weight_decay
        0.0005
        >>> Recipe(lr=0)
        Traceback (most recent call last):
            ...
        ValueError: `lr` must be a positive number, got 0; for example 0.1
    """

    network: str = "resnet18"
    width: int = 64
    epochs: int = 50
    batch: int = 128
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 5e-4
    loss_scale: float = 1.0
    schedule: str = "cosine"
    warmup: float = 0.0
    augment: bool = True
    precision: str = "auto"
    seed: int = 0
    compiled: bool = False

    def __post_init__(self) -> None:
        one_of("network", self.network, NETWORKS)
        one_of("schedule", self.schedule, SCHEDULES)
        one_of("precision", self.precision, PRECISIONS)
        for name in ("width", "epochs", "batch"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(complaint(name, "be a positive integer", repr(value), "leave it out for the default"))
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**31:
            raise ValueError(complaint("seed", "be an integer in [0, 2³¹)", repr(self.seed), "for example 0"))
        positive("lr", self.lr, "for example 0.1")
        positive("loss_scale", self.loss_scale, "1 leaves the loss as it is")
        between("weight_decay", self.weight_decay, 0, 1, "for example 5e-4")
        for name in ("momentum", "warmup"):
            if between(name, getattr(self, name), 0, 1, "for example 0.9") == 1:
                raise ValueError(complaint(name, "be below 1", getattr(self, name), "for example 0.9"))
        if self.nesterov and self.momentum == 0:
            raise ValueError(complaint("nesterov", "have a momentum", 0, "pass momentum=0.9, or leave it out"))

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values, with the keys of saved runs: `rate` and `decay`."""
        return {_SAVED_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Self:
        """Reads the settings that `to_json` returned."""
        names = {key: name for name, key in _SAVED_NAMES.items()}
        return cls(**{names.get(key, key): value for key, value in saved.items()})
