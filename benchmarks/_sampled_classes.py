"""The sampled multi-class loss against peers from ten thousand to ten million classes: contenders, equality, marks."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import linearcore as lc
from _harness import Contender, free_bytes
from linearcore.optim import SparseAdamW
from linearcore.proposals import InBatch, Proposal, Uniform

#: Rows, hidden units and samples.
SHAPE = {"rows": 1024, "hidden": 512, "samples": 64}
SAMPLED, SAMPLED_SGD, SAMPLED_ADAMW = "LC sampled", "LC sampled, SGD", "LC sampled, SparseAdamW"
IN_BATCH, SOFTMAX, COMPILED = "LC in batch", "sampled softmax", "sampled softmax, compiled"
FULL, ADAPTIVE = "full cross-entropy", "adaptive softmax"
#: Largest numbers of classes for full cross-entropy and adaptive softmax, whose gradients are dense.
MOST = {"cpu": (10_000, 10_000), "cuda": (100_000, 1_000_000)}
#: What stands in for a class that may not compete; finite in half precision.
NEVER = -1e4


class Last(nn.Module):
    """Hidden states and a last layer whose rows are looked up."""

    def __init__(self, num_classes: int, dtype: torch.dtype, device: str, shape: dict[str, int]) -> None:
        super().__init__()
        self.hidden = nn.Parameter(torch.randn(shape["rows"], shape["hidden"], dtype=dtype, device=device))
        weight = torch.empty(num_classes, shape["hidden"], dtype=dtype, device=device)
        some = torch.randn(10_000, shape["hidden"], device=device).mul_(0.05).to(dtype)
        for block in weight.split(len(some)):  # Billions of random numbers would take minutes.
            block.copy_(some[: len(block)])
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(num_classes, dtype=dtype, device=device))
        self.num_samples = shape["samples"]

    def labels(self) -> Tensor:
        """Returns new labels, so that no step finds the rows of the last one in a cache."""
        return torch.randint(len(self.weight), (len(self.hidden),), device=self.hidden.device)

    def loss(self, proposal: Proposal, target: Tensor, backend: str = "auto") -> Tensor:
        """Returns our loss."""
        return lc.sampled_multiclass_loss(
            self.hidden, self.weight, target, linear_bias=self.bias, proposal=proposal, num_samples=self.num_samples,
            sparse=True, backend=backend,
        )  # fmt: skip

    def softmax(self, score: Callable[..., Tensor]) -> Tensor:
        """Returns cross-entropy over the label and shared uniform samples, with sparse gradients; without bias."""
        target = self.labels()
        classes = torch.randint(len(self.weight), (self.num_samples,), device=target.device)
        both = torch.cat([target, classes])
        rows = F.embedding(both, self.weight, sparse=True)
        return score(self.hidden, rows, target, classes)


def softmax_loss(hidden: Tensor, rows: Tensor, target: Tensor, classes: Tensor) -> Tensor:
    """Returns cross-entropy from looked-up rows of the weight: of the labels, then of the shared samples."""
    size = len(hidden)
    own = (hidden * rows[:size]).sum(-1, keepdim=True)
    others = (hidden @ rows[size:].t()).masked_fill(target.unsqueeze(-1) == classes, NEVER)
    return F.cross_entropy(torch.cat([own, others], -1).float(), torch.zeros_like(target))


def fits(num_classes: int, dtype: torch.dtype, device: str, copies: float = 1.1) -> bool:
    """Whether memory has space for so many copies of the weight."""
    return copies * num_classes * SHAPE["hidden"] * dtype.itemsize + 2**30 < free_bytes(device)


def adamw(tables: list[Tensor]) -> SparseAdamW:
    """Returns an optimiser whose moments are in memory: the system maps pages of zeros when they are first written."""
    optimizer = SparseAdamW(tables, lr=1e-12)
    for table in tables:
        first = torch.zeros(1, 1, dtype=torch.long, device=table.device)
        table.grad = torch.sparse_coo_tensor(first, table.new_zeros(1, *table.shape[1:]), table.shape)
    optimizer.step()
    for state in optimizer.state.values():
        for part in state.values():
            if isinstance(part, Tensor):
                part.add_(0)
    return optimizer


def class_field(num_classes: int, dtype: torch.dtype, device: str, *, compiled: bool) -> dict[str, Contender]:
    """Makes the steps of one number of classes."""
    torch.manual_seed(0)
    has_moments = fits(num_classes, dtype, device, 3.2)
    last = Last(num_classes, dtype, device, SHAPE)

    def step(loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer | None = None) -> Contender:
        def run() -> None:
            loss().backward()
            if optimizer is not None:
                optimizer.step()
            for parameter in last.parameters():
                parameter.grad = None

        return Contender(run)

    tables, uniform = [last.weight, last.bias], Uniform()
    ours = lambda: last.loss(uniform, last.labels())  # noqa: E731
    field = {
        SAMPLED: step(ours),
        # Tiny learning rates keep the scores almost constant.
        SAMPLED_SGD: step(ours, torch.optim.SGD(tables, lr=1e-12)),
        **({SAMPLED_ADAMW: step(ours, adamw(tables))} if has_moments else {}),
        IN_BATCH: step(lambda: last.loss(InBatch(), last.labels())),
        SOFTMAX: step(lambda: last.softmax(softmax_loss)),
    }
    if compiled:
        fast = torch.compile(softmax_loss, dynamic=False)
        field[COMPILED] = step(lambda: last.softmax(fast))
    most_full, most_adaptive = MOST[device]
    if num_classes <= most_full:
        field[FULL] = step(lambda: F.cross_entropy(F.linear(last.hidden, *tables), last.labels()))
    if num_classes <= most_adaptive:
        cutoffs = [num_classes // 100, num_classes // 10]
        adaptive = nn.AdaptiveLogSoftmaxWithLoss(SHAPE["hidden"], num_classes, cutoffs).to(device, dtype)
        field[ADAPTIVE] = adaptive_step(adaptive, last)
    return field


def adaptive_step(adaptive: nn.AdaptiveLogSoftmaxWithLoss, last: Last) -> Contender:
    """Makes a step of the adaptive softmax, whose gradients are dense."""

    def run() -> None:
        adaptive(last.hidden, last.labels()).loss.backward()
        adaptive.zero_grad()
        last.hidden.grad = None

    return Contender(run)


class Fixed(Uniform):
    """The same candidates in every call, whatever the device."""

    def sample(self, size, num_classes, like, generator):  # type: ignore[no-untyped-def]
        return torch.randint(num_classes, size, generator=torch.Generator().manual_seed(3)).to(like.device)


def largest_error(device: str, dtype: torch.dtype, form: str = "logodds") -> float:
    """Returns the largest relative error of loss and gradients against the reference in float64, for the same samples."""
    torch.manual_seed(1)
    shape = {"rows": 300, "hidden": 96, "samples": 64}
    given = Last(2000, dtype, device, shape)
    exact = Last(2000, torch.float64, "cpu", shape)
    exact.load_state_dict(given.state_dict())
    target, results = torch.randint(2000, (300,)), []
    for last, backend in ((given, "auto"), (exact, "reference")):
        loss = last.loss(Fixed(), target.to(last.hidden.device), backend)
        gradients = torch.autograd.grad(loss, [last.hidden, last.weight, last.bias])
        dense = [part.to_dense() if part.is_sparse else part for part in (loss.detach(), *gradients)]
        results.append([part.double().cpu() for part in dense])
    return max(float((found - right).abs().max() / right.abs().max()) for found, right in zip(*results, strict=True))


def class_marks(tables: dict[str, dict[int, dict[str, dict[str, float]]]]) -> list[dict[str, object]]:
    """Returns how the time grows from the smallest to the largest number of classes, by dtype."""
    marks: list[dict[str, object]] = []
    for dtype, sizes in tables.items():
        for name in (SAMPLED, SAMPLED_SGD, SAMPLED_ADAMW):
            measured = [size for size, row in sizes.items() if name in row]
            few, many = min(measured), max(measured)
            figure = round(sizes[many][name]["median_ms"] / sizes[few][name]["median_ms"], 3)
            what = f"{name}, {dtype}: {few} to {many} classes"
            marks.append({"mark": what, "limit": "at most 1.5", "measured": figure, "met": figure <= 1.5})
    return marks
