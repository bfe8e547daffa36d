"""How accurate can a classifier be that knows the distribution of the noisy labels exactly?

No network is trained. The noise is that of `linearcore reproduce noise`, with the same noise rate for all images: a wrong
label is a class that a random projection of the pixels prefers. Two classifiers know the label probabilities: one only as an
average over each true class, the other for every single image, as if it had learned the projections. Each predicts either
the most likely label, as cross-entropy and every other consistent loss do in the limit, or the label whose probability is
highest relative to other images, in standard deviations, as a linear loss on normalised scores does in the limit
(`linearcore.NormedScores`, for unrestricted scores). The table shows the accuracy on the true classes. It is an upper limit
from the labels alone; a network makes additional errors.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from _harness import command, data_folder, parsed
from linearcore.noise import NoisyLabels, instance_dependent
from linearcore.runtime import Progress, write_record
from linearcore_paper.experiments.noise.images import LAWS, check_data, read_images
from linearcore_paper.vision import Images

OUT = Path(__file__).parent / "results" / "favourites.json"
RATES, SEEDS = (0.2, 0.3, 0.4, 0.5, 0.6), (1, 2, 3)
LAW = {**LAWS["instance"].options, "spread": 0.0}
LEARNERS, ANSWERS = ("class", "pixels"), ("likeliest", "normed")


def wrong_labels(data: Images, seed: int) -> NoisyLabels:
    """Draws the wrong label of each image; it is the same for every noise rate."""
    return instance_dependent(data.images, data.labels, 1.0, num_classes=data.num_classes, seed=seed, **LAW)


def label_probabilities(learner: str, clean: Tensor, wrong: Tensor, rate: float, num_classes: int) -> Tensor:
    """Computes the label probabilities (N, n) that a classifier knows."""
    right, becomes = (torch.nn.functional.one_hot(labels, num_classes).double() for labels in (clean, wrong))
    by_pixels = (1 - rate) * right + rate * becomes
    if learner == "pixels":
        return by_pixels
    means = right.T @ by_pixels / right.sum(0).unsqueeze(1)
    return means[clean]


def accuracy_of(probability: Tensor, clean: Tensor, answer: str) -> float:
    """Returns the accuracy in per cent; of tied classes each is predicted equally often."""
    if answer == "normed":
        probability = (probability - probability.mean(0)) / probability.std(0, correction=0)
    best = probability >= probability.amax(1, keepdim=True) - 1e-9
    return 100 * float((best / best.sum(1, keepdim=True)).gather(1, clean[:, None]).mean())


def draw(data: Images, seeds: tuple[int, ...]) -> list[NoisyLabels]:
    """Draws wrong labels for each seed."""
    with Progress() as progress:
        return [wrong_labels(data, seed) for seed in progress.track(seeds, "draws")]


def look(data: Images, draws: list[NoisyLabels]) -> list[dict[str, Any]]:
    """Computes a row for each noise rate, classifier and prediction rule."""
    clean = data.labels.long()
    rows = []
    for rate in RATES:
        for learner in LEARNERS:
            tables = [label_probabilities(learner, clean, drawn.labels.long(), rate, data.num_classes) for drawn in draws]
            for answer in ANSWERS:
                shares = [round(accuracy_of(one, clean, answer), 2) for one in tables]
                rows.append({"rate": rate, "learner": learner, "answer": answer, "answered": shares})
    return rows


def main() -> int:
    """Runs the benchmark."""
    args = arguments()
    source, data = "made-up" if args.quick else "cifar10", data_folder(args.data)
    try:
        check_data(source, data)
        train = read_images(source, data).train
    except (ValueError, OSError) as error:
        print(f"favourites.py: {error}", file=sys.stderr)
        return 2
    draws = draw(train, SEEDS)
    rows = look(train, draws)
    law, names = {"generator": "instance_dependent", **LAW}, [drawn.hash[:16] for drawn in draws]
    settings = {"images": len(train), "labels": names, "law": law, "seeds": list(SEEDS), "source": source}
    write_record(args.out, command=command("favourites.py"), settings=settings, results=rows, seed=SEEDS[0])
    table = Table("noise rate", "classifier knows", *ANSWERS, title="accuracy on the true classes, %")
    for rate in RATES:
        for learner in LEARNERS:
            matching = [row for row in rows if (row["rate"], row["learner"]) == (rate, learner)]
            accuracies = (f"{statistics.mean(row['answered']):.1f}" for row in matching)
            table.add_row(f"{100 * rate:g} %", learner, *accuracies)
    Console().print(table)
    return 0


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  python benchmarks/favourites.py --data DIR      half a minute",
    )
    parser.add_argument("--data", type=Path, help="folder with CIFAR-10")
    parser.add_argument("--quick", action="store_true", help="small synthetic images; takes seconds")
    parser.add_argument("--out", type=Path, default=OUT, help="result file (default: benchmarks/results)")
    return parsed(parser)


if __name__ == "__main__":
    sys.exit(main())
