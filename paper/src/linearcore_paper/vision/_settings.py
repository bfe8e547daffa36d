"""How a network is trained on images."""

from dataclasses import asdict, dataclass
from typing import Any

from linearcore.runtime import between, complaint, one_of, positive
from linearcore_paper.vision.networks import NETWORKS

PRECISIONS = ("auto", "fp32", "bf16")
SCHEDULES = ("cosine", "linear", "constant")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights, besides the data, the loss and the machine. The defaults are the paper's.

    Attributes:
        network: a key of `linearcore_paper.vision.networks.NETWORKS`.
        width: channels of the network's first stage.
        epochs: passes over the training images.
        batch: images a step; what is left of an epoch when no full batch remains is left out.
        rate: the largest learning rate of SGD.
        momentum, nesterov: of SGD.
        decay: weight decay, of all parameters.
        loss_scale: the mean loss of a batch is multiplied by it. Against `decay` it is not idle: half the loss with twice
            the rate and half the decay are the same steps, half the loss alone is not.
        schedule: "cosine" or "linear", both from `rate` to 0 step by step, or "constant".
        warmup: share of all steps in which the rate rises to `rate` first.
        augment: move every image by up to 4 pixels, zeros beyond the border, and mirror every second one.
        precision: "fp32", "bf16" (weights and loss stay in float32), or "auto": bf16 on a GPU that has it.
        seed: of weights, order and augmentation.
        compiled: let torch.compile make the network faster; takes a while before the first step.

    Raises:
        ValueError: if a value makes no sense.

    Example:
        >>> Recipe(epochs=10, rate=0.05).decay
        0.0005
        >>> Recipe(rate=0)
        Traceback (most recent call last):
            ...
        ValueError: `rate` must be a positive number, got 0; for example 0.1
    """

    network: str = "resnet18"
    width: int = 64
    epochs: int = 50
    batch: int = 128
    rate: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    decay: float = 5e-4
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
        positive("rate", self.rate, "for example 0.1")
        positive("loss_scale", self.loss_scale, "1 leaves the loss as it is")
        between("decay", self.decay, 0, 1, "for example 5e-4")
        for name in ("momentum", "warmup"):
            if between(name, getattr(self, name), 0, 1, "for example 0.9") == 1:
                raise ValueError(complaint(name, "be below 1", getattr(self, name), "for example 0.9"))
        if self.nesterov and self.momentum == 0:
            raise ValueError(complaint("nesterov", "have a momentum", 0, "pass momentum=0.9, or leave it out"))

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)
