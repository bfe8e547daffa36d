"""What labels that wrong can teach at all: whether the true class is what a learner that knows their law would answer.

No network is trained. The law is that of `linearcore reproduce noise`, with the rate the same for all images: a label that
is wrong becomes a class that a random projection of the image's pixels prefers. Two learners know it. One sees an image's
class and no more, so that it knows how often each class becomes each other; one knows what this very image becomes, as if it
had learned the projections. Each answers either the likeliest label, which is what cross-entropy and every other consistent
loss aim at, or the label of which the image has more than other images have, in standard deviations: what a loss that is
straight in normed scores aims at (`linearcore.NormedScores` without its sphere, if scores can be anything). The table tells
how many of the true classes are answered. Networks err on their own as well; this is about the labels alone.
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
    """What each label becomes if it is wrong, at any rate: draws are nested."""
    return instance_dependent(data.images, data.labels, 1.0, num_classes=data.num_classes, seed=seed, **LAW)


def known(learner: str, clean: Tensor, wrong: Tensor, rate: float, num_classes: int) -> Tensor:
    """(N, n) probabilities of the labels that a learner sees, as it knows them."""
    right, becomes = (torch.nn.functional.one_hot(labels, num_classes).double() for labels in (clean, wrong))
    by_pixels = (1 - rate) * right + rate * becomes
    if learner == "pixels":
        return by_pixels
    means = right.T @ by_pixels / right.sum(0).unsqueeze(1)
    return means[clean]


def share_answered(probability: Tensor, clean: Tensor, answer: str) -> float:
    """Per cent of the true classes that are answered; of classes that are level each is answered as often."""
    if answer == "normed":
        probability = (probability - probability.mean(0)) / probability.std(0, correction=0)
    best = probability >= probability.amax(1, keepdim=True) - 1e-9
    return 100 * float((best / best.sum(1, keepdim=True)).gather(1, clean[:, None]).mean())


def draw(data: Images, seeds: tuple[int, ...]) -> list[NoisyLabels]:
    """Wrong labels for each seed."""
    with Progress() as progress:
        return [wrong_labels(data, seed) for seed in progress.track(seeds, "draws")]


def look(data: Images, draws: list[NoisyLabels]) -> list[dict[str, Any]]:
    """A row for each rate, learner and answer."""
    clean = data.labels.long()
    rows = []
    for rate in RATES:
        for learner in LEARNERS:
            tables = [known(learner, clean, drawn.labels.long(), rate, data.num_classes) for drawn in draws]
            for answer in ANSWERS:
                shares = [round(share_answered(one, clean, answer), 2) for one in tables]
                rows.append({"rate": rate, "learner": learner, "answer": answer, "answered": shares})
    return rows


def main() -> int:
    """The command."""
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
    shown = Table("rate", "learner knows", *ANSWERS, title="true classes that are answered, %")
    for rate in RATES:
        for learner in LEARNERS:
            own = [row for row in rows if (row["rate"], row["learner"]) == (rate, learner)]
            shown.add_row(f"{100 * rate:g} %", learner, *(f"{statistics.mean(row['answered']):.1f}" for row in own))
    Console().print(shown)
    return 0


def arguments() -> argparse.Namespace:
    """What the user asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  python benchmarks/favourites.py --data DIR      half a minute",
    )
    parser.add_argument("--data", type=Path, help="the folder that holds CIFAR-10")
    parser.add_argument("--quick", action="store_true", help="made-up images, in seconds")
    parser.add_argument("--out", type=Path, default=OUT, help="the record (default: benchmarks/results)")
    return parsed(parser)


if __name__ == "__main__":
    sys.exit(main())
