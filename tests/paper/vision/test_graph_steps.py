"""What a recorded step does around CUDA, with a stand-in for CUDA: a graph that does the step anew when it is replayed."""

from contextlib import nullcontext

import torch

from linearcore.losses.baselines import EarlyLearning
from linearcore_paper.vision._losses import SampleLoss
from linearcore_paper.vision._plan import epoch_plan, epoch_rates
from linearcore_paper.vision._result import new_network
from linearcore_paper.vision._steps import GraphStepper, Stepper
from linearcore_paper.vision._views import Normal
from tests.paper.vision.toy_images import SHORT, toy

DATA = toy(70).to("cpu")


def loaded(stepper):
    stepper.begin()
    stepper.load(epoch_plan(len(DATA), SHORT, 0), epoch_rates(stepper.steps, SHORT, 0))
    return stepper


def parts():
    return new_network(SHORT, 3, 3), SampleLoss(EarlyLearning(70, 3), "cpu"), DATA, Normal.of(DATA.images), SHORT


def test_recording_leaves_everything_as_it_was_and_replays_give_the_same_steps(monkeypatch):
    plain, stepper = loaded(Stepper(*parts())), loaded(GraphStepper(*parts(), stream=None))
    captured = []

    class Graph:
        def replay(self):
            assert captured == [self]
            stepper._one()

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, stream: captured.append(graph) or nullcontext())
    for _ in range(plain.steps - 1):
        plain.step()
        stepper.step()
    # At the end of an epoch there is no step left to warm up with; a run that is taken up there records all the same.
    stepper._graph = None
    captured.clear()
    before = {name: value.clone() for name, value in stepper.state().items()}
    stepper.prepare()
    assert all(torch.equal(value, before[name]) for name, value in stepper.state().items())
    plain.step()
    stepper.step()
    assert int(stepper.counter) == stepper.steps
    for one, other in zip(plain.state().values(), stepper.state().values(), strict=True):
        assert torch.equal(one, other)
    assert not torch.backends.cudnn.benchmark
