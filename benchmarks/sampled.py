"""Time of a full training step with sampled candidates, including the optimiser.

Four tables. *Classes*: `sampled_multiclass_loss` from 10,000 to 10 million classes against sampled softmax (torch, eager and
compiled), full cross-entropy and torch's adaptive softmax, after a check against the reference in float64. *Growth*: the
sampled step from 100 to 100,000 tags with low-rank transitions, compared with steps over all tags where these are feasible.
*Search*: one sequence of 20 positions with dense transitions; ChainSSVM (with and without the
bound that skips tags) and ChainCRF compared with ours; the paper reports a factor of 23 at 400 tags. At this size a step is
mostly overhead of modules, autograd and optimiser, so compiled steps with explicit gradients are also measured, for ours and
for the SVM. *Large*: 100,000 tags on an accelerator. Growth and search are for CPUs.

    python benchmarks/sampled.py --seconds 6                       # the committed CPU results
    python benchmarks/sampled.py --device cuda --seconds 3         # the committed GPU results
    python benchmarks/sampled.py --growth 100,1000 --search 50 --seconds 1
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import linearcore as lc
from _harness import Contender, captured, command, interleaved_medians, parsed, peak_bytes, show
from _sampled_classes import SAMPLED as SAMPLED_CLASSES
from _sampled_classes import SHAPE, class_field, class_marks, fits, largest_error
from linearcore.kernels import dense_search
from linearcore.optim import SparseAdamW
from linearcore.proposals import Uniform
from linearcore.runtime import write_record
from linearcore_paper.experiments.convergence.explicit_steps import Parameters, Step, structured_svm
from linearcore_paper.experiments.convergence.explicit_steps import sampled as explicit_sampled

#: Sequence length, batch size, hidden units, samples and rank of the small cases and of the large one.
SMALL = {"length": 20, "batch": 1, "hidden": 64, "samples": 64, "rank": 32}
LARGE = {"length": 128, "batch": 8, "hidden": 256, "samples": 64, "rank": 32}
LARGE_TAGS = 100_000
#: Largest number of tags for steps over all tags.
MOST_DENSE = 10_000

SAMPLED, ALL, SSVM, DENSE_SSVM, CRF = "LC sampled", "LC all candidates", "ChainSSVM", "ChainSSVM, dense search", "ChainCRF"

COMPILED = ", compiled step"

Loss = Callable[[nn.Module, nn.Linear, Tensor, Tensor], Tensor]


def all_tags(head: nn.Module, layer: nn.Linear, hidden: Tensor, tags: Tensor) -> Tensor:
    """Computes the head's loss from emissions of all tags."""
    return -head(layer(hidden), tags)


def all_tags_densely(head: nn.Module, layer: nn.Linear, hidden: Tensor, tags: Tensor) -> Tensor:
    """Computes the same loss with a search without the bound."""
    with dense_search():
        return all_tags(head, layer, hidden, tags)


def sampled(samples: int, head: nn.Module, layer: nn.Linear, hidden: Tensor, tags: Tensor) -> Tensor:
    """Computes the sampled loss with candidates shared by all positions."""
    return head.sampled_loss(hidden, layer, tags, proposal=Uniform(), num_samples=samples, reduction="sum", sparse=True)


def token(head: nn.Module, layer: nn.Linear, hidden: Tensor, tags: Tensor) -> Tensor:
    """Computes token cross-entropy."""
    return F.cross_entropy(layer(hidden).flatten(0, 1), tags.flatten(), reduction="sum")


def contender(
    head: nn.Module, loss: Loss, num_tags: int, shape: dict[str, int], optimizer: type | None, device: str
) -> Contender:
    """Makes a training step on one fixed batch; without optimiser, only loss and gradients."""
    torch.manual_seed(0)
    layer = nn.Linear(shape["hidden"], num_tags, device=device)
    head = head.to(device)
    with torch.no_grad():  # Larger transitions, because with initial ones the search could skip nearly all tags.
        for parameter in head.parameters():
            parameter.normal_()
    hidden = torch.randn(shape["length"], shape["batch"], shape["hidden"], device=device)
    tags = torch.randint(num_tags, (shape["length"], shape["batch"]), device=device)
    # A tiny learning rate keeps the scores almost constant.
    parameters = [*layer.parameters(), *head.parameters()]
    stepper = None if optimizer is None else optimizer(parameters, lr=1e-12)

    def step() -> None:
        loss(head, layer, hidden, tags).backward()
        if stepper is not None:
            stepper.step()
        for parameter in parameters:
            parameter.grad = None

    return Contender(step)


def growth_field(num_tags: int, device: str) -> dict[str, Contender]:
    """Makes the steps of one size of the growth table."""
    make = partial(contender, num_tags=num_tags, shape=SMALL, device=device)
    few = partial(sampled, SMALL["samples"])
    chain = partial(lc.LinearCoreChain, num_tags, rank=SMALL["rank"])
    field = {
        f"{SAMPLED}, {name}": make(chain(), few, optimizer=optimizer)
        for name, optimizer in (
            ("SGD", torch.optim.SGD),
            ("SparseAdam", torch.optim.SparseAdam),
            ("SparseAdamW", SparseAdamW),
        )
    }
    if num_tags <= MOST_DENSE:
        field[f"{ALL}, SGD"] = make(chain(), all_tags, optimizer=torch.optim.SGD)
        field["token cross-entropy, SGD"] = make(chain(), token, optimizer=torch.optim.SGD)
    return field


def written_out(step: Step, num_tags: int, samples: int) -> Contender:
    """Makes a compiled step with explicit gradients and in-place updates on one fixed batch, including sampling."""
    torch.manual_seed(0)
    now = Parameters(*(parameter.normal_() for parameter in Parameters.zeros(num_tags, SMALL["hidden"], "cpu")))
    inputs = torch.randn(SMALL["length"], SMALL["batch"], SMALL["hidden"])
    tags, rate = torch.randint(num_tags, (SMALL["length"], SMALL["batch"])), torch.tensor(1e-12)
    fast = torch.compile(step, dynamic=False)
    return Contender(lambda: fast(now, inputs, tags, rate, torch.randint(num_tags, (samples,)) if samples else None))


def search_field(num_tags: int, device: str, *, compiled: bool) -> dict[str, Contender]:
    """Makes the steps of one size of the search table, with dense transitions."""
    make = partial(contender, num_tags=num_tags, shape=SMALL, optimizer=torch.optim.SGD, device=device)
    quick = {}
    if compiled:
        torch._dynamo.reset()  # Otherwise every call would first check the code compiled for other sizes.
        ours = explicit_sampled(lc.LinearCore(), "logodds")
        quick[SAMPLED + COMPILED] = written_out(ours, num_tags, SMALL["samples"])
        quick[SSVM + COMPILED] = written_out(structured_svm(SMALL["length"]), num_tags, 0)
    return quick | {
        SAMPLED: make(lc.LinearCoreChain(num_tags), partial(sampled, SMALL["samples"])),
        ALL: make(lc.LinearCoreChain(num_tags), all_tags),
        SSVM: make(lc.ChainSSVM(num_tags), all_tags),
        DENSE_SSVM: make(lc.ChainSSVM(num_tags), all_tags_densely),
        CRF: make(lc.ChainCRF(num_tags), all_tags),
    }


def run(field: dict[str, Contender], reference: str, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measures median, ratio to one step and peak memory. Steps are small, so untimed steps run before each timed one."""
    medians = interleaved_medians(field, args.device, seconds=args.seconds, least=args.least, few=3, settle=True)
    return {
        name: {
            "median_ms": round(median, 4),
            "ratio": round(median / medians[reference], 3),
            "peak_mib": round(peak_bytes(field[name], args.device) / 2**20, 2),
        }
        for name, median in medians.items()
    }


def small_cases(args: argparse.Namespace) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Makes both tables for a CPU, and checks the targets."""
    growth, search = {}, {}
    for num_tags in args.growth:
        growth[num_tags] = run(growth_field(num_tags, args.device), f"{SAMPLED}, SGD", args)
        show(f"growth, |Y| = {num_tags}, rank {SMALL['rank']}", growth[num_tags], {f"× {SAMPLED}, SGD": "ratio"})
    for num_tags in args.search:
        search[num_tags] = run(search_field(num_tags, args.device, compiled=not args.no_compile), SAMPLED, args)
        show(f"search, |Y| = {num_tags}", search[num_tags], {f"× {SAMPLED}": "ratio"})
    marks: list[dict[str, object]] = []
    for optimizer in ("SGD", "SparseAdam", "SparseAdamW"):
        times = [row[f"{SAMPLED}, {optimizer}"]["median_ms"] for row in growth.values()]
        figure = round(times[-1] / times[0], 3)
        what = f"{SAMPLED}, {optimizer}: {args.growth[0]} to {args.growth[-1]} tags"
        marks.append({"mark": what, "limit": "at most 1.5", "measured": figure, "met": figure <= 1.5})
    for num_tags, least in ((400, None), (1000, 10), (4000, 100)):
        rows = search.get(num_tags, {})
        pairs = [(SSVM, SAMPLED), (SSVM, SAMPLED + COMPILED), (SSVM + COMPILED, SAMPLED + COMPILED)]
        for baseline, ours in pairs if rows else ():
            if ours in rows:
                figure = round(rows[baseline]["median_ms"] / rows[ours]["median_ms"], 2)
                limit = "the paper's 23" if least is None else f"at least {least}"
                met = figure >= (23 if least is None else least)
                marks.append(
                    {"mark": f"{baseline} ÷ {ours}, {num_tags} tags", "limit": limit, "measured": figure, "met": met}
                )
    return {"growth": growth, "search": search}, marks


def large_case(args: argparse.Namespace) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Measures 100,000 tags on an accelerator."""
    make = partial(contender, num_tags=LARGE_TAGS, shape=LARGE, device=args.device)
    few = partial(sampled, LARGE["samples"])
    field = {
        f"{SAMPLED}, {name}": make(lc.LinearCoreChain(LARGE_TAGS, rank=LARGE["rank"]), few, optimizer=optimizer)
        for name, optimizer in (("loss and gradients", None), ("SGD", torch.optim.SGD), ("SparseAdamW", SparseAdamW))
    }
    # Without checks of values, which synchronise. SparseAdamW cannot be captured, because its step counter is a number.
    free = make(lc.LinearCoreChain(LARGE_TAGS, rank=LARGE["rank"], validate=False), few, optimizer=torch.optim.SGD)
    field[f"{SAMPLED}, SGD, graph"] = captured(free)
    rows = run(field, f"{SAMPLED}, SGD", args)
    show(f"|Y| = {LARGE_TAGS}, L = {LARGE['length']}, batch {LARGE['batch']}", rows, {f"× {SAMPLED}, SGD": "ratio"})
    marks: list[dict[str, object]] = []
    for name, row in rows.items():
        gib = round(row["peak_mib"] / 1024, 3)
        most = 1 if name.endswith("gradients") else 3
        met = row["median_ms"] < most
        marks.append({"mark": f"{name}, ms", "limit": f"under {most}", "measured": row["median_ms"], "met": met})
        marks.append({"mark": f"{name}, GiB", "limit": "under 0.15", "measured": gib, "met": gib < 0.15})
    return {"large": rows}, marks


def class_cases(args: argparse.Namespace) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Checks the loss against its reference and measures the numbers of classes that fit in memory."""
    errors, tables = {}, {}
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
        name = str(dtype).removeprefix("torch.")
        errors[name] = largest_error(args.device, dtype)
        if not errors[name] <= tolerance:
            raise SystemExit(f"{name}: the loss differs from its reference by {errors[name]:.2g}")
        sizes = {}
        for num_classes in args.classes:
            if not fits(num_classes, dtype, args.device):
                continue
            field = class_field(num_classes, dtype, args.device, compiled=not args.no_compile)
            sizes[num_classes] = run(field, SAMPLED_CLASSES, args)
            show(f"{num_classes} classes, {name}", sizes[num_classes], {f"× {SAMPLED_CLASSES}": "ratio"})
        if sizes:
            tables[name] = sizes
    return {"classes": tables, "errors": errors}, class_marks(tables)


def main() -> None:
    """Runs the benchmark of the device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(word) for word in text.split(",")]  # noqa: E731
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--growth", type=numbers, default=[100, 1000, 10_000, 100_000], help="numbers of tags")
    parser.add_argument("--search", type=numbers, default=[400, 1000, 4000], help="numbers of tags")
    parser.add_argument(
        "--classes", type=numbers, default=[10_000, 100_000, 1_000_000, 10_000_000], help="numbers of classes"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds per size")
    parser.add_argument("--least", type=int, default=15, help="smallest number of steps, 3 for a slow contender")
    parser.add_argument("--no-compile", action="store_true", help="skip the compiled steps")
    parser.add_argument("--out", type=Path, help="JSON; default benchmarks/results/sampled_DEVICE.json")
    args = parsed(parser)
    results, marks = small_cases(args) if args.device == "cpu" else large_case(args)
    classes, class_figures = class_cases(args)
    results, marks = {**results, **classes}, [*marks, *class_figures]
    for mark in marks:
        print(f"{mark['mark']}: {mark['measured']} ({mark['limit']}: {'met' if mark['met'] else 'not met'})")
    out = args.out or Path(__file__).parent / "results" / f"sampled_{args.device}.json"
    settings = {
        "small": SMALL,
        "large": LARGE,
        "classes": SHAPE,
        "seconds": args.seconds,
        "least": args.least,
        "device": args.device,
    }
    record = {**results, "marks": marks}
    write_record(out, command=command("sampled.py"), settings=settings, results=record, seed=0)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
