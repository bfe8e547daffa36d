"""Cross-entropy."""

from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, baseline


@baseline("CE", is_symmetric=False, is_convex=True, is_bounded=False)
def cross_entropy(rows: LabelledRows) -> Tensor:
    """Cross-entropy: as `F.cross_entropy`, plus `sample_weight` and masked classes.

    The standard loss for clean labels. It also fits wrong labels, because rows with an improbable label have the largest
    gradients. `F.cross_entropy` and `multiclass_loss(surrogate=Logistic(), form="logodds")` are faster.

        ℓ(s, y) = −log p_y = logsumexp s − s_y,        p = softmax(s)
    """
    return -rows.gather_labels(rows.log_probabilities)
