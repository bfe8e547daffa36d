"""Trains one network on labelled images with any loss."""

from collections.abc import Sequence
from os import PathLike

import torch

from linearcore.runtime import Progress
from linearcore_paper.vision._images import Images
from linearcore_paper.vision._losses import Loss
from linearcore_paper.vision._many import train_many
from linearcore_paper.vision._result import Trained
from linearcore_paper.vision._run import Run
from linearcore_paper.vision._settings import Recipe


def train(
    data: Images,
    loss: Loss,
    recipe: Recipe | None = None,
    *,
    validation: Images | None = None,
    test: Images | None = None,
    device: torch.device | str = "cpu",
    loss_name: str = "",
    out: str | PathLike[str] | None = None,
    fresh: bool = False,
    keep_scores_at: Sequence[int] = (),
    save_every: float = 300.0,
    progress: Progress | None = None,
) -> Trained:
    """Trains a network; with `out`, saves it there, and resumes an interrupted call with the same arguments.

    For many runs at once, or more options, see `Run` and `train_many`.

    Args:
        data, loss, recipe, validation, test, device, loss_name, out, fresh, keep_scores_at: as in `Run`.
        save_every, progress: as in `train_many`.

    Returns:
        The network with its last weights, and its history.

    Raises:
        ValueError: if arguments are invalid, or `out` contains another run, as in `Run`.
        FloatingPointError: if the loss is not finite.
        StoppedError: after SIGINT or SIGTERM, once the state is saved.

    Example:
        >>> import torch, linearcore as lc
        >>> from linearcore_paper.vision import Images, Recipe, train
        >>> pixels = torch.randint(0, 255, (8, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        >>> data = Images(pixels, torch.tensor([0, 1] * 4), ("even", "odd"))
        >>> result = train(data, lc.multiclass_loss, Recipe("small", width=2, epochs=1, batch=4), loss_name="lc")
        >>> result
        Trained(small, 1 of 1 epochs, 2 classes, loss=lc)
        >>> result.scores(data.images).shape
        torch.Size([8, 2])

    Cost: an epoch of ResNet-18 on CIFAR-10 is about 80 · 10¹² multiplications, so use a GPU.
    """
    run = Run(
        data,
        loss,
        recipe,
        validation=validation,
        test=test,
        device=device,
        loss_name=loss_name,
        out=out,
        fresh=fresh,
        keep_scores_at=keep_scores_at,
    )
    (result,) = train_many([run], save_every=save_every, progress=progress)
    if result.failed is not None:
        raise FloatingPointError(f"{result.failed}; try a smaller `lr`")
    return result
