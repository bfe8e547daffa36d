"""Operations on acyclic automata: `PathDistribution` beside the chain heads on the same chain, and beside OpenFst (pynini).

    head                  ChainCRF's log-partition function and its gradient, ChainCRF.viterbi and kbest, from emissions
    automaton             the same on the automaton of the chain, from scores of its arcs
    automaton, emissions  the same, including the conversion of emissions and transitions to scores of arcs
    pynini                OpenFst on one automaton per row of the batch, which are built before; for the gradient, the
                          shortest distances from the start and to the end in the log semiring, without the arcs' products

Chains of about 10,000 arcs, and a lexicon of generated words; float32, one batch of random scores. Before timing, all sums
and best scores must agree. Times are CPU time on one thread, medians of interleaved rounds, so that other processes on the
machine count little. The mark is that the automaton takes at most 3 times as long as the head.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import linearcore as lc
from _harness import SETTLING_STEPS, Contender, command, parsed, peak_bytes
from linearcore.kernels import log_partition
from linearcore.runtime import write_record
from linearcore.structured import PathDistribution
from linearcore.structures import Automaton, chain_arc_scores

try:
    import pynini
except ImportError:
    pynini = None

RESULTS = Path(__file__).parent / "results"
HEAD, OURS, CONVERTED, PYNINI = "head", "automaton", "automaton, emissions", "pynini"
GRADIENT, BEST, FIVE_BEST, SAMPLES = "log Z and gradient", "best path", "5 best paths", "10 samples"
#: Times of the head that are allowed.
MARK = 3.0


@dataclass(frozen=True)
class Plan:
    """Sizes: chains as tags × positions, words of the lexicon, and rows of the batch."""

    chains: tuple[tuple[int, int], ...] = ((10, 101), (20, 26), (50, 5))
    words: int = 50_000
    batch: int = 32
    seconds: float = 8.0
    least: int = 5


QUICK = Plan(chains=((3, 4),), words=50, batch=2, seconds=0.05, least=2)


# ---- contenders ----------------------------------------------------------------------------------------------------------


def ours(automaton: Automaton, scores: Tensor) -> dict[str, Contender]:
    """All operations on given scores of arcs."""
    leaf = scores.detach().clone().requires_grad_()

    def gradient() -> None:
        PathDistribution(automaton, leaf).logsumexp().sum().backward()

    return {
        GRADIENT: Contender(gradient, lambda: setattr(leaf, "grad", None)),
        BEST: Contender(lambda: PathDistribution(automaton, scores).shortest_path()),
        FIVE_BEST: Contender(lambda: PathDistribution(automaton, scores).nbest(5)),
        SAMPLES: Contender(lambda: PathDistribution(automaton, scores).sample(10)),
    }


def converted(automaton: Automaton, head: lc.ChainCRF, emissions: Tensor) -> dict[str, Contender]:
    """The operations of the head on the automaton of its chain."""
    leaf = emissions.detach().clone().requires_grad_()

    def paths(inputs: Tensor) -> PathDistribution:
        return PathDistribution(automaton, chain_arc_scores(automaton, inputs, head.chain(inputs)))

    return {
        GRADIENT: Contender(lambda: paths(leaf).logsumexp().sum().backward(), lambda: clear(leaf, head)),
        BEST: Contender(lambda: paths(emissions).shortest_path()),
        FIVE_BEST: Contender(lambda: paths(emissions).nbest(5)),
    }


def heads(head: lc.ChainCRF, emissions: Tensor) -> dict[str, Contender]:
    """The operations of the chain head."""
    leaf = emissions.detach().clone().requires_grad_()
    mask = torch.ones(emissions.shape[:2], dtype=torch.bool, device=emissions.device)

    def gradient() -> None:
        log_partition(leaf, head.chain(leaf), mask, is_full=True).sum().backward()

    return {
        GRADIENT: Contender(gradient, lambda: clear(leaf, head)),
        BEST: Contender(lambda: head.viterbi(emissions)),
        FIVE_BEST: Contender(lambda: head.kbest(emissions, k=5)),
    }


def clear(leaf: Tensor, head: lc.ChainCRF) -> None:
    """Removes all gradients."""
    leaf.grad = None
    head.zero_grad()


def openfst(automaton: Automaton, scores: Tensor) -> tuple[dict[str, Contender], Callable[[], tuple[Tensor, Tensor]]]:
    """The operations in OpenFst, one automaton per row; and a function that returns log Z and the best scores."""
    log, tropical = ([built(automaton, row, kind) for row in scores.tolist()] for kind in ("log", "standard"))

    def distances() -> list[float]:
        values = []
        for fst in log:
            pynini.shortestdistance(fst)
            values.append(-float(pynini.shortestdistance(fst, reverse=True)[fst.start()]))
        return values

    def best(k: int = 1) -> list[Any]:
        return [pynini.shortestpath(fst, nshortest=k) for fst in tropical]

    def values() -> tuple[Tensor, Tensor]:
        best_scores = [-float(pynini.shortestdistance(fst, reverse=True)[fst.start()]) for fst in best()]
        return torch.tensor(distances()), torch.tensor(best_scores)

    return {GRADIENT: Contender(distances), BEST: Contender(best), FIVE_BEST: Contender(lambda: best(5))}, values


def built(automaton: Automaton, scores: list[float], arc_type: str) -> Any:
    """One automaton in OpenFst."""
    fst = pynini.Fst(arc_type=arc_type)
    fst.add_states(automaton.num_states)
    fst.set_start(automaton.start)
    for state in automaton.final.tolist():
        fst.set_final(state)
    columns = (part.tolist() for part in (automaton.source, automaton.target, automaton.label))
    for source, target, label, score in zip(*columns, scores, strict=True):
        fst.add_arc(source, pynini.Arc(label + 1, label + 1, pynini.Weight(fst.weight_type(), -score), target))
    return fst


# ---- cases ---------------------------------------------------------------------------------------------------------------


def chain_case(num_tags: int, length: int, plan: Plan, generator: torch.Generator) -> list[dict[str, Any]]:
    """Measures one chain."""
    automaton = Automaton.from_chain(length, num_tags)
    head = lc.ChainCRF(num_tags)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    emissions = torch.randn(length, plan.batch, num_tags, generator=generator)
    scores = chain_arc_scores(automaton, emissions, head.chain(emissions)).detach()
    paths = PathDistribution(automaton, scores)
    contenders = {HEAD: heads(head, emissions), OURS: ours(automaton, scores),
                  CONVERTED: converted(automaton, head, emissions)}  # fmt: skip
    mask = torch.ones(emissions.shape[:2], dtype=torch.bool)
    expected = log_partition(emissions, head.chain(emissions), mask).detach()
    check((paths.logsumexp(), paths.shortest_path().score), (expected, head.viterbi(emissions)[1]), "the head")
    return measured(f"chain, {num_tags} tags × {length}", automaton, contenders, paths, plan)


def lexicon_case(plan: Plan, generator: torch.Generator, seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Measures a lexicon of generated words, and the time to build it."""
    words = generated_words(plan.words, seed)
    begin = time.perf_counter()
    automaton = Automaton.from_lexicon(words)
    seconds = time.perf_counter() - begin
    building: dict[str, Any] = {"words": len(words), "automaton_seconds": round(seconds, 3), "pynini_seconds": None}
    if pynini is not None:
        begin = time.perf_counter()
        fst = pynini.determinize(pynini.string_map(words).rmepsilon()).minimize()
        building["pynini_seconds"] = round(time.perf_counter() - begin, 3)
        if fst.num_states() != automaton.num_states:
            raise SystemExit(f"OpenFst has {fst.num_states()} states, and the lexicon {automaton.num_states}")
    scores = torch.randn(plan.batch, automaton.num_arcs, generator=generator)
    name = f"lexicon, {len(words):,} words"
    return measured(name, automaton, {OURS: ours(automaton, scores)}, PathDistribution(automaton, scores), plan), building


def generated_words(count: int, seed: int) -> list[str]:
    """Distinct words of one to four syllables and a common ending."""
    stream, words = random.Random(seed), set()
    syllables = [first + vowel + last for first in "bdfgklmnprst" for vowel in "aeiou" for last in ("", "n", "r", "s")]
    while len(words) < count:
        word = "".join(stream.choices(syllables, k=stream.randint(1, 4)))
        words.add(word + stream.choice(["", "s", "ed", "ing", "er", "ness"]))
    return sorted(words)


def check(found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor], name: str) -> None:
    """Exits if log Z or the best score differ."""
    for value, other in zip(found, expected, strict=True):
        if not torch.allclose(value, other, rtol=1e-4, atol=1e-3):
            raise SystemExit(f"the automaton and {name} differ by {float((value - other).abs().max()):.3g}")


def measured(
    name: str, automaton: Automaton, contenders: dict[str, dict[str, Contender]], paths: PathDistribution, plan: Plan
) -> list[dict[str, Any]]:
    """Times the operations of all contenders; a row for each operation."""
    if pynini is not None:
        contenders[PYNINI], values = openfst(automaton, paths.scores)
        check((paths.logsumexp(), paths.shortest_path().score), values(), "OpenFst")
    rows = []
    for operation in (GRADIENT, BEST, FIVE_BEST, SAMPLES):
        present = {who: steps[operation] for who, steps in contenders.items() if operation in steps}
        times = cpu_medians(present, plan)
        mine = times[OURS]
        row = {"case": name, "states": automaton.num_states, "arcs": automaton.num_arcs, "operation": operation}
        row["milliseconds"] = {who: round(value, 4) for who, value in times.items()}
        row["times_head"] = {who: round(times[who] / times[HEAD], 3) for who in (OURS, CONVERTED) if HEAD in times}
        row["pynini_times_automaton"] = round(times[PYNINI] / mine, 2) if PYNINI in times else None
        row["peak_mib"] = {who: round(peak_bytes(present[who], "cpu") / 2**20, 1) for who in times if who != PYNINI}
        rows.append(row)
    return rows


def cpu_medians(contenders: dict[str, Contender], plan: Plan) -> dict[str, float]:
    """Returns the median milliseconds of CPU time of each contender; a slow one runs in the first rounds only."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    stop = time.perf_counter() + plan.seconds
    while time.perf_counter() < stop or any(len(values) < plan.least for values in times.values()):
        for name, contender in contenders.items():
            # Directly after another contender the caches are cold, which can take longer than a small step.
            quick = not times[name] or times[name][-1] < 50
            if not quick and len(times[name]) >= plan.least:
                continue
            for _ in range(SETTLING_STEPS if quick else 1):
                contender.reset()
                begin = time.process_time()
                contender.step()
                elapsed = (time.process_time() - begin) * 1e3
            times[name].append(elapsed)
    return {name: statistics.median(values) for name, values in times.items()}


# ---- the command ---------------------------------------------------------------------------------------------------------


def show(rows: list[dict[str, Any]]) -> None:
    """Prints one row per case and operation."""
    table = Table(title="milliseconds of CPU time")
    for head in ("case", "arcs", "operation", HEAD, OURS, CONVERTED, PYNINI, "automaton / head", "pynini / automaton"):
        table.add_column(head, justify="left" if head in ("case", "operation") else "right")
    for row in rows:
        times = [f"{row['milliseconds'][who]:.2f}" if who in row["milliseconds"] else "–"
                 for who in (HEAD, OURS, CONVERTED, PYNINI)]  # fmt: skip
        ratios = [row["times_head"].get(OURS), row["pynini_times_automaton"]]
        texts = ["–" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        table.add_row(row["case"], f"{row['arcs']:,}", row["operation"], *times, *texts)
    Console(width=140).print(table)


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/automata.py --seconds 8    the committed figures, a few minutes on one core\n"
        "  python benchmarks/automata.py --quick        seconds: does it run?\n",
    )
    parser.add_argument("--words", type=int, help=f"words of the lexicon (default: {Plan.words})")
    parser.add_argument("--batch", type=int, help=f"rows of the batch (default: {Plan.batch})")
    parser.add_argument("--seconds", type=float, help=f"seconds per operation (default: {Plan.seconds:g})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="smoke test with a toy size")
    parser.add_argument("--out", type=Path, help="JSON (default: benchmarks/results/automata_cpu.json)")
    args = parsed(parser)
    args.out = args.out or RESULTS / "automata_cpu.json"
    return args


def main() -> None:
    """Runs the benchmark, prints the table and writes the result file."""
    args = arguments()
    torch.set_num_threads(1)
    given = {key: value for key in ("words", "batch", "seconds") if (value := getattr(args, key)) is not None}
    plan = replace(QUICK if args.quick else Plan(), **given)
    generator = torch.Generator().manual_seed(args.seed)
    rows = [row for tags, length in plan.chains for row in chain_case(tags, length, plan, generator)]
    words, building = lexicon_case(plan, generator, args.seed)
    show(rows + words)
    marked = [row["times_head"][OURS] for row in rows if row["operation"] in (GRADIENT, BEST)]
    mark = {"allowed": MARK, "largest": max(marked), "is_met": max(marked) <= MARK}
    print(f"At most {mark['largest']:.2f} times the head's time for log Z, its gradient and the best path (mark: {MARK:g}).")
    results = {"rows": rows + words, "building_the_lexicon": building, "mark": mark}
    versions = {"pynini": None if pynini is None else pynini.__version__, "threads": 1}
    write_record(args.out, command=command("automata.py"), settings=asdict(plan) | versions, results=results, seed=args.seed)
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
