"""The step from a uniform number to a wrong label, at its ends."""

import torch

from linearcore.noise._stream import wrong_labels

LAST = 1 - 2**-53


def test_classes_without_weight_are_never_chosen():
    weights = torch.tensor([[9.0, 0.0, 0.3, 0.7, 0.0]], dtype=torch.float64).repeat(4, 1)
    which = torch.tensor([0.0, 0.2999, 0.3001, LAST], dtype=torch.float64)
    assert wrong_labels(torch.zeros(4).long(), weights, which).tolist() == [2, 2, 3, 3]


def test_no_product_rounds_up_to_the_total():
    # 0.1 + 0.2 + … does not sum to a round number, and the last class has no weight.
    weights = (
        torch.tensor([[0.1, 0.2, 0.7, 0.0]], dtype=torch.float64) * torch.logspace(-9, 9, 200, dtype=torch.float64)[:, None]
    )
    labels = wrong_labels(torch.zeros(200).long(), weights, torch.full((200,), LAST, dtype=torch.float64))
    assert (labels == 2).all()


def test_classes_are_counted_from_the_true_one_around():
    which = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    assert wrong_labels(torch.full((3,), 2), torch.ones(3, 4, dtype=torch.float64), which).tolist() == [3, 0, 1]
