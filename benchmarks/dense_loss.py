"""Time of forward + backward of dense multi-class losses, compared with F.cross_entropy and F.multi_margin_loss.

Every case first checks the gradient of our losses against the reference implementation in float64. Then all losses run in
turn in one process, eager, and from a million scores on also with torch.compile. The table shows medians, ratios to the
eager F.cross_entropy of the same case, and the peak memory of a step, including its gradient. On a GPU such cases also have
a copy of the scores, with ratios to it, an upstream gradient of 2, and unreduced losses. On a CPU small float32 cases also
have label smoothing 0.1, with ratios to F.cross_entropy with the same smoothing.

    python benchmarks/dense_loss.py --threads 1,2                      # the committed CPU results
    python benchmarks/dense_loss.py --device cuda --seconds 3          # the committed GPU results
    python benchmarks/dense_loss.py --shapes 4096x10 --seconds 1       # a quick test
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

import linearcore as lc
from _harness import Contender, command, interleaved_medians, parsed, peak_bytes, show
from linearcore.losses import robust_loss
from linearcore.runtime import write_record

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

SHAPES = {"cpu": "32x2,128x10,512x100,4096x1000,512x32000", "cuda": "128x10,4096x100,8192x32000,4096x128256"}
#: Defaults by device: small cases, large cases.
DTYPES = {"cpu": ("float32,bfloat16", "float32,bfloat16"), "cuda": ("float32", "bfloat16,float16")}
FORMS = ("pairwise", "centered", "logodds")
#: From this many scores on the losses are also measured with torch.compile, whose own overhead is larger than a small step.
COMPILED_FROM = 10**6
#: Losses that are not measured with torch.compile on a GPU.
EAGER_ON_CUDA = ("F.multi_margin_loss", "LC robust")
#: On a CPU the losses are also measured with this label smoothing, up to this many scores.
SMOOTHING, SMOOTHED_UP_TO = 0.1, 10**5
SMOOTHED = f", smoothing {SMOOTHING}"
RATIOS = {"× F.cross_entropy": "ratio_to_cross_entropy", "× copy": "ratio_to_copy"}


def losses() -> dict[str, Loss]:
    """Returns the losses by name; the first is the baseline of the ratios."""
    ours: dict[str, Loss] = {f"LC {form}": partial(lc.multiclass_loss, form=form) for form in FORMS}
    baselines: dict[str, Loss] = {"F.cross_entropy": F.cross_entropy, "F.multi_margin_loss": F.multi_margin_loss}
    return baselines | ours | {"LC robust": robust_loss}


def our_loss(name: str) -> Callable[..., torch.Tensor]:
    """Returns our loss with this name, with the options of `multiclass_loss`."""
    return robust_loss if name == "LC robust" else partial(lc.multiclass_loss, form=name.removeprefix("LC "))


def check_against_reference(name: str, scores: torch.Tensor, target: torch.Tensor, **options: float) -> float:
    """Returns the largest gradient error against the reference in float64, relative to the largest entry.

    Exits if it exceeds 1.1 times the error of the reference implementation in the same dtype, plus one unit of that dtype.
    """

    def gradient(values: torch.Tensor, backend: str) -> torch.Tensor:
        leaf = values.detach().requires_grad_()
        our_loss(name)(leaf, target, backend=backend, **options).backward()
        return leaf.grad.double()

    exact = gradient(scores.double(), "reference")
    error, reference_error = (
        float((gradient(scores, backend) - exact).abs().max() / exact.abs().max()) for backend in ("auto", "reference")
    )
    if not error <= 1.1 * reference_error + torch.finfo(scores.dtype).eps:
        raise SystemExit(
            f"{name} at {tuple(scores.shape)} {scores.dtype}: gradient error {error:.2g}, reference {reference_error:.2g}"
        )
    return error


def check_capturable(name: str, scores: torch.Tensor, target: torch.Tensor) -> None:
    """Raises if the loss synchronises with the GPU: first with torch's debug mode, then inside a CUDA graph."""

    def step() -> None:
        leaf = scores.detach().requires_grad_()
        our_loss(name)(leaf, target).backward()

    step()
    torch.cuda.set_sync_debug_mode("error")
    step()
    torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        step()


def contenders(scores: torch.Tensor, target: torch.Tensor, *, compiled: bool) -> dict[str, Contender]:
    """Returns forward + backward steps of all losses that support this dtype and device."""
    twice, per_row = scores.new_full((), 2.0), torch.rand_like(scores[:, 0])

    def step(loss: Loss, upstream: torch.Tensor | None = None) -> None:
        loss(scores, target).backward(upstream)

    def reset() -> None:
        scores.grad = None

    steps: dict[str, Contender] = {}
    for name, loss in losses().items():
        try:
            step(loss)
        except (RuntimeError, ValueError) as error:  # Half precision on some devices; the robust loss of two classes.
            print(f"  skipped: {name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        steps[f"{name}, eager"] = Contender(partial(step, loss), reset)
        if is_smoothed(name, scores):
            steps[f"{name}, eager{SMOOTHED}"] = Contender(partial(step, partial(loss, label_smoothing=SMOOTHING)), reset)
        if has_variants(name, scores):
            unreduced = partial(loss, reduction="none")
            steps[f"{name}, eager, upstream 2"] = Contender(partial(step, loss, twice), reset)
            steps[f"{name}, eager, unreduced"] = Contender(partial(step, unreduced, per_row), reset)
        if compiled and not (scores.is_cuda and (name in EAGER_ON_CUDA or scores.dtype == torch.float16)):
            torch._dynamo.reset()
            steps[f"{name}, compiled"] = Contender(partial(step, torch.compile(loss, fullgraph=True, dynamic=False)), reset)
    if scores.is_cuda and scores.numel() >= COMPILED_FROM:
        source, copy = scores.detach(), torch.empty_like(scores)
        steps["copy"] = Contender(lambda: copy.copy_(source), reset)
    return steps


def has_variants(name: str, scores: torch.Tensor) -> bool:
    """Whether a loss is also measured with another upstream gradient and unreduced."""
    return scores.is_cuda and scores.numel() >= COMPILED_FROM and name.startswith("LC ")


def is_smoothed(name: str, scores: torch.Tensor) -> bool:
    """Whether a loss is also measured with label smoothing."""
    is_small = scores.device.type == "cpu" and scores.dtype == torch.float32 and scores.numel() <= SMOOTHED_UP_TO
    return is_small and name not in ("F.multi_margin_loss", "LC robust")


def run_case(shape: tuple[int, int], dtype: torch.dtype, threads: int, args: argparse.Namespace) -> dict[str, object]:
    """Measures one shape and dtype with this number of CPU threads."""
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(args.seed)
    scores = (3 * torch.randn(shape, generator=generator)).to(args.device, dtype).requires_grad_()
    target = torch.randint(shape[1], shape[:1], generator=generator).to(args.device)
    # The robust loss of two classes has no gradient.
    ours = [name for name in losses() if name.startswith("LC ") and (name != "LC robust" or shape[1] > 2)]
    errors = {name: check_against_reference(name, scores, target) for name in ours}
    for name in ours:
        if is_smoothed(name, scores):
            errors[name + SMOOTHED] = check_against_reference(name, scores, target, label_smoothing=SMOOTHING)
    if args.device == "cuda":
        for name in ours:
            check_capturable(name, scores, target)
    is_large = scores.numel() >= COMPILED_FROM
    steps = contenders(scores, target, compiled=is_large and not args.no_compile)
    medians = interleaved_medians(steps, args.device, seconds=args.seconds, least=args.least, settle=not is_large)
    baseline, copy = "F.cross_entropy, eager", medians.get("copy")
    rows = {
        name: {
            "median_ms": round(medians[name], 5),
            "ratio_to_cross_entropy": round(
                medians[name] / medians[baseline + SMOOTHED if name.endswith(SMOOTHED) else baseline], 3
            ),
            "ratio_to_copy": None if copy is None else round(medians[name] / copy, 3),
            "peak_mib": round(peak_bytes(contender, args.device) / 2**20, 2),
        }
        for name, contender in steps.items()
    }
    name = str(dtype).removeprefix("torch.")
    return {"shape": list(shape), "dtype": name, "threads": threads, "gradient_error": errors, "losses": rows}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=tuple(SHAPES))
    parser.add_argument("--shapes", help="NxC, comma-separated; the default depends on the device")
    parser.add_argument("--dtypes", help="comma-separated; the default depends on device and shape")
    parser.add_argument(
        "--threads", type=lambda text: [int(number) for number in text.split(",")], default=[torch.get_num_threads()],
        help="numbers of CPU threads, comma-separated; the default is torch's",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds per case")
    parser.add_argument("--least", type=int, default=15, help="smallest number of rounds per case")
    parser.add_argument("--no-compile", action="store_true", help="skip torch.compile")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON; default benchmarks/results/dense_loss_DEVICE.json")
    args = parsed(parser)
    shapes = [tuple(int(size) for size in shape.split("x")) for shape in (args.shapes or SHAPES[args.device]).split(",")]
    cases = []
    for shape in shapes:
        is_large = shape[0] * shape[1] >= COMPILED_FROM
        for dtype in [getattr(torch, name) for name in (args.dtypes or DTYPES[args.device][is_large]).split(",")]:
            for threads in args.threads:
                cases.append(run_case(shape, dtype, threads, args))
                title = f"{'×'.join(map(str, shape))}, {cases[-1]['dtype']}, threads: {threads}"
                show(title, cases[-1]["losses"], RATIOS)
    out = args.out or Path(__file__).parent / "results" / f"dense_loss_{args.device}.json"
    settings = {key: value for key, value in vars(args).items() if key not in ("out", "seed")}
    write_record(out, command=command("dense_loss.py"), settings=settings, results=cases, seed=args.seed)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
