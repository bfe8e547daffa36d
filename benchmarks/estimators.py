"""Bias, variance and time of sampled gradients.

The model is a linear tagger on generated sequences, with zero, half-trained and fully trained parameters (trained with LC
over all candidates). Measured for one batch of sequences and every estimator g of a gradient g*:

    bias               ‖E g − g*‖ / ‖g*‖; below twice its measurement noise it is reported as not significant
    variance           E ‖g − E g‖² / ‖g*‖²
    ms                 median time of a gradient including sampling: float32, one thread, interleaved rounds
    variance × ms      variance at equal time; of two unbiased estimators, the smaller value is better

For estimators over single-position changes, g* is the gradient over all candidates. Objectives over whole sequences have no
closed form on a chain, so g* is a long average, which has some noise. Its cosine to the gradient of LC log-odds over all
candidates, and its norm relative to it, are also reported.

Biases and variances are measured in float64, because raw weights of Algorithm 1 overflow float32.
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
    """Running mean and variance of gradients."""

    def __init__(self, gradients: list[Tensor] | None = None) -> None:
        self.runs, self.total, self.square = 0, torch.zeros(()), 0.0
        for gradient in gradients or ():
            self.add(gradient)

    def add(self, gradient: Tensor) -> None:
        """Adds a gradient."""
        self.runs += 1
        self.total = self.total + gradient
        self.square += float(gradient.square().sum())

    @property
    def mean(self) -> Tensor:
        """The mean of all gradients."""
        return self.total / self.runs

    @property
    def variance(self) -> float:
        """E ‖g − E g‖², estimated over the runs."""
        if self.runs == 1:
            return 0.0
        return max(0.0, self.square / self.runs - float(self.mean.square().sum())) * self.runs / (self.runs - 1)

    @property
    def noise(self) -> float:
        """E ‖mean − E g‖², the squared error of the mean."""
        return self.variance / self.runs

    @property
    def size(self) -> float:
        """‖E g‖², estimated as the squared norm of the mean minus its noise."""
        return float(self.mean.square().sum()) - self.noise


def relative(found: Measured, exact: Measured, log_factor: float) -> dict[str, float | None]:
    """Computes bias, its resolution, and variance relative to ‖g*‖; None if the noise of g* exceeds its norm.

    `absolute` is the unnormalised variance, to compare estimators of one objective.
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
    """Computes the cosine of a long average to the training gradient, and their ratio of norms."""
    length = {"size": _digits(math.sqrt(float(exact.mean.square().sum()) / training.size))}
    if exact.size <= exact.noise:
        return {"cosine": None} | length
    return {"cosine": round(float(exact.mean @ training.mean) / math.sqrt(exact.size * training.size), 4)} | length


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


# ---- where gradients are taken -------------------------------------------------------------------------------------------


def trained(task: Task, steps: int, chains: int) -> Model:
    """Trains a tagger with LC log-odds over all candidates; returns it with the first `chains` training sequences."""
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
    """Returns the error in per cent on the validation sequences."""
    found, _ = model.heads["logodds"].viterbi(model.layer(task.validation.inputs))
    return round(100 * float((found != task.validation.tags).double().mean()), 2)


def measured(each: Estimator, model: Model, runs: int, stream: torch.Generator) -> Measured:
    """Runs one estimator several times."""
    found = Measured()
    for _ in range(runs):
        found.add(model.gradient(each.loss(model, stream, False), each.form))
    return found


def at_point(name: str, model: Model, args: argparse.Namespace, progress: Progress) -> list[dict[str, Any]]:
    """Measures biases and variances of all estimators at the parameters of the model."""
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
    """Measures the median milliseconds of a gradient by estimator, objective and K; K = 0 means all candidates."""
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
    """Formats a bias, or its upper limit if it is not significant."""
    if row["bias"] is None:
        return "–"
    return f"< {row['resolution']:.2g}" if row["bias"] < row["resolution"] else f"{row['bias']:.2g}"


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/estimators.py --tags 400                              the committed figures\n"
        "  python benchmarks/estimators.py --tags 12 --runs 5 --steps 2,4 --seconds 0.1   seconds: does it run?\n",
    )
    numbers = lambda text: tuple(int(word) for word in text.split(","))  # noqa: E731
    parser.add_argument("--tags", type=int, default=400)
    parser.add_argument("--chains", type=int, default=8, help="number of sequences in the batch (default: %(default)s)")
    parser.add_argument("--samples", type=numbers, default=(16, 64), help="numbers of samples K (default: 16,64)")
    parser.add_argument(
        "--steps",
        type=numbers,
        default=(40, 1500),
        help="steps until half and fully trained (default: 40,1500)",
    )
    parser.add_argument("--runs", type=int, default=150, help="gradients per estimator (default: %(default)s)")
    parser.add_argument("--long", type=int, default=1000, help="K of the long averages (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds for timing (default: %(default)s)")
    parser.add_argument("--least", type=int, default=15, help="smallest number of rounds (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="JSON (default: benchmarks/results/estimators_cpu.json)")
    return parsed(parser)


def main() -> None:
    """Runs the benchmark and writes the result file."""
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
