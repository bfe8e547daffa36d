import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import linearcore as lc
from linearcore.losses.baselines import BASELINES, BaselineLoss, EarlyLearning
from linearcore_paper.vision._losses import SampleLoss, needs_index

CPU = torch.device("cpu")
SCORES, LABELS, INDEX = torch.eye(3), torch.tensor([0, 1, 0]), torch.tensor([4, 0, 2])


def test_losses_a_sample_and_their_mean_are_the_same():
    whole = SampleLoss(F.cross_entropy, CPU)(SCORES, LABELS, INDEX)
    assert torch.equal(SampleLoss(functools.partial(F.cross_entropy, reduction="none"), CPU)(SCORES, LABELS, INDEX), whole)


class Told:
    needs_index = True

    def __call__(self, scores, labels, places):
        return places.float()


def test_who_wants_to_know_the_samples_is_told():
    assert needs_index(EarlyLearning(5, 3)) and needs_index(Told()) and needs_index(lambda scores, labels, index: index)
    for loss in (F.cross_entropy, lc.LinearCoreLoss(), *BASELINES.values(), BaselineLoss("unhinged"), max):
        assert not needs_index(loss)
    assert float(SampleLoss(Told(), CPU)(SCORES, LABELS, INDEX)) == 2.0


def test_a_module_is_copied_and_what_it_remembers_is_its_state():
    loss = EarlyLearning(5, 3)
    one, other = SampleLoss(loss, CPU), SampleLoss(loss, CPU)
    one.check(3, 5, CPU)
    assert not one.state()["history"].any()
    one.train(True)
    one(SCORES, LABELS, INDEX)
    assert one.state()["history"][INDEX].all() and not one.state()["history"][[1, 3]].any()
    assert not loss.history.any() and not other.state()["history"].any()
    before = one.state()["history"].clone()
    one.train(False)
    one(SCORES, LABELS, INDEX)
    assert torch.equal(one.state()["history"], before)
    assert SampleLoss(F.cross_entropy, CPU).state() == {}


@pytest.mark.parametrize(
    "loss, message",
    [
        (lambda scores: scores, r"`loss` must accept scores \(B, C\) and labels \(B,\) .*, got TypeError"),
        (lambda scores, labels: scores, r"got shape \(2, 3\); pass reduction='none'"),
        (lambda scores, labels: 1.0, "`loss` must accept .*, got float"),
        (EarlyLearning(4, 3), "got IndexError.*; .* 2 samples of 3 classes with indices 0 and 4"),
        (EarlyLearning(5, 2), r"^`history` must have shape \(2, 3\)"),
    ],
)
def test_a_loss_that_does_not_fit_is_refused_at_once(loss, message):
    with pytest.raises(ValueError, match=message) as caught:
        SampleLoss(loss, CPU).check(3, 5, CPU)
    assert "\n" not in str(caught.value)


def test_what_is_no_loss_is_refused():
    with pytest.raises(TypeError, match="`loss` must be a function or a module, got str"):
        SampleLoss("ce", CPU)


def test_a_check_leaves_no_trace_even_in_modules_that_always_count():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, scores, labels):
            self.calls += 1
            return scores[:, 0]

    loss = SampleLoss(Counting(), CPU)
    loss.check(3, 5, CPU)
    assert not loss.state()["calls"]


def test_an_error_of_the_loss_itself_goes_up_as_it_is():
    with pytest.raises(ValueError) as own:
        lc.RobustLinearCoreLoss()(torch.zeros(2, 2), torch.tensor([0, 1]))
    with pytest.raises(ValueError) as caught:
        SampleLoss(lc.RobustLinearCoreLoss(), CPU).check(2, 5, CPU)
    assert str(caught.value) == str(own.value) and "reduction" not in str(caught.value)
