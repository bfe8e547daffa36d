"""Which linear-core loss is most accurate with label noise? A sweep over forms, cores, radii and scales.

Every candidate trains the same small network on CIFAR-10 with 40 % wrong labels (instance-dependent noise as in
`linearcore reproduce noise`), with the same seed, order, learning rate and weight decay. It is evaluated on 5,000 held-out
labels with the same noise; true labels are not used. Baselines are cross-entropy, GCE and the unhinged loss, which has no
minimum and is therefore used with normalised scores (`linearcore.NormedScores`). `linearcore reproduce noise` tunes the best
candidates on a ResNet-18, with as many trials as the baselines.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from _harness import command, data_folder, parsed
from linearcore import LinearCore, multiclass_loss
from linearcore.losses import robust_loss
from linearcore.losses.baselines import cross_entropy, generalized_cross_entropy, unhinged
from linearcore.runtime import Progress, write_record
from linearcore_paper.experiments.noise.images import check_data, draw_labels, read_images
from linearcore_paper.experiments.noise.losses import name_of
from linearcore_paper.vision import Recipe, Run, hold_out, train_many

OUT = Path(__file__).parent / "results" / "robust_search.json"
LAW, RATE = "instance", 0.4
SCALES = (10.0, 1.0, 0.1, 0.01)

Loss = Callable[..., Any]


def _core(form: str, **options: Any) -> Loss:
    # A name is the mean over competing classes, so that scales are comparable between forms.
    return partial(multiclass_loss, form=form, surrogate=LinearCore(**options), reduction="none")


def _sphere(radius: float) -> Loss:
    return partial(robust_loss, radius=radius, surrogate=LinearCore(tau=2.0), reduction="none")


CANDIDATES: dict[str, Loss] = {
    "CE": partial(cross_entropy, reduction="none"),
    "GCE, q = 0.7": partial(generalized_cross_entropy, q=0.7, reduction="none"),
    "pairwise": _core("pairwise"),
    "logodds": _core("logodds"),
    "centered": _core("centered"),
    "centered, τ = 0.3": _core("centered", tau=0.3),
    "centered, τ = 3": _core("centered", tau=3.0),
    "centered, sharpness 4": _core("centered", sharpness=4.0),
    "sphere of radius 1": _sphere(1.0),
    "sphere of radius 3": _sphere(3.0),
    "unhinged, normed scores": partial(unhinged, reduction="none"),
}


def main() -> int:
    """Runs the benchmark."""
    args = arguments()
    source = "made-up" if args.quick else "cifar10"
    data = data_folder(args.data)
    names = [name for name in CANDIDATES if args.only is None or any(word in name for word in args.only.split(";"))]
    try:
        if not names:
            raise ValueError(f"--only takes words of {'; '.join(CANDIDATES)}; got {args.only}")
        if not args.scales or min(args.scales) <= 0:
            raise ValueError(f"--scales takes positive numbers, got {args.scales}")
        if min(args.beside, args.epochs) < 1:
            raise ValueError(f"--beside and --epochs take positive numbers, got {args.beside} and {args.epochs}")
        check_data(source, data)
        rows, settings = search(source, data, names, args)
    except (ValueError, OSError) as error:
        print(f"robust_search.py: {error}", file=sys.stderr)
        return 2
    write_record(args.out, command=command("robust_search.py"), settings=settings, results=rows, seed=args.seed)
    table = Table("loss", *(f"scale {scale:g}" for scale in args.scales), title="accuracy on held-out noisy labels, %")
    for name in names:
        found = {row["scale"]: row for row in rows if row["loss"] == name}
        table.add_row(name, *(_cell(found[scale]) for scale in args.scales))
    Console().print(table)
    return 0


def _cell(row: dict[str, Any]) -> str:
    return "failed" if "failed" in row else f"{row['noisy_validation_accuracy']:.2f}"


def search(
    source: str, data: Path | None, names: list[str], args: argparse.Namespace
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Trains every candidate at every scale; returns the rows and the common settings."""
    noisy = draw_labels(source, data, LAW, RATE, args.seed)
    images = read_images(source, data).train.with_labels(noisy.labels)
    train, held = hold_out(images, 80 if args.quick else 5000, args.seed)
    if args.device != "cpu":
        train, held = train.to(args.device), held.to(args.device)
    recipe = Recipe(
        "small", epochs=args.epochs, width=4 if args.quick else 64, batch=16 if args.quick else 128, seed=args.seed
    )
    wanted = [(name, scale) for name in names for scale in args.scales]
    rows: list[dict[str, Any]] = []
    with Progress() as progress:
        for first in range(0, len(wanted), args.beside):
            some = wanted[first : first + args.beside]
            runs = [
                Run(
                    train, CANDIDATES[name], recipe_of(recipe, name, scale), validation=held,
                    device=args.device, name=f"{name}, scale {scale:g}", evaluate_every=args.epochs,
                )
                for name, scale in some
            ]  # fmt: skip
            for (name, scale), found in zip(some, train_many(runs, progress=progress), strict=True):
                outcome = {"failed": found.failed} if found.failed else {}
                if not outcome:
                    outcome = {"noisy_validation_accuracy": round(found.history[-1]["validation_accuracy"], 3)}
                rows.append({"loss": name, "scale": scale} | outcome)
    settings = {
        "device": args.device,
        "held_out": len(held),
        "losses": {name: name_of(CANDIDATES[name]) for name in names},
        "noise": {"law": LAW, "labels": noisy.hash, "rate": RATE, "seed": args.seed},
        "recipe": recipe.to_json(),
        "source": source,
    }
    return rows, settings


def recipe_of(recipe: Recipe, name: str, scale: float) -> Recipe:
    """Returns the settings of a candidate."""
    ending = "-normed" if name.endswith("normed scores") else ""
    return replace(recipe, network=recipe.network + ending, loss_scale=scale)


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  python benchmarks/robust_search.py --data DIR --device cuda\n"
        "  python benchmarks/robust_search.py --data DIR --device cuda --only centered --scales 1000,100\n"
        "  python benchmarks/robust_search.py --data DIR --device cuda --only normed",
    )
    parser.add_argument("--data", type=Path, help="folder with CIFAR-10")
    parser.add_argument("--device", default="cpu", help="torch device (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=15, help="epochs per run (default: %(default)s)")
    parser.add_argument("--beside", type=int, default=8, help="number of runs at the same time (default: %(default)s)")
    parser.add_argument("--only", help="run only candidates whose name contains one of these strings (separator: semicolon)")
    parser.add_argument(
        "--scales",
        type=lambda text: [float(word) for word in text.split(",")],
        default=SCALES,
        help=f"factors of the loss, comma-separated (default: {','.join(f'{scale:g}' for scale in SCALES)})",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="small synthetic images; takes seconds")
    parser.add_argument("--out", type=Path, default=OUT, help="result file (default: benchmarks/results)")
    return parsed(parser)


if __name__ == "__main__":
    sys.exit(main())
