"""Accuracy of a tagger with scaled transition scores."""

import torch

from linearcore.tagging import Batch, TaggingModel
from linearcore_paper.experiments.tagging.training import accuracy


@torch.no_grad()
def scaled_accuracy(model: TaggingModel, batches: list[Batch], scale: float) -> float:
    """Returns the accuracy in per cent with all parameters of the head multiplied by `scale`; 0 uses only emissions."""
    # Only one of the two factors of low-rank transitions is scaled.
    parameters = (
        [] if model.head is None else [value for name, value in model.head.named_parameters() if name != "transitions_to"]
    )
    saved = [value.clone() for value in parameters]
    for value in parameters:
        value.mul_(scale)
    result = accuracy(model, batches)
    for value, old in zip(parameters, saved, strict=True):
        value.copy_(old)
    return result
