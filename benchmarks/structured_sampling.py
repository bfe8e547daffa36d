"""Variance and time of losses over whole sequences, for every cost and proposal.

The loss is the paper's double sum (form "sum", objective "mean"); y'' is uniform, and only the proposal of y' differs. The
gradient is that of the emissions of one sequence. Scores are small ("untrained"), or those of the true tags stand out
("trained"). For each cost and proposal:

    variance        E ‖g − E g‖² / ‖E g‖² of one sample
    samples         the variance of uniform samples over it: so many times fewer samples give the same variance
    ms              time of loss and gradient for a batch, with the k-best search or recursion that a proposal needs: the
                    lower quartile of interleaved steps, since other work on the machine only lengthens them
    time            as `samples`, at equal time
    effective       the expected share of effective samples, (E w)² / E w²

Uniform samples hardly ever meet a sequence that counts, so the variance among them is far below the true one. All variances
are therefore integrals over samples from one mixture Q of all proposals: E_D f = E_Q f D/Q. This is checked first, on a
space that can be enumerated. Two further tables: the n-gram proposal against uniform samples for the n-gram cost, and its
time per sample, which must not depend on the number of tags.
"""

import argparse
import math
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import linearcore as lc
from _harness import Contender, command, interleaved_times, parsed
from linearcore.kernels import kbest
from linearcore.proposals.sequences import (
    EditedSequences,
    ListedSequences,
    MixedSequences,
    ModelSequences,
    MovedNgrams,
    SequenceProposal,
    SimilarSequences,
    UniformSequences,
)
from linearcore.runtime import Progress, write_record
from linearcore.structured import sequence_scores, structured_loss
from linearcore.structures import COST_NAMES, AlignedNgram, Chain, Cost, Sequences, Sites, resolve_cost

OUT = Path(__file__).parent / "results" / "structured_sampling_cpu.json"
#: Share of the uniform part in a mixture, number of listed sequences, and samples of a timed step.
UNIFORM_SHARE, BEST, TIMED_SAMPLES = 0.25, 16, 64
PHI, UNIFORM = lc.LinearCore(), UniformSequences()
CHUNKS = 20
#: What is added to the score of a true tag.
POINTS = {"untrained": 0.0, "trained": 5.0}


class Problem(NamedTuple):
    """Scores and the true tags of a batch of sequences, time first."""

    emissions: Tensor
    chain: Chain
    tags: Tensor
    sites: Sites

    @property
    def num_tags(self) -> int:
        """|Y|."""
        return self.emissions.shape[-1]

    def float(self) -> "Problem":
        """Converts the scores to float32."""
        return self._replace(emissions=self.emissions.float(), chain=Chain(*(part.float() for part in self.chain)))


def problem(num_tags: int, length: int, batch: int, signal: float, seed: int = 0) -> Problem:
    """Spans of one to three tags and tags outside, with noisy scores; `signal` is added to those of the true tags."""
    stream = torch.Generator().manual_seed(seed)
    tags = torch.zeros(length, batch).long()
    for row in range(batch):
        place = 0
        while place < length:
            span = int(torch.randint(0, 4, (), generator=stream))
            kind = int(torch.randint((num_tags - 1) // 2, (), generator=stream))
            tags[place : place + span, row] = 2 * kind + 2
            tags[place : place + min(span, 1), row] = 2 * kind + 1
            place += max(1, span)
    emissions = (0.1 if signal == 0 else 1.0) * torch.randn(length, batch, num_tags, generator=stream, dtype=torch.float64)
    emissions = emissions.scatter_add(2, tags.unsqueeze(-1), torch.full((length, batch, 1), signal, dtype=torch.float64))
    shapes = ((num_tags,), (num_tags, num_tags), (num_tags,))
    chain = Chain(*(0.1 * torch.randn(shape, generator=stream, dtype=torch.float64) for shape in shapes))
    return Problem(emissions, chain, tags, Sites.of(torch.ones_like(tags, dtype=torch.bool), is_full=True))


def costs(num_tags: int) -> dict[str, Cost]:
    """All costs but zero-one, for which only the truth counts; the tags are O, B-0, I-0, B-1 and so on."""
    names = ["O", *(f"{prefix}-{kind}" for kind in range((num_tags - 1) // 2) for prefix in "BI")]
    return {name: resolve_cost(name, names) for name in COST_NAMES if name != "zero-one"}


def parts(given: Problem) -> dict[str, SequenceProposal]:
    """The proposals that are mixed with uniform samples."""
    best, _ = kbest(given.emissions, given.chain, given.sites, BEST)
    return {
        "1-grams": SimilarSequences(1),
        "2-grams": SimilarSequences(2),
        "moved 1-grams": MovedNgrams(1),
        "moved 2-grams": MovedNgrams(2),
        "edits": EditedSequences(),
        "model": ModelSequences(given.emissions, given.chain),
        "k best": ListedSequences(best),
    }


def mixed(part: SequenceProposal) -> SequenceProposal:
    """A mixture with uniform samples, which has full support."""
    return MixedSequences((part, UNIFORM), (1 - UNIFORM_SHARE, UNIFORM_SHARE))


def proposals(given: Problem, cost: Cost) -> dict[str, SequenceProposal]:
    """Uniform samples, the default of the cost, which is exact for hamming and ngram, and the mixtures."""
    found: dict[str, SequenceProposal] = {"uniform": UNIFORM}
    if cost.shared_ngram is not None:
        found["default"] = SimilarSequences(cost.shared_ngram)
    return found | {name: mixed(part) for name, part in parts(given).items()}


# ---- moments ----


class Moments:
    """Weighted sums over samples of Q, for each proposal and in chunks."""

    def __init__(self) -> None:
        self.square: dict[str, list[float]] = {}
        self.weight_square: dict[str, list[float]] = {}
        self.weight: list[float] = []
        self.gradients: list[Tensor] = []

    def row(self, name: str) -> dict[str, float]:
        """Relative variance of a sample, its standard error, and the share of effective samples."""
        squares, number = torch.tensor(self.square[name]), len(self.gradients)
        total = torch.stack(self.gradients).sum(0)
        # ‖E g‖² without the noise of the average: products of different chunks.
        size = float(total.square().sum() - sum(float(part.square().sum()) for part in self.gradients))
        size /= number * (number - 1)
        effective = (sum(self.weight) / number) ** 2 / (sum(self.weight_square[name]) / number)
        error = float(squares.std() / squares.mean()) / math.sqrt(number)
        return {"variance": float(squares.mean()) / size - 1, "error": error, "effective": effective}


def moments(given: Problem, cost: Cost, samples: int, stream: torch.Generator) -> Moments:
    """Integrates over `samples` samples of Q for each sequence; sums over the batch."""
    compared = proposals(given, cost)
    mixture = MixedSequences((UNIFORM, SimilarSequences(3), *parts(given).values()), (2.0, *[1.0] * 8))
    log_size = len(given.tags) * math.log(given.num_tags)
    log_others = log_size + math.log1p(-math.exp(-log_size))
    found = Moments()
    for _ in range(CHUNKS):
        drawn, others = (
            proposal.sample(given.tags, given.sites, given.num_tags, samples // CHUNKS, stream)
            for proposal in (mixture, UNIFORM)
        )
        log_q = mixture.log_prob(drawn, given.tags, given.sites, given.num_tags)
        scores = [sequence_scores(given.emissions, given.chain, tags, given.sites) for tags in (drawn, others)]
        slope = PHI.derivative(scores[0] - scores[1])
        num_different = (drawn != others).sum(1)
        cost_of = cost.between(drawn.movedim(1, -1), given.tags.t(), dtype=torch.float64)
        log_weight = (1 - cost_of).clamp(min=0).log() - log_others
        log_weight = log_weight.masked_fill(num_different == 0, -math.inf)
        weight = (log_weight - log_q).exp() / len(drawn)
        found.weight.append(float(weight.sum()))
        gradient = torch.zeros_like(given.emissions)
        for tags, sign in ((drawn, 1), (others, -1)):
            gradient.scatter_add_(2, tags.permute(1, 2, 0), (sign * weight * slope).t().expand(len(tags[0]), -1, -1))
        found.gradients.append(gradient)
        for name, proposal in compared.items():
            log_d = proposal.log_prob(drawn, given.tags, given.sites, given.num_tags)
            # Where D is 0 the cost is 1: the default covers the sequences that cost less.
            square = (2 * log_weight - log_d - log_q).masked_fill(log_weight == -math.inf, -math.inf).exp() / len(drawn)
            found.weight_square.setdefault(name, []).append(float(square.sum()) / given.tags.shape[1])
            found.square.setdefault(name, []).append(float((square * slope.square() * 2 * num_different).sum()))
    found.weight = [total / given.tags.shape[1] for total in found.weight]
    return found


def enumerated(given: Problem, cost: Cost, proposal: SequenceProposal) -> float:
    """The relative variance of one sample for a single sequence, by a sum over all pairs."""
    space = Sequences(given.num_tags, len(given.tags))
    every = space.outputs.unsqueeze(-1)
    scores = sequence_scores(given.emissions, given.chain, every, given.sites)
    probability = proposal.log_prob(every, given.tags, given.sites, given.num_tags).exp()
    similarity = 1 - cost.between(every.squeeze(-1), given.tags.t(), dtype=torch.float64).unsqueeze(-1)
    margin = scores - scores.t()
    different = (space.outputs.unsqueeze(1) != space.outputs).sum(-1)
    slope = PHI.derivative(margin)
    tags = torch.nn.functional.one_hot(space.outputs, given.num_tags).double().flatten(1)
    pair = similarity * slope * (different > 0) / space.size / (space.size - 1)
    mean = (pair.sum(1) @ tags - pair.sum(0) @ tags).square().sum()
    ratio = torch.where(similarity > 0, similarity.square() / probability, 0.0)
    square = (ratio * slope.square() * 2 * different / space.size).sum() / (space.size - 1) ** 2
    return float(square / mean) - 1


def check(stream: torch.Generator) -> None:
    """Raises unless the integrals are the enumerated variances, up to four standard errors."""
    given = problem(3, 3, 1, 1.0)
    for name, cost in costs(3).items():
        found = moments(given, cost, 40_000, stream)
        for proposal, law in proposals(given, cost).items():
            row, exact = found.row(proposal), enumerated(given, cost, law)
            if abs(row["variance"] / exact - 1) > 4 * row["error"] + 0.1:
                raise SystemExit(f"variance of {name}, {proposal}: {row['variance']:.4g} instead of {exact:.4g}")


# ---- what is measured ----


def variances(args: argparse.Namespace, stream: torch.Generator, progress: Progress) -> Iterator[dict[str, Any]]:
    """Yields a row for each number of tags, cost, point and proposal; a step takes the same time at both points."""
    for num_tags in args.tags:
        given = {point: problem(num_tags, args.length, args.batch, signal) for point, signal in POINTS.items()}
        for name, cost in progress.track(costs(num_tags).items(), f"{num_tags} tags"):
            clock = times(given["untrained"].float(), cost, args)
            for point in POINTS:
                found = moments(given[point], cost, args.samples, stream)
                base = found.row("uniform")["variance"]
                for proposal in found.square:
                    row, ms = found.row(proposal), clock[proposal]
                    samples = base / row["variance"]
                    figures = row | {"samples": samples, "ms": ms, "time": samples * clock["uniform"] / ms}
                    rounded = {key: float(f"{value:.4g}") for key, value in figures.items()}
                    yield {"tags": num_tags, "point": point, "cost": name, "proposal": proposal} | rounded


def times(given: Problem, cost: Cost, args: argparse.Namespace) -> dict[str, float]:
    """Returns the milliseconds of loss and gradient by proposal; what a proposal needs is made in each step."""

    def step(name: str) -> None:
        leaf = given.emissions.detach().requires_grad_()
        options = {"cost": cost, "proposal": proposals_by_step[name](), "num_samples": TIMED_SAMPLES, "objective": "mean"}
        structured_loss(leaf, given.tags, structure=given.chain, surrogate=PHI, **options).backward()

    proposals_by_step = {
        "uniform": lambda: UNIFORM,
        "default": lambda: SimilarSequences(cost.shared_ngram or 1),
        "1-grams": lambda: mixed(SimilarSequences(1)),
        "2-grams": lambda: mixed(SimilarSequences(2)),
        "moved 1-grams": lambda: mixed(MovedNgrams(1)),
        "moved 2-grams": lambda: mixed(MovedNgrams(2)),
        "edits": lambda: mixed(EditedSequences()),
        "model": lambda: mixed(ModelSequences(given.emissions, given.chain)),
        "k best": lambda: mixed(ListedSequences(kbest(given.emissions, given.chain, given.sites, BEST)[0])),
    }
    contenders = {name: Contender(lambda name=name: step(name)) for name in proposals(given, cost)}
    return quartiles(contenders, args)


def quartiles(contenders: Mapping[Any, Contender], args: argparse.Namespace) -> dict[Any, float]:
    """Returns the lower quartile of each contender's milliseconds."""
    found = interleaved_times(contenders, "cpu", seconds=args.seconds, least=args.least, few=3)
    return {name: statistics.quantiles(values, n=4)[0] for name, values in found.items()}


def by_tags(args: argparse.Namespace, stream: torch.Generator) -> Iterator[dict[str, Any]]:
    """Yields how many times fewer samples the exact n-gram sampler needs than uniform samples, for its cost."""
    for num_tags in args.growth[: args.compared]:
        for n in (1, 2, 3):
            given = problem(num_tags, args.length, 1, 0.0)
            found = moments(given, AlignedNgram(n), args.samples, stream)
            ratio = found.row("uniform")["variance"] / found.row("default")["variance"]
            effective = found.row("uniform")["effective"]
            yield {"tags": num_tags, "n": n, "samples": float(f"{ratio:.4g}"), "effective": float(f"{effective:.4g}")}


def per_sample(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields microseconds for one sample and its probability."""
    stream, batch = torch.Generator().manual_seed(0), 8
    for length in (args.length, 5 * args.length):
        mask = torch.ones(length, batch, dtype=torch.bool)
        sites = Sites.of(mask, is_full=True)

        def step(num_tags: int, n: int, length: int = length, sites: Sites = sites) -> None:
            tags, law = torch.zeros(length, batch).long(), SimilarSequences(n)
            law.log_prob(law.sample(tags, sites, num_tags, TIMED_SAMPLES, stream), tags, sites, num_tags)

        cases = [(num_tags, n) for num_tags in args.growth for n in (1, 2, 4)]
        contenders = {case: Contender(lambda case=case: step(*case)) for case in cases}
        clock = quartiles(contenders, args)
        for (num_tags, n), milliseconds in clock.items():
            microseconds = 1e3 * milliseconds / (TIMED_SAMPLES * batch)
            yield {"length": length, "tags": num_tags, "n": n, "us": float(f"{microseconds:.4g}")}


# ---- the command ----


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints one table."""
    table = Table(title=title)
    for head in rows[0]:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=140).print(table)


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/structured_sampling.py --tags 51,501                     the committed figures\n"
        "  python benchmarks/structured_sampling.py --tags 5 --length 4 --samples 200 --growth 5,9    a quick trial\n",
    )
    numbers = lambda text: tuple(int(word) for word in text.split(","))  # noqa: E731
    parser.add_argument("--tags", type=numbers, default=(51, 501), help="odd numbers of tags (default: 51,501)")
    parser.add_argument("--length", type=int, default=20, help="tags of a sequence (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=4, help="sequences (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=20_000, help="samples of Q (default: %(default)s)")
    parser.add_argument(
        "--growth", type=numbers, default=(50, 500, 5000, 50_000), help="numbers of tags (default: 50,500,5000,50000)"
    )
    parser.add_argument("--compared", type=int, default=2, help="how many of these have a variance (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds for each timing (default: %(default)s)")
    parser.add_argument("--least", type=int, default=101, help="smallest number of rounds (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help=f"JSON (default: benchmarks/results/{OUT.name})")
    return parsed(parser)


def main() -> None:
    """Runs the benchmark and writes the result file."""
    args = arguments()
    torch.set_num_threads(1)
    stream = torch.Generator().manual_seed(1)
    check(stream)
    with Progress() as progress:
        rows = list(variances(args, stream, progress))
    results = {"variances": rows, "by_tags": list(by_tags(args, stream)), "per_sample": list(per_sample(args))}
    for title, table in results.items():
        show(title, table)
    settings = {key: value for key, value in vars(args).items() if key != "out"}
    settings |= {"uniform_share": UNIFORM_SHARE, "best": BEST, "timed_samples": TIMED_SAMPLES}
    write_record(args.out, command=command("structured_sampling.py"), settings=settings, results=results, seed=1)


if __name__ == "__main__":
    main()
