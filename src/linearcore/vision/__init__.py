"""Images with right and wrong labels: CIFAR-10 and MNIST's kin, networks, and training with any loss, many runs at once."""

from linearcore.runtime import StoppedError
from linearcore.vision._cifar10 import cifar10
from linearcore.vision._download import DownloadError
from linearcore.vision._idx import fashion_mnist, mnist
from linearcore.vision._images import Images, ImageSets, hold_out
from linearcore.vision._losses import Loss
from linearcore.vision._many import train_many
from linearcore.vision._result import Trained
from linearcore.vision._run import Run
from linearcore.vision._settings import Recipe
from linearcore.vision._training import train

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
