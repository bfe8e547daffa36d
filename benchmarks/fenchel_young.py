"""Compares the convolutional Fenchel–Young loss of Cao et al. 2025 with ours: time of forward + backward, regret ratios.

Time: every case first checks the baseline's gradient against the optimality conditions of its inner problem in float64 and
reports the duality gap, and then times all losses in turn in one process. Ratio: the smallest surrogate regret over scores
that predict the second class, divided by its 0-1 regret, on distributions where the sum loss has no linear bound. A linear
bound with constant c keeps the ratio above 1/c.

    python benchmarks/fenchel_young.py                                 # the committed results
    python benchmarks/fenchel_young.py --classes 3,10 --seconds 0.2    # a quick test
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table

import linearcore as lc
from _harness import Contender, interleaved_medians, parsed, peak_bytes, show
from linearcore.analysis import fenchel_young_loss, fenchel_young_point, fenchel_young_regret_ratio, regret_ratio
from linearcore.runtime import write_record

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

BASELINE = "Fenchel–Young"
FORMS = ("pairwise", "centered", "logodds")
RATIOS = {"× F.cross_entropy": "ratio_to_cross_entropy"}
LOSSES: dict[str, Loss] = {
    "F.cross_entropy": F.cross_entropy,
    BASELINE: fenchel_young_loss,
    **{f"LC {form}": partial(lc.multiclass_loss, form=form) for form in FORMS},
}
DELTAS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
PATHS: dict[str, tuple[float, ...]] = {"(.4+δ, .4−δ, .2)": (0.4, 0.4, 0.2), "(.3+δ, .3−δ, .2, .2)": (0.3, 0.3, 0.2, 0.2)}


def check_baseline(scores: torch.Tensor, target: torch.Tensor) -> dict[str, float]:
    """Returns the duality gap in float32 and float64 and the gradient error; exits if the gradient is wrong."""
    leaf = scores.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(fenchel_young_loss(leaf, target, reduction="sum"), leaf)
    exact = fenchel_young_point(scores.detach().double())
    error = float((gradient.double() - (exact.probability - F.one_hot(target, scores.shape[1]))).abs().max())
    if not error <= 1e-5:
        raise SystemExit(f"the baseline's gradient at {tuple(scores.shape)} {scores.dtype} has an error of {error:.2g}")
    point = fenchel_young_point(scores.detach())
    return {"duality_gap": float(point.gap.max()), "duality_gap_float64": float(exact.gap.max()), "gradient_error": error}


def run_case(num_classes: int, scale: float, args: argparse.Namespace) -> dict[str, object]:
    """Measures one number of classes and one scale of scores."""
    stream = torch.Generator().manual_seed(args.seed)
    scores = (scale * torch.randn(args.rows, num_classes, generator=stream)).requires_grad_()
    target = torch.randint(num_classes, (args.rows,), generator=stream)

    def step(loss: Loss) -> None:
        loss(scores, target).backward()

    def reset() -> None:
        scores.grad = None

    steps = {name: Contender(partial(step, loss), reset) for name, loss in LOSSES.items()}
    medians = interleaved_medians(steps, "cpu", seconds=args.seconds, least=args.least)
    rows = {
        name: {
            "median_ms": round(medians[name], 4),
            "ratio_to_cross_entropy": round(medians[name] / medians["F.cross_entropy"], 3),
            "peak_mib": round(peak_bytes(contender, "cpu") / 2**20, 3),
        }
        for name, contender in steps.items()
    }
    return {"shape": [args.rows, num_classes], "scale": scale, "baseline": check_baseline(scores, target), "losses": rows}


def ratios(middle: tuple[float, ...]) -> dict[str, list[float]]:
    """Computes the regret ratios of every loss along p = (a + δ, a − δ, …)."""
    paths = [[middle[0] + delta, middle[1] - delta, *middle[2:]] for delta in DELTAS]
    ours = {
        f"LC {form}": [regret_ratio(lc.LinearCore(), lc.losses.FORMS[form].normalized(False), p, 1).ratio for p in paths]
        for form in FORMS
    }
    theirs = {BASELINE: [fenchel_young_regret_ratio(p, 1).ratio for p in paths]}
    return {name: [round(ratio, 5) for ratio in found] for name, found in (theirs | ours).items()}


def show_ratios(path: str, found: dict[str, list[float]]) -> None:
    """Prints the regret ratios along one path."""
    table = Table(title=f"surrogate regret / 0-1 regret at p = {path}")
    table.add_column("loss")
    for delta in DELTAS:
        table.add_column(f"δ = {delta:g}", justify="right")
    for name, row in found.items():
        table.add_row(name, *[f"{ratio:.3f}" for ratio in row])
    Console().print(table)


def main() -> None:
    """Runs every case, prints the tables and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--classes", default="3,10,100,1000", help="comma-separated")
    parser.add_argument(
        "--scales", default="0.3,3", help="scales of the scores, as early and late in training; comma-separated"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds per case")
    parser.add_argument("--least", type=int, default=15, help="smallest number of rounds per case")
    parser.add_argument("--threads", type=int, default=1, help="number of torch threads")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "fenchel_young.json", help="JSON")
    args = parsed(parser)
    torch.set_num_threads(args.threads)
    cases = []
    for num_classes in args.classes.split(","):
        for scale in args.scales.split(","):
            cases.append(run_case(int(num_classes), float(scale), args))
            show(f"{'×'.join(map(str, cases[-1]['shape']))}, scores of scale {scale}", cases[-1]["losses"], RATIOS)
    found = {path: ratios(middle) for path, middle in PATHS.items()}
    for path, row in found.items():
        show_ratios(path, row)
    settings = {key: value for key, value in vars(args).items() if key not in ("out", "seed")}
    settings |= {"deltas": list(DELTAS), "dtype": "float32"}
    write_record(
        args.out,
        command="python benchmarks/fenchel_young.py",
        settings=settings,
        results={"time": cases, "ratio": found},
        seed=args.seed,
    )
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
