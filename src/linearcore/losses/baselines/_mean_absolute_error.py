"""Mean absolute error."""

import torch
from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, baseline


@baseline("MAE", is_symmetric=True, is_convex=False, is_bounded=True)
def mean_absolute_error(rows: LabelledRows) -> Tensor:
    """The L1 distance between the softmax and the one-hot label: symmetric and bounded.

    Σ_y ℓ(s, y) = 2(n − 1) for all scores, so uniform label noise at a rate below 1 − 1/n does not change the minimiser. The
    gradient vanishes as p_y → 0. With many classes prefer `generalized_cross_entropy` or `active_passive_cross_entropy`.

        ℓ(s, y) = Σ_v |1[v = y] − p_v| = 2 (1 − p_y),        p = softmax(s)

    Probability targets give the expectation over y, which is not the L1 distance between p and the target.

    Reference: Ghosh, Kumar and Sastry, *Robust Loss Functions under Label Noise for Deep Neural Networks*, AAAI 2017.
    """
    return -2 * torch.expm1(rows.gather_labels(rows.log_probabilities))  # 1 − exp would round a small loss to 0.
