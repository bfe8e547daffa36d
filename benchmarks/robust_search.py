"""Which linear-core loss learns best from wrong labels: a sweep over forms, cores, lengths and scales with a small network.

Every candidate trains the same network on CIFAR-10 with 40 % of wrong labels (instance-dependent noise as in
`linearcore reproduce noise`), with the same seed, order, rate and weight decay, and is judged by 5,000 held-out labels that
are as wrong: nobody looks at a true label, neither here nor when choosing from the table. Cross-entropy, GCE and the
unhinged loss stand beside them. The last has no minimum and has normed scores (`linearcore.NormedScores`). `linearcore
reproduce noise` tunes what is worth it on a ResNet-18, with the same number of tries as the baselines.
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
    how: dict[str, Any] = {"form": form, "surrogate": LinearCore(**options), "reduction": "none"}
    # The mean over the competitors, where there is one, so that a scale means the same for all forms.
    return partial(multiclass_loss, **how, **({} if form == "logodds" else {"normalize": True}))


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
    """The command."""
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
    table = Table("loss", *(f"scale {scale:g}" for scale in args.scales), title="agreement with held-out wrong labels, %")
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
    """A row for each candidate and scale, and what they have in common."""
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
                told = {"failed": found.failed} if found.failed else {}
                if not told:
                    told = {"noisy_validation_accuracy": round(found.history[-1]["validation_accuracy"], 3)}
                rows.append({"loss": name, "scale": scale} | told)
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
    """What a candidate changes."""
    ending = "-normed" if name.endswith("normed scores") else ""
    return replace(recipe, network=recipe.network + ending, loss_scale=scale)


def arguments() -> argparse.Namespace:
    """What the user asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  python benchmarks/robust_search.py --data DIR --device cuda\n"
        "  python benchmarks/robust_search.py --data DIR --device cuda --only centered --scales 1000,100\n"
        "  python benchmarks/robust_search.py --data DIR --device cuda --only normed",
    )
    parser.add_argument("--data", type=Path, help="the folder that holds CIFAR-10")
    parser.add_argument("--device", default="cpu", help="where to train (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=15, help="of every run (default: %(default)s)")
    parser.add_argument("--beside", type=int, default=8, help="runs side by side on a device (default: %(default)s)")
    parser.add_argument("--only", help="candidates whose names hold one of these words, semicolons between")
    parser.add_argument(
        "--scales",
        type=lambda text: [float(word) for word in text.split(",")],
        default=SCALES,
        help=f"factors of the loss, commas between (default: {','.join(f'{scale:g}' for scale in SCALES)})",
    )
    parser.add_argument("--seed", type=int, default=0, help="of labels, weights and order (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="made-up images, in seconds")
    parser.add_argument("--out", type=Path, default=OUT, help="the record (default: benchmarks/results)")
    return parsed(parser)


if __name__ == "__main__":
    sys.exit(main())
