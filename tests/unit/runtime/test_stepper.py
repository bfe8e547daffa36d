"""Steps as CUDA graphs: on a CPU with a stand-in for CUDA, on a GPU (`make test-gpu`) with CUDA itself."""

import warnings
from contextlib import nullcontext
from typing import ClassVar

import pytest
import torch
from torch import nn

from linearcore.runtime import GraphStepper, autocast_dtype
from linearcore.runtime._stepper import WARM_UP

ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="wants a GPU")


class Work:
    """A layer, and what was asked of it."""

    def __init__(self, device, dropout=0.0, **options):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(3, 8), nn.Dropout(dropout), nn.Linear(8, 2)).to(device)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1, momentum=0.9)
        self.calls: list[tuple[int, ...]] = []
        self.stepper = GraphStepper(self.backward, self.optimizer.step, device, **options)

    def backward(self, inputs, target):
        self.calls.append(tuple(inputs.shape))
        for parameter in self.network.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(self.network(inputs), target)
        loss.backward()
        return loss.detach()

    def weights(self):
        return [parameter.detach().clone() for parameter in self.network.parameters()]


def batches(device, sizes=(4, 6, 4, 4, 6, 4, 4, 4, 6, 6, 6, 4)):
    stream = torch.Generator().manual_seed(1)
    for size in sizes:
        inputs, target = torch.randn(size, 3, generator=stream), torch.randint(2, (size,), generator=stream)
        yield {"inputs": inputs.to(device), "target": target.to(device)}


@pytest.fixture
def fake_cuda(monkeypatch):
    """A stand-in: what happens inside `torch.cuda.graph` is noted, and done when the graph is replayed."""

    class Graph:
        made: ClassVar[list["Graph"]] = []

        def replay(self):
            self.todo()

    class Stream:
        def wait_stream(self, other):
            pass

    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: Graph.made.append(Graph()) or Graph.made[-1])
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 0))
    for name in ("stream", "device"):
        monkeypatch.setattr(torch.cuda, name, lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, pool, stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    return Graph


def test_on_a_cpu_a_step_is_backward_and_update():
    work = Work("cpu")
    assert not work.stepper.uses_graphs
    first, *_ = batches("cpu")
    losses = [float(work.stepper.step(**first)) for _ in range(10)]
    assert losses[-1] < losses[0] and len(work.calls) == 10


def test_each_shape_is_captured_after_a_few_real_steps(fake_cuda):
    work = Work("cpu", use_graphs=True)
    losses, before = [], work.weights()
    for batch in batches("cpu", (4, 4, 6, 4)):
        losses.append(work.stepper.step(**batch))
    assert not fake_cuda.made and WARM_UP == 3
    assert all(not torch.equal(old, new) for old, new in zip(before, work.weights(), strict=True))
    batch = next(batches("cpu", (4,)))
    work.stepper._capture(batch)
    assert len(fake_cuda.made) == 1, "backward and update are one graph"
    Work("cpu", use_graphs=True, redo_nonfinite=True).stepper._capture(batch)
    assert len(fake_cuda.made) == 3, "with a look at the loss between them, two"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0])
def test_a_loss_that_is_not_finite_is_computed_again_before_the_update(fake_cuda, value):
    work = Work("cpu", use_graphs=True, redo_nonfinite=True)
    batch = next(batches("cpu", (4,)))
    graph = work.stepper._capture(batch)
    done = []
    graph.backward.todo = lambda: graph.loss.fill_(value)
    graph.update.todo = lambda: done.append(len(work.calls))
    expected = float(work.backward(**batch)) if value != 2.0 else 2.0
    calls = len(work.calls)
    assert float(work.stepper._replay(graph, batch)) == expected
    assert done == [calls + (value != 2.0)]


@pytest.mark.parametrize("redo", [False, True])
def test_a_step_that_waits_is_not_captured_unless_that_is_expected(fake_cuda, redo):
    work, plain = Work("cpu", use_graphs=True, redo_nonfinite=redo), Work("cpu")

    def waiting(**inputs):
        warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        warnings.warn("something else", DeprecationWarning, stacklevel=1)
        return work.backward(**inputs)

    work.stepper._backward = waiting
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in batches("cpu", (4,) * WARM_UP):
            assert torch.equal(work.stepper.step(**batch), plain.stepper.step(**batch))
    told = [str(one.message) for one in caught if "CUDA graphs" in str(one.message)]
    assert sum("something else" in str(one.message) for one in caught) == WARM_UP
    assert work.stepper.uses_graphs == redo and len(told) == (not redo)
    if told:
        assert told[0].startswith("steps are slower without CUDA graphs, because test_stepper.py:")
        assert not work.stepper._graphs


def test_precision_by_itself_is_full_on_a_cpu():
    assert autocast_dtype("auto", torch.device("cpu")) is None is autocast_dtype("fp32", torch.device("cpu"))
    assert autocast_dtype("bf16", torch.device("cpu")) is torch.bfloat16


@ON_GPU
@pytest.mark.parametrize("redo", [False, True])
def test_replayed_steps_are_plain_steps(redo):
    captured, plain = Work("cuda", redo_nonfinite=redo), Work("cuda", use_graphs=False)
    losses = [[float(work.stepper.step(**batch)) for batch in batches("cuda")] for work in (captured, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for one, other in zip(captured.weights(), plain.weights(), strict=True):
        torch.testing.assert_close(one, other)
    # Two shapes: warm-up steps and one capture each.
    assert len(captured.calls) == 2 * (WARM_UP + 1) and len(plain.calls) == 12


@ON_GPU
def test_dropout_goes_on_from_replay_to_replay():
    work = Work("cuda", dropout=0.5)
    work.optimizer.param_groups[0]["lr"] = 0.0
    batch = next(batches("cuda", (64,)))
    losses = [float(work.stepper.step(**batch)) for _ in range(12)]
    assert len(set(losses)) == 12


@ON_GPU
def test_a_loss_that_only_works_outside_a_graph_is_computed_there():
    work, plain = Work("cuda", redo_nonfinite=True), Work("cuda", use_graphs=False)
    backward = work.backward

    def picky(**inputs):
        loss = backward(**inputs)
        return loss * torch.nan if torch.cuda.is_current_stream_capturing() else loss

    work.stepper._backward = picky
    losses = [[float(one.stepper.step(**batch)) for batch in batches("cuda")] for one in (work, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@ON_GPU
def test_a_step_that_waits_for_the_device_goes_on_without_graphs():
    work, plain = Work("cuda"), Work("cuda", use_graphs=False)
    backward = work.backward

    def waiting(**inputs):
        loss = backward(**inputs)
        return torch.full_like(loss, float(loss))

    work.stepper._backward = waiting
    with pytest.warns(UserWarning, match=r"without CUDA graphs, .*test_stepper\.py:\d+ synchronises"):
        losses = [[float(one.stepper.step(**batch)) for batch in batches("cuda")] for one in (work, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and not work.stepper.uses_graphs
    # The device still works, and other steps are captured.
    other = Work("cuda", dropout=0.5)
    for batch in batches("cuda", (8,) * 6):
        other.stepper.step(**batch)
    assert other.stepper.uses_graphs and len(other.calls) == WARM_UP + 1
