"""Time and memory of a linear layer with its loss, forward + backward, without the matrix of scores.

First, on a small layer, losses and gradients in chunks are compared with the float64 reference. Then all losses run in turn
in one process: ours, torch's cross-entropy of the scores, eager and compiled, its own linear cross-entropy where the version
has one, and the packages Liger, Cut Cross-Entropy and quack where they can be imported. On an accelerator, times are divided
by that of the three matrix products that every loss needs. Memory is the peak of a step, without the gradients it returns.

    python benchmarks/linear_loss.py --threads 2                           # the committed CPU results
    python benchmarks/linear_loss.py --device cuda --peers DIR             # the committed GPU results
    python benchmarks/linear_loss.py --shapes 64x32x500 --seconds 1        # a quick test
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import linearcore as lc
from _harness import Contender, command, interleaved_medians, parsed, peak_bytes, show
from linearcore.runtime import write_record

#: The loss of hidden states (N, H), weight (C, H) and labels (N,).
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]

SHAPES = {
    "cpu": "128x256x1000,512x512x10000,512x256x50000",
    "cuda": "128x256x1000,512x512x10000,8192x4096x131072,8192x2304x256000",
}
DTYPES = {"cpu": "float32", "cuda": "bfloat16"}
FORMS = ("pairwise", "centered", "logodds")
PRODUCTS, EAGER = "three matrix products", "torch, eager"
#: From this many scores on, all scores are too many for ours, and a step is long enough to time without untimed ones.
LARGE = 2**28
#: Largest time in matrix products, by number of classes, and largest memory in GiB.
MARKS = {131072: {"pairwise": 1.06, "centered": 1.06, "logodds": 1.25}, 256000: {"pairwise": 1.10, "centered": 1.10}}
MOST_GIB = 0.65


def plain(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of all scores."""
    return F.cross_entropy(F.linear(hidden, weight), target)


def all_scores(form: str, hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """Our loss of all scores."""
    return lc.multiclass_loss(F.linear(hidden, weight), target, form=form)


def linear_loss(form: str, hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """Our loss in chunks."""
    return lc.linear_multiclass_loss(hidden, weight, target, form=form)


def torch_chunked(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """torch's own linear cross-entropy, in chunks with its default options."""
    options = torch.nn.LinearCrossEntropyOptions()  # type: ignore[attr-defined]
    return F.linear_cross_entropy(hidden, weight, target, options=options)  # type: ignore[attr-defined]


def liger(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """Liger's fused linear cross-entropy."""
    from liger_kernel.transformers.functional import liger_fused_linear_cross_entropy

    return liger_fused_linear_cross_entropy(hidden, weight, target)


def cut(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """Cut Cross-Entropy."""
    from cut_cross_entropy import linear_cross_entropy

    return linear_cross_entropy(hidden, weight, target)


def quack(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
    """quack's chunked linear cross-entropy."""
    from quack.linear_cross_entropy import chunked_linear_cross_entropy

    return chunked_linear_cross_entropy(hidden, weight, target)


def losses(device: str, *, compiled: bool) -> dict[str, Loss]:
    """Returns all losses by name."""
    rows: dict[str, Loss] = {f"LC {form}": partial(linear_loss, form) for form in FORMS}
    rows |= {f"LC {form}, all scores": partial(all_scores, form) for form in FORMS}
    rows[EAGER] = plain
    if compiled:
        torch._dynamo.reset()
        rows["torch, compiled"] = torch.compile(plain, dynamic=False)
    if hasattr(F, "linear_cross_entropy"):
        rows["torch, linear_cross_entropy"] = torch_chunked
    return rows | ({} if device == "cpu" else {"Liger": liger, "Cut Cross-Entropy": cut, "quack": quack})


def check_against_reference(form: str, device: str, dtype: torch.dtype) -> float:
    """Returns the largest error of loss and gradients, relative to the largest entry, of small chunks.

    Exits if it exceeds twice the error of `multiclass_loss` in the same dtype, of all scores or of as many rows
    at a time. Both count because the rounding of a matrix product depends on its size: with few rows it may be three times
    as large.
    """
    hidden, weight, target = make(64, 48, 3000, dtype, device, seed=1)
    rows_at_a_time = 21
    chunk_bytes = rows_at_a_time * len(weight) * dtype.itemsize

    def in_rows(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        parts = zip(hidden.split(rows_at_a_time), target.split(rows_at_a_time), strict=True)
        return sum(all_scores(form, rows, weight, labels) * len(labels) for rows, labels in parts) / len(target)

    def results(loss: Callable[..., Tensor], dtype: torch.dtype) -> list[Tensor]:
        leaves = [tensor.detach().to(dtype).requires_grad_() for tensor in (hidden, weight)]
        value = loss(*leaves, target)
        return [part.double() for part in (value.detach(), *torch.autograd.grad(value, leaves))]

    exact = results(partial(all_scores, form), torch.float64)
    chunked = partial(lc.linear_multiclass_loss, form=form, chunk_bytes=chunk_bytes)
    error, *plain_errors = (
        max(float((part - right).abs().max() / right.abs().max()) for part, right in zip(found, exact, strict=True))
        for found in (results(chunked, dtype), results(partial(all_scores, form), dtype), results(in_rows, dtype))
    )
    if not error <= 2 * max(plain_errors) + torch.finfo(dtype).eps:
        raise SystemExit(f"{form} {dtype}: error {error:.2g}, those of multiclass_loss {plain_errors}")
    return error


def make(rows: int, width: int, classes: int, dtype: torch.dtype, device: str, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns hidden states, weight and labels; scores have a variance of one."""
    generator = torch.Generator(device).manual_seed(seed)
    hidden = torch.randn(rows, width, device=device, dtype=dtype, generator=generator)
    weight = torch.randn(classes, width, device=device, dtype=dtype, generator=generator).mul_(width**-0.5)
    target = torch.randint(classes, (rows,), device=device, generator=generator)
    return hidden.requires_grad_(), weight.requires_grad_(), target


def contenders(hidden: Tensor, weight: Tensor, target: Tensor, args: argparse.Namespace) -> dict[str, Contender]:
    """Returns forward + backward steps of all losses that run here, and the matrix products on an accelerator."""

    def step(loss: Loss) -> None:
        loss(hidden, weight, target).backward()

    def reset() -> None:
        hidden.grad = weight.grad = None

    is_large = len(hidden) * len(weight) >= LARGE
    steps: dict[str, Contender] = {}
    if args.device != "cpu":
        steps[PRODUCTS] = Contender(partial(products, hidden.detach(), weight.detach()))
    # Compiling takes ten seconds: on an accelerator only where a step takes long enough.
    compiled = not args.no_compile and (is_large or args.device == "cpu")
    for name, loss in losses(args.device, compiled=compiled).items():
        if is_large and name.endswith("all scores"):
            continue
        try:
            reset()
            step(loss)
        except Exception as error:  # Packages fail in their own ways, often because they are not installed.
            print(f"  missing: {name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
            continue
        steps[name] = Contender(partial(step, loss), reset)
    reset()
    return steps


def products(hidden: Tensor, weight: Tensor) -> None:
    """The three matrix products of a linear layer: scores, and the gradients of hidden states and weight."""
    scores = hidden @ weight.t()
    scores @ weight
    scores.t() @ hidden


def run_case(shape: tuple[int, int, int], dtype: torch.dtype, threads: int, args: argparse.Namespace) -> dict[str, object]:
    """Measures one shape."""
    torch.set_num_threads(threads)
    hidden, weight, target = make(*shape, dtype, args.device, args.seed)
    steps = contenders(hidden, weight, target, args)
    is_large = shape[0] * shape[2] >= LARGE
    medians = interleaved_medians(
        steps, args.device, seconds=args.seconds, least=args.least, settle=args.device != "cpu" and not is_large
    )
    gradients = sum(tensor.numel() * tensor.element_size() for tensor in (hidden, weight))
    operations = 6 * shape[0] * shape[1] * shape[2]
    rows: dict[str, dict[str, float | None]] = {}
    for name, contender in steps.items():
        if args.device != "cpu":
            torch.cuda.empty_cache()
        contender.reset()
        beyond = None if name == PRODUCTS else max(0, peak_bytes(contender, args.device) - gradients)
        contender.reset()
        rows[name] = {
            "median_ms": round(medians[name], 4),
            "in_products": round(medians[name] / medians[PRODUCTS], 3) if PRODUCTS in medians else None,
            "in_cross_entropy": round(medians[name] / medians[EAGER], 3),
            "tflops": round(operations / medians[name] / 1e9, 2),
            "peak_mib": None if beyond is None else round(beyond / 2**20, 1),
        }
    missing = [name for name in losses(args.device, compiled=False) if name not in steps and "all scores" not in name]
    dtype_name = str(dtype).removeprefix("torch.")
    return {"shape": list(shape), "dtype": dtype_name, "threads": threads, "losses": rows, "missing": missing}


def marks(case: dict[str, object]) -> list[dict[str, object]]:
    """Returns what was to be reached at this shape on an accelerator."""
    classes, rows = case["shape"][2], case["losses"]  # type: ignore[index]
    limits = MARKS.get(classes, {}) if PRODUCTS in rows else {}
    results: list[dict[str, object]] = []
    ours = {name for name in rows if name.startswith("LC ")}
    for form, limit in limits.items():
        row = rows[f"LC {form}"]
        gib = round(row["peak_mib"] / 1024, 3)
        what = f"LC {form}, {classes} classes"
        results.append(
            {
                "mark": f"{what}, in products",
                "limit": limit,
                "measured": row["in_products"],
                "met": row["in_products"] <= limit,
            }
        )
        results.append({"mark": f"{what}, GiB", "limit": MOST_GIB, "measured": gib, "met": gib <= MOST_GIB})
        for key in ("median_ms", "peak_mib"):
            best = min(rows[name][key] for name in rows if name not in ours and name != PRODUCTS)
            what_peers = f"{what}, {key}, best of the others"
            results.append({"mark": what_peers, "limit": best, "measured": row[key], "met": row[key] < best})
    return results


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=tuple(SHAPES))
    parser.add_argument("--shapes", help="rows x features x classes, comma-separated; the default depends on the device")
    parser.add_argument("--dtype", help="the default depends on the device")
    parser.add_argument("--peers", type=Path, help="folder with the packages liger_kernel, cut_cross_entropy and quack")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="number of CPU threads")
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds per case")
    parser.add_argument("--least", type=int, default=7, help="smallest number of rounds per case")
    parser.add_argument("--no-compile", action="store_true", help="skip torch.compile")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON; default benchmarks/results/linear_loss_DEVICE.json")
    args = parsed(parser)
    if args.peers is not None:
        sys.path.append(str(args.peers.resolve()))
    dtype = getattr(torch, args.dtype or DTYPES[args.device])
    errors = {form: check_against_reference(form, args.device, dtype) for form in FORMS}
    ratios = {"× products": "in_products", "× eager": "in_cross_entropy", "TFLOP/s": "tflops"}
    cases, reached = [], []
    for text in (args.shapes or SHAPES[args.device]).split(","):
        rows, width, classes = (int(size) for size in text.split("x"))
        cases.append(run_case((rows, width, classes), dtype, args.threads, args))
        show(f"{text}, {cases[-1]['dtype']}", cases[-1]["losses"], ratios)  # type: ignore[arg-type]
        reached += marks(cases[-1])
    for mark in reached:
        print(f"{mark['mark']}: {mark['measured']} (at most {mark['limit']}: {'met' if mark['met'] else 'not met'})")
    out = args.out or Path(__file__).parent / "results" / f"linear_loss_{args.device}.json"
    settings = {key: value for key, value in vars(args).items() if key not in ("out", "seed", "peers")}
    results = {"errors": errors, "cases": cases, "marks": reached}
    write_record(out, command=command("linear_loss.py"), settings=settings, results=results, seed=args.seed)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
