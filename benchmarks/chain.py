"""Time of one training step of chain heads, compared with pytorch-crf, a broadcast CRF and token cross-entropy.

A step is a projection from 256 hidden units to |Y| tags, the loss summed over the batch, and the backward pass to the hidden
states, the projection and the parameters of the head. Every case first checks that the three CRFs have the same loss and
gradient, and that our losses match their reference implementation in float64. Then all run in turn in one process. Slow
heads run fewer steps. Heads that do not fit in memory or need more than --slowest seconds are skipped with a message. On
CUDA each step is also replayed as a CUDA graph. The projection is untrained, which is the slowest case for the search of
ChainSSVM. pytorch-crf is the package `torchcrf`; without it, the others are measured.

    python benchmarks/chain.py                                         # the committed CPU results
    python benchmarks/chain.py --device cuda                           # sizes for an accelerator
    python benchmarks/chain.py --sizes 50x20x2 --seconds 1             # a quick test
"""

import argparse
import copy
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import linearcore as lc
from _chain_marks import CRF, GRAPH, LOW_RANK, PEERS, TOKENS, judge, show_marks
from _harness import Contender, captured, command, free_bytes, interleaved_times, milliseconds, parsed, peak_bytes, show
from linearcore.forms import Labels, reference_rows
from linearcore.kernels import local_scores
from linearcore.runtime import write_record
from linearcore.structures import Sites
from linearcore_paper.experiments.tagging.methods import BroadcastCRF

try:
    import torchcrf
except ImportError:
    torchcrf = None

HIDDEN = 256
#: |Y|xLxB
SIZES = {
    "cpu": "10x100x8,50x100x8,200x100x8,1000x100x8,4000x100x8",
    "cuda": "50x128x8,400x128x8,1000x128x8,4000x128x8",
}
FORMS = ("logodds", "pairwise", "centered")
PEER, BROADCAST = PEERS
NO_PEER = "there is no module torchcrf"
#: Smallest number of steps of a slow contender.
FEW = 3
#: Number of B×|Y|² arrays per position in a broadcast CRF, including temporaries of the backward pass.
ARRAYS = 2
RATIOS = {
    "× token cross-entropy": "ratio_to_cross_entropy",
    "× fastest token cross-entropy": "ratio_to_fastest_cross_entropy",
    "fastest other CRF ÷ this": "times_faster_than_peers",
    "ChainCRF ÷ this": "times_faster_than_chain_crf",
}


class Size(NamedTuple):
    """Number of tags |Y|, sequence length L, batch size B."""

    num_tags: int
    length: int
    batch: int

    def __str__(self) -> str:
        return f"|Y| = {self.num_tags}, L = {self.length}, batch {self.batch}"


class Outcome(NamedTuple):
    """Result of one step: loss () and gradient of the hidden states (L, B, 256)."""

    loss: Tensor
    gradient: Tensor

    def error(self, exact: "Outcome") -> float:
        """Returns the larger relative error of loss and gradient (relative to its largest entry); NaN if one is NaN."""
        pairs = [(value.double(), true.double()) for value, true in zip(self, exact, strict=True)]
        return float(torch.stack([(value - true).abs().max() / true.abs().max() for value, true in pairs]).max())


@dataclass(eq=False)
class Work:
    """The training step of one contender, with its own tensors."""

    head: nn.Module
    projection: nn.Linear
    hidden: Tensor
    arguments: tuple[Tensor, ...]
    loss: Tensor = field(init=False)

    def step(self) -> None:
        loss = -self.head(self.projection(self.hidden), *self.arguments)
        loss.backward()
        self.loss = loss.detach()

    def reset(self) -> None:
        self.hidden.grad = None
        for parameter in (*self.projection.parameters(), *self.head.parameters()):
            parameter.grad = None

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.loss.clone(), self.hidden.grad.clone())


class TokenCrossEntropy(nn.Module):
    """Negative token cross-entropy, with the interface of a head."""

    def forward(self, emissions: Tensor, tags: Tensor) -> Tensor:
        return -F.cross_entropy(emissions.flatten(0, 1), tags.flatten(), reduction="sum")


class ReferenceChain(nn.Module):
    """Reference implementation of a linear-core chain."""

    def __init__(self, head: lc.LinearCoreChain) -> None:
        super().__init__()
        self.head = head

    def forward(self, emissions: Tensor, tags: Tensor) -> Tensor:
        chain, sites = self.head.chain(emissions), Sites.of(torch.ones_like(tags, dtype=torch.bool))
        scores = local_scores(emissions, chain, tags, sites, backend="reference")
        local, alone = (
            reference_rows(self.head.form, self.head.surrogate, rows.flatten(0, 1), Labels(tags.flatten())).sum()
            for rows in (scores, emissions)
        )
        return -((1 - self.head.unary) * local + self.head.unary * alone)


def heads(num_tags: int) -> dict[str, nn.Module]:
    """Makes the contenders by name; those with the parameters of ChainCRF have the same values."""
    crf = lc.ChainCRF(num_tags)
    found: dict[str, nn.Module] = {TOKENS: TokenCrossEntropy()}
    found |= {f"LC {form}": lc.LinearCoreChain(num_tags, form=form, normalize=False) for form in FORMS}
    found |= {"LC logodds, rank 32": lc.LinearCoreChain(num_tags, rank=32)}
    found |= {LOW_RANK: lc.LinearCoreChain(num_tags, rank=64, unary=0.5), CRF: crf, "ChainSSVM": lc.ChainSSVM(num_tags)}
    found |= {PEER: torchcrf.CRF(num_tags)} if torchcrf is not None else {}
    found[BROADCAST] = BroadcastCRF(num_tags)
    for head in found.values():
        if head.state_dict().keys() == crf.state_dict().keys():
            head.load_state_dict(crf.state_dict())
    return found


def works(size: Size, device: str, seed: int) -> dict[str, Work]:
    """Makes the step of every contender at one size, with equal inputs and projections."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        projection, contenders = nn.Linear(HIDDEN, size.num_tags), heads(size.num_tags)
        hidden = torch.randn(size.length, size.batch, HIDDEN)
        tags = torch.randint(size.num_tags, (size.length, size.batch)).to(device)
    found = {}
    for name, head in contenders.items():
        leaf = hidden.to(device, copy=True).requires_grad_()
        arguments = (tags, torch.ones_like(tags, dtype=torch.bool)) if name == PEER else (tags,)
        found[name] = Work(head.to(device), copy.deepcopy(projection).to(device), leaf, arguments)
    return found


def check_against_reference(name: str, work: Work) -> float:
    """Returns the float32 error against the reference in float64; exits if the float64 or the float32 error is too large."""
    head, projection = copy.deepcopy(work.head).double(), copy.deepcopy(work.projection).double()
    outcomes = []
    for module in (head, ReferenceChain(head)):
        step = Work(module, projection, work.hidden.detach().double().requires_grad_(), work.arguments)
        step.step()
        outcomes.append(step.outcome)
    work.step()
    exact, error, error_now = outcomes[1], outcomes[0].error(outcomes[1]), work.outcome.error(outcomes[1])
    work.reset()
    if not (error <= 1e-10 and error_now <= 1e-4):
        raise SystemExit(f"{name} at {tuple(exact.gradient.shape)}: errors {error:.2g} (float64), {error_now:.2g} (float32)")
    return error_now


def check_crfs(outcomes: Mapping[str, Outcome], size: Size) -> dict[str, float]:
    """Returns the errors of the other CRFs against ChainCRF; exits if one is too large."""
    errors = {name: outcomes[name].error(outcomes[CRF]) for name in PEERS if name in outcomes}
    for name, error in errors.items():
        if not error <= 1e-4:
            raise SystemExit(f"{name} and {CRF} differ by {error:.2g} at {size}")
    return errors


def first_steps(todo: Mapping[str, Work], size: Size, args: argparse.Namespace) -> tuple[dict[str, Outcome], dict[str, str]]:
    """Runs the first step of every contender; returns the outcomes, and the reasons for those that cannot run."""
    outcomes, reasons = {}, {}
    need = ARRAYS * 4 * size.batch * size.num_tags**2 * size.length
    for name, work in todo.items():
        free = free_bytes(args.device)
        if name in PEERS and need > free:
            reasons[name] = f"it needs about {need / 2**30:.0f} GiB, and {free / 2**30:.0f} GiB are free"
            continue
        try:
            seconds = milliseconds(Contender(work.step, work.reset), args.device) / 1e3
        except torch.OutOfMemoryError:
            reasons[name] = "out of memory"
            work.reset()
            continue
        if seconds > args.slowest:
            reasons[name] = f"a step takes {seconds:.2g} s, longer than --slowest {args.slowest:g}"
        outcomes[name] = work.outcome
        work.reset()
    return outcomes, reasons


def graphs(todo: Mapping[str, Work], outcomes: Mapping[str, Outcome]) -> tuple[dict[str, Contender], dict[str, str]]:
    """Captures steps as CUDA graphs, checked against the eager ones; also returns the reasons for those that cannot be."""
    found, reasons = {}, {}
    peaks = {name: peak_bytes(Contender(work.step, work.reset), "cuda") for name, work in todo.items()}
    for name, work in todo.items():
        work.reset()
        if name == PEER:
            reasons[name + GRAPH] = "it reads the mask, which synchronises with the GPU"
            continue
        # A graph keeps its memory allocated.
        if (need := peaks[name] + max(peaks.values())) > (free := free_bytes("cuda")):
            reasons[name + GRAPH] = f"it needs {need / 2**30:.0f} GiB with the eager steps, and {free / 2**30:.0f} are free"
            continue
        try:
            graph = captured(Contender(work.step, work.reset))
        except RuntimeError as refusal:
            reasons[name + GRAPH] = str(refusal).splitlines()[0]
            work.reset()
            continue
        graph.step()
        torch.cuda.synchronize()
        if not (error := work.outcome.error(outcomes[name])) <= 1e-4:
            raise SystemExit(f"{name}: the CUDA graph has an error of {error:.2g}")
        found[name + GRAPH] = graph
    return found, reasons


def rows_of(times: Mapping[str, list[float]], contenders: Mapping[str, Contender], device: str) -> list[dict[str, object]]:
    """Makes a row per contender: median, spread, ratios, peak memory."""
    medians = {name: statistics.median(values) for name, values in times.items()}

    def fastest(*names: str) -> float | None:
        return min((medians[name] for name in medians if name.removesuffix(GRAPH) in names), default=None)

    def ratio(over: float | None, under: float | None) -> float | None:
        return None if over is None or under is None else round(over / under, 3)

    rows = []
    for name, median in medians.items():
        alike = medians.get(TOKENS + GRAPH if name.endswith(GRAPH) else TOKENS)
        low, _, high = statistics.quantiles(times[name], method="inclusive") if len(times[name]) > 1 else [median] * 3
        row: dict[str, object] = {"name": name, "median_ms": round(median, 4), "repeats": len(times[name])}
        row["quartiles_ms"] = [round(low, 4), round(high, 4)]
        row["ratio_to_cross_entropy"] = ratio(median, alike)
        row["ratio_to_fastest_cross_entropy"] = ratio(median, fastest(TOKENS))
        row["times_faster_than_peers"] = ratio(fastest(*PEERS), median)
        row["times_faster_than_chain_crf"] = ratio(fastest(CRF), median)
        row["peak_mib"] = round(peak_bytes(contenders[name], device) / 2**20, 2)
        contenders[name].reset()
        rows.append(row)
    return rows


def run_case(size: Size, args: argparse.Namespace) -> dict[str, object]:
    """Measures one size."""
    todo = works(size, args.device, args.seed)
    errors = {name: check_against_reference(name, work) for name, work in todo.items() if name.startswith("LC ")}
    outcomes, reasons = first_steps(todo, size, args)
    at = size
    if not outcomes.keys() & set(PEERS):  # If neither fits, check them on a short sequence.
        at = Size(size.num_tags, min(3, size.length), 1)
        short = {name: work for name, work in works(at, args.device, args.seed).items() if name in (CRF, *PEERS)}
        errors |= check_crfs(first_steps(short, at, args)[0], at)
    else:
        errors |= check_crfs(outcomes, size)
    todo = {name: work for name, work in todo.items() if name not in reasons}
    contenders = {name: Contender(work.step, work.reset) for name, work in todo.items()}
    if args.device == "cuda":
        recorded, unrecorded = graphs(todo, outcomes)
        contenders, reasons = contenders | recorded, reasons | unrecorded
    for name, reason in reasons.items():
        print(f"  skipped: {name}: {reason}", file=sys.stderr)
    if not contenders:
        raise SystemExit(f"no contender is fast enough at {size}; pass a larger --slowest")
    reasons |= {PEER: NO_PEER} if torchcrf is None else {}
    times = interleaved_times(contenders, args.device, seconds=args.seconds, least=args.least, few=FEW)
    rows = rows_of(times, contenders, args.device)
    return {"size": list(size), "errors": errors, "crfs_checked_at": list(at), "steps": rows, "left_out": reasons}


def sizes(text: str) -> list[Size]:
    """Parses --sizes."""
    try:
        found = [Size(*map(int, size.split("x"))) for size in text.split(",")]
    except (TypeError, ValueError):
        found = []
    if not found or any(min(size) < 2 for size in found):
        raise argparse.ArgumentTypeError(f"expected |Y|xLxB, comma-separated, each at least 2, got {text!r}")
    return found


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=tuple(SIZES))
    parser.add_argument("--sizes", type=sizes, help="|Y|xLxB, comma-separated; the default depends on the device")
    parser.add_argument("--seconds", type=float, default=30.0, help="seconds per size")
    parser.add_argument("--least", type=int, default=15, help=f"smallest number of steps, {FEW} for a slow contender")
    parser.add_argument("--slowest", type=float, default=20.0, help="skip contenders whose step takes more seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON; default benchmarks/results/chain_DEVICE.json")
    args = parsed(parser)
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("argument --device: there is no CUDA device here")
    if torchcrf is None:
        print(f"  skipped: {PEER}: {NO_PEER}; `pip install pytorch-crf`, or put it on PYTHONPATH", file=sys.stderr)
    ratios = RATIOS if args.device == "cuda" else {head: key for head, key in RATIOS.items() if "fastest_cross" not in key}
    cases = []
    for size in args.sizes or sizes(SIZES[args.device]):
        cases.append(run_case(size, args))
        show(str(size), {row["name"]: row for row in cases[-1]["steps"]}, ratios)
    marks = judge(cases, args.device)
    show_marks(marks)
    out = args.out or Path(__file__).parent / "results" / f"chain_{args.device}.json"
    settings = {key: value for key, value in vars(args).items() if key not in ("out", "seed", "sizes")}
    settings |= {"sizes": [case["size"] for case in cases], "hidden": HIDDEN, "dtype": "float32"}
    results = {"cases": cases, "marks": marks}
    write_record(out, command=command("chain.py"), settings=settings, results=results, seed=args.seed)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
