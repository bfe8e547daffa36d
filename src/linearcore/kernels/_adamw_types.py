"""Numbers of a step of AdamW."""

from typing import NamedTuple


class AdamWStep(NamedTuple):
    """Numbers of a step, the same for all rows.

    Attributes:
        number: number of the step, from 1.
        lr, betas, eps: as in `optim.SparseAdamW`.
        decay: factor of the weight decay of one step, 1 − lr · weight_decay.
    """

    number: int
    lr: float
    betas: tuple[float, float]
    eps: float
    decay: float
