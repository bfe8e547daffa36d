"""Image classification: CIFAR-10, MNIST and Fashion-MNIST, networks, and training with any loss, many runs at once."""

from linearcore.runtime import StoppedError
from linearcore_paper.vision._cifar10 import cifar10
from linearcore_paper.vision._download import DownloadError
from linearcore_paper.vision._idx import fashion_mnist, mnist
from linearcore_paper.vision._images import Images, ImageSets, hold_out
from linearcore_paper.vision._losses import Loss
from linearcore_paper.vision._many import train_many
from linearcore_paper.vision._result import Trained
from linearcore_paper.vision._run import Run
from linearcore_paper.vision._settings import Recipe
from linearcore_paper.vision._training import train

__all__ = [
    "DownloadError",
    "ImageSets",
    "Images",
    "Loss",
    "Recipe",
    "Run",
    "StoppedError",
    "Trained",
    "cifar10",
    "fashion_mnist",
    "hold_out",
    "mnist",
    "train",
    "train_many",
]
