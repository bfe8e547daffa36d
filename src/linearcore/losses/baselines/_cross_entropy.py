"""Cross-entropy."""

from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, baseline


@baseline("CE", is_symmetric=False, is_convex=True, is_bounded=False)
def cross_entropy(rows: LabelledRows) -> Tensor:
    """Cross-entropy: `F.cross_entropy` with `sample_weight` and masked classes.

    The loss to beat when all labels are right. It also fits wrong labels: the less likely the label of a row, the larger its
    gradient. `F.cross_entropy` and `multiclass_loss(surrogate=Logistic(), form="logodds")` are faster.

        ℓ(s, y) = −log p_y = logsumexp s − s_y,        p = softmax(s)
    """
    return -rows.own(rows.log_probabilities)
