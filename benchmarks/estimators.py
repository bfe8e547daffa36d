"""How far sampled gradients are off, how much they scatter, and what they cost: effective variance per unit of time.

A linear tagger on generated chains, with parameters at zero, half-trained and well trained (with LC over all candidates).
At each of these points, for one batch of chains and every estimator g of a gradient g*:

    bias               ‖E g − g*‖ / ‖g*‖; what is less than twice the noise of its own measurement is not told from 0
    variance           E ‖g − E g‖² / ‖g*‖²
    ms                 median time of a gradient, draws included: float32, one thread, interleaved rounds
    variance × ms      what a unit of time leaves of the noise: of two unbiased estimators the one with less is the better

g* is the gradient over all candidates where candidates are single-site changes. The objectives over whole sequences have no
closed form on a chain: a long average, with the noise that it has, stands for g*. Its cosine to the gradient of LC log-odds
over all candidates says how far it points where training goes, and its size relative to that one what is left to learn.

Biases and variances are measured in float64: raw weights of Algorithm 1 are beyond float32.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import linearcore as lc
from _estimators import Estimator, Model, estimators, long_averages
from _harness import Contender, command, interleaved_medians, parsed
from linearcore.runtime import Progress, write_record
from linearcore_paper.experiments.convergence.data import Task
from linearcore_paper.experiments.convergence.training import batches

OUT = Path(__file__).parent / "results" / "estimators_cpu.json"
LENGTH, INPUTS, NOISE, RATE, TRAINING_BATCH = 20, 20, 1.2, 0.03, 32
FORMS = ("logodds", "pairwise")
SHOWN = ("variance", "ms", "variance_ms", "cosine", "size")


class Measured:
    """The mean of some gradients and how they scatter around it."""

    def __init__(self, gradients: list[Tensor] | None = None) -> None:
        self.runs, self.total, self.square = 0, torch.zeros(()), 0.0
        for gradient in gradients or ():
            self.add(gradient)

    def add(self, gradient: Tensor) -> None:
        """Takes one in."""
        self.runs += 1
        self.total = self.total + gradient
        self.square += float(gradient.square().sum())

    @property
    def mean(self) -> Tensor:
        """Of all of them."""
        return self.total / self.runs

    @property
    def variance(self) -> float:
        """E ‖g − E g‖², for which the mean of the runs stands in."""
        if self.runs == 1:
            return 0.0
        return max(0.0, self.square / self.runs - float(self.mean.square().sum())) * self.runs / (self.runs - 1)

    @property
    def noise(self) -> float:
        """E ‖mean − E g‖²."""
        return self.variance / self.runs

    @property
    def size(self) -> float:
        """‖E g‖²: that of the mean, which has noise in it, without the noise."""
        return float(self.mean.square().sum()) - self.noise


def relative(found: Measured, exact: Measured, log_factor: float) -> dict[str, float | None]:
    """Bias, what a bias could hide under, and variance, all relative to ‖g*‖; None where g* is lost in its own noise.

    `absolute` is the variance relative to nothing, for estimators of one objective beside each other.
    """
    factor = math.exp(log_factor)
    absolute = {"absolute": _digits(found.variance / factor**2)}
    if exact.size <= exact.noise:
        return {"bias": None, "resolution": None, "variance": None} | absolute
    noise = found.noise / factor**2 + exact.noise
    off = float((found.mean / factor - exact.mean).square().sum()) - noise
    return {
        "bias": _digits(math.sqrt(max(0.0, off) / exact.size)),
        "resolution": _digits(2 * math.sqrt(noise / exact.size)),
        "variance": _digits(found.variance / factor**2 / exact.size),
    } | absolute


def direction(exact: Measured, training: Measured) -> dict[str, float | None]:
    """Of a long average: its cosine to the gradient that trains, and how long it is beside it."""
    length = {"size": _digits(math.sqrt(float(exact.mean.square().sum()) / training.size))}
    if exact.size <= exact.noise:
        return {"cosine": None} | length
    return {"cosine": round(float(exact.mean @ training.mean) / math.sqrt(exact.size * training.size), 4)} | length


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


# ---- where gradients are taken -------------------------------------------------------------------------------------------


def trained(task: Task, steps: int, chains: int) -> Model:
    """A tagger after some steps of LC log-odds over all candidates, and the first `chains` of the training chains."""
    num_tags = len(task.model.embeddings)
    with torch.random.fork_rng(devices=[]):
        layer, heads = (
            nn.Linear(INPUTS, num_tags),
            {form: lc.LinearCoreChain(num_tags, form=form, normalize=False) for form in FORMS},
        )
    head = heads["logodds"]
    for parameter in (*layer.parameters(), *head.parameters()):
        nn.init.zeros_(parameter)
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], RATE, fused=True)
    supply = batches(task.train, TRAINING_BATCH, seed=0)
    for _ in range(steps):
        inputs, tags = next(supply)
        optimizer.zero_grad()
        (-head(layer(inputs), tags, reduction="token_mean")).backward()
        optimizer.step()
    heads["pairwise"].load_state_dict(head.state_dict())
    counts = torch.bincount(task.train.tags.flatten(), minlength=num_tags)
    return Model(layer, heads, task.train.inputs[:, :chains], task.train.tags[:, :chains], counts)


@torch.no_grad()
def error(model: Model, task: Task) -> float:
    """Per cent of wrong tags on the validation chains."""
    found, _ = model.heads["logodds"].viterbi(model.layer(task.validation.inputs))
    return round(100 * float((found != task.validation.tags).double().mean()), 2)


def measured(each: Estimator, model: Model, runs: int, stream: torch.Generator) -> Measured:
    """Runs of one estimator."""
    found = Measured()
    for _ in range(runs):
        found.add(model.gradient(each.loss(model, stream, False), each.form))
    return found


def at_point(name: str, model: Model, args: argparse.Namespace, progress: Progress) -> list[dict[str, Any]]:
    """Biases and variances of all estimators with the model's parameters."""
    stream, exact_model = torch.Generator().manual_seed(1), model.double()
    exact = {form: Measured([exact_model.gradient(exact_model.exact(form), form)]) for form in FORMS}
    for key, each in progress.track(long_averages(args.long).items(), f"{name}, long averages"):
        exact[key] = measured(each, exact_model, args.runs, stream)
    rows = []
    for each in progress.track(estimators(args.samples, exact_model, stream), f"{name}, estimators"):
        found = measured(each, exact_model, args.runs, stream)
        row = {"estimator": each.name, "objective": each.objective, "samples": each.samples, "local": each.is_local}
        row |= relative(found, exact[each.objective], each.log_factor)
        rows.append(row | ({} if each.is_local else direction(exact[each.objective], exact["logodds"])))
    return rows


def times(model: Model, args: argparse.Namespace) -> dict[tuple[str, str, int], float]:
    """Median milliseconds of a gradient by estimator, objective and K; all candidates have K = 0."""
    stream = torch.Generator().manual_seed(2)

    def contender(loss: Any, form: str) -> Contender:
        parameters = model.parameters(form)

        def forget() -> None:
            for parameter in parameters:
                parameter.grad = None

        return Contender(lambda: loss().backward(), forget)

    contenders = {("all candidates", form, 0): contender(lambda form=form: model.exact(form), form) for form in FORMS}
    for each in estimators(args.samples, model, stream):
        key = (each.name, each.objective, each.samples)
        contenders[key] = contender(lambda each=each: each.loss(model, stream, True), each.form)
    return interleaved_medians(contenders, "cpu", seconds=args.seconds, least=args.least)


# ---- the command ---------------------------------------------------------------------------------------------------------


def show(point: dict[str, Any]) -> None:
    """Prints one table."""
    table = Table(title=f"{point['point']}: {point['steps']} steps, {point['error']} % wrong")
    for head in ("objective", "estimator"):
        table.add_column(head, no_wrap=True)
    for head in ("K", "bias", "variance", "ms", "variance × ms", "cosine", "size"):
        table.add_column(head, justify="right")
    for row in point["estimators"]:
        cells = [f"{row[key]:.3g}" if row.get(key) is not None else "–" for key in SHOWN]
        table.add_row(row["objective"], row["estimator"], str(row["samples"]), bias_text(row), *cells)
    Console(width=140).print(table)


def bias_text(row: dict[str, Any]) -> str:
    """A bias, or what it is less than where it was not told from 0."""
    if row["bias"] is None:
        return "–"
    return f"< {row['resolution']:.2g}" if row["bias"] < row["resolution"] else f"{row['bias']:.2g}"


def arguments() -> argparse.Namespace:
    """What the user asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/estimators.py --tags 400                              the committed figures\n"
        "  python benchmarks/estimators.py --tags 12 --runs 5 --steps 2,4 --seconds 0.1   seconds: does it run?\n",
    )
    numbers = lambda text: tuple(int(word) for word in text.split(","))  # noqa: E731
    parser.add_argument("--tags", type=int, default=400)
    parser.add_argument("--chains", type=int, default=8, help="whose gradients are taken (default: %(default)s)")
    parser.add_argument("--samples", type=numbers, default=(16, 64), help="K (default: 16,64)")
    parser.add_argument("--steps", type=numbers, default=(40, 1500), help="until half and well trained (default: 40,1500)")
    parser.add_argument("--runs", type=int, default=150, help="gradients of an estimator (default: %(default)s)")
    parser.add_argument("--long", type=int, default=1000, help="K of the long averages (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="for the rounds that are timed (default: %(default)s)")
    parser.add_argument("--least", type=int, default=15, help="rounds at the least (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="JSON (default: benchmarks/results/estimators_cpu.json)")
    return parsed(parser)


def main() -> None:
    """Measures, prints, writes the record."""
    args = arguments()
    torch.set_num_threads(1)
    task = Task.draw(args.tags, LENGTH, INPUTS, NOISE, (5 * args.tags, 100, 1), seed=0)
    points = dict(zip(("zero", "half-trained", "well trained"), (0, *args.steps), strict=True))
    models = {name: trained(task, steps, args.chains) for name, steps in points.items()}
    results = []
    with Progress() as progress:
        for name, steps in points.items():
            rows = at_point(name, models[name], args, progress)
            results.append({"point": name, "steps": steps, "error": error(models[name], task), "estimators": rows})
    clock = times(models["well trained"], args)
    for point in results:
        for row in point["estimators"]:
            row["ms"] = round(clock[row["estimator"], row["objective"], row["samples"]], 4)
            row["variance_ms"] = None if row["variance"] is None else _digits(row["variance"] * row["ms"])
        show(point)
    settings = {key: value for key, value in vars(args).items() if key != "out"}
    settings |= {"length": LENGTH, "inputs": INPUTS, "noise": NOISE, "rate": RATE, "training_batch": TRAINING_BATCH}
    all_candidates = {form: round(clock["all candidates", form, 0], 4) for form in FORMS}
    record = {"points": results, "all_candidates_ms": all_candidates}
    write_record(args.out, command=command("estimators.py"), settings=settings, results=record, seed=0)
    print(f"all candidates: {all_candidates} ms; written to {args.out}")


if __name__ == "__main__":
    main()
