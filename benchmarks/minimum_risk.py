"""Time and benefit of decoding for a metric: minimum-risk decoding beside Viterbi, for every cost.

Emissions are normal and the tags are drawn from the distribution of the chain, a ChainCRF with 20 BIO tags. The model is
therefore right, which is the best case for minimum-risk decoding. `--scale` is the standard deviation of the emissions: the
larger, the more certain the model.

    viterbi          the tags with the best score, for all costs
    16 best          minimum_risk(candidates=16, num_samples=0): the distribution is restricted to the candidates
    16 + 64          minimum_risk(candidates=16, num_samples=64), the default
    64 + 64          minimum_risk(candidates=64, num_samples=64)

"search" is the part of the time that does not depend on the cost: `kbest` with that many sequences. "zero-one" and "hamming"
are exact and use neither candidates nor samples. First, decoding with all sequences as candidates must equal enumeration on
a small space. Times are medians of interleaved rounds on one batch, divided by its number of sentences. Mean costs are over
`--sentences` sentences with `--draws` drawn sequences each as the truth.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import linearcore as lc
from _harness import Contender, command, interleaved_medians, parsed
from linearcore.kernels import sample_chain
from linearcore.runtime import write_record
from linearcore.structures import COST_NAMES, Cost, Sequences, Sites, resolve_cost

RESULTS = Path(__file__).parent / "results"
NAMES = ["O", *(f"{prefix}-{kind}" for kind in range(9) for prefix in "BI"), "S-9"]
LENGTH, BATCH = 25, 32
WAYS = {"16 best": (16, 0), "16 + 64": (16, 64), "64 + 64": (64, 64)}


def check() -> None:
    """Exits unless decoding with all sequences as candidates has the least expected cost by enumeration."""
    space, head = Sequences(3, 4), lc.ChainCRF(3).double().requires_grad_(False)
    emissions = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(0)).double()
    chain, outputs = head.chain(emissions), space.outputs
    scores = emissions.gather(-1, outputs.t().unsqueeze(1).expand(-1, 6, -1)).sum(0)
    scores = scores + chain.start[outputs[:, 0]] + chain.end[outputs[:, -1]]
    scores = scores + chain.transitions[outputs[:, :-1], outputs[:, 1:]].sum(-1)
    for name in COST_NAMES:
        cost = resolve_cost(name, ["O", "B-X", "I-X"])
        least = (scores.softmax(-1) @ space.cost(cost).t()).amin(-1)
        risk = head.minimum_risk(emissions, cost=cost, candidates=space.size)[1]
        if not torch.allclose(risk, least, atol=1e-6):
            raise SystemExit(f"decoding for {name} differs from enumeration, so the results are invalid")


def problem(scale: float, sentences: int, draws: int, seed: int) -> tuple[lc.ChainCRF, Tensor, Tensor]:
    """Returns a head, emissions (B, L, |Y|) and tags (draws, B, L) from its distribution."""
    stream = torch.Generator().manual_seed(seed)
    head = lc.ChainCRF(len(NAMES), batch_first=True).requires_grad_(False)
    for parameter in head.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=stream))
    emissions = scale * torch.randn(sentences, LENGTH, len(NAMES), generator=stream)
    emissions[..., 0] += scale
    sites = Sites.of(torch.ones(LENGTH, sentences, dtype=torch.bool), is_full=True)
    truth, _ = sample_chain(emissions.transpose(0, 1), head.chain(emissions), sites, draws, stream)
    return head, emissions, truth.transpose(1, 2)


def mean_cost(cost: Cost, tags: Tensor, truth: Tensor) -> float:
    """Returns the mean cost of tags (B, L) over the drawn sequences."""
    return float(torch.stack([cost.between(tags, drawn, dtype=torch.float64).mean() for drawn in truth]).mean())


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measures times per sentence and mean costs of all decoders."""
    head, emissions, truth = problem(args.scale, args.sentences, args.draws, args.seed)
    costs = {name: resolve_cost(name, NAMES) for name in COST_NAMES}
    batch = emissions[:BATCH]
    contenders = {"viterbi": Contender(partial(head.viterbi, batch))}
    for k in sorted({k for k, _ in WAYS.values()}):
        contenders[f"search {k}"] = Contender(partial(head.kbest, batch, k=k))
    for name, cost in costs.items():
        for way, (k, samples) in WAYS.items():
            step = partial(head.minimum_risk, batch, cost=cost, candidates=k, num_samples=samples)
            contenders[f"{name}, {way}"] = Contender(step)
    times = interleaved_medians(contenders, "cpu", seconds=args.seconds, least=args.least)
    per_sentence = {name: time / len(batch) for name, time in times.items()}
    best = head.viterbi(emissions)[0]
    rows = []
    for name, cost in costs.items():
        row: dict[str, Any] = {
            "cost": name,
            "viterbi": {"mean": mean_cost(cost, best, truth), "ms": per_sentence["viterbi"]},
        }
        for way, (k, samples) in WAYS.items():
            tags = head.minimum_risk(emissions, cost=cost, candidates=k, num_samples=samples)[0]
            row[way] = {"mean": mean_cost(cost, tags, truth), "ms": per_sentence[f"{name}, {way}"]}
        rows.append(row)
    searches = {name: time for name, time in per_sentence.items() if name.startswith("search")}
    return {"costs": rows, "viterbi_ms": per_sentence["viterbi"], "search_ms": searches}


def show(results: dict[str, Any]) -> None:
    """Prints the table."""
    table = Table(title=f"ms per sentence and mean cost; Viterbi {results['viterbi_ms']:.3f} ms")
    for column in ("cost", "viterbi", *WAYS):
        table.add_column(column, justify="left" if column == "cost" else "right")
    for row in results["costs"]:
        cells = (f"{row[way]['mean']:.4f}, {row[way]['ms']:.2f} ms" for way in ("viterbi", *WAYS))
        table.add_row(row["cost"], *cells)
    Console(width=120).print(table)
    print("; ".join(f"{name}: {time:.2f} ms" for name, time in results["search_ms"].items()))


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  python benchmarks/minimum_risk.py --scale 2",
    )
    parser.add_argument("--scale", type=float, default=8.0, help="deviation of the emissions (default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=160, help="sentences for the mean costs (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=20, help="drawn sequences for each sentence (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=45.0, help="seconds of timing (default: %(default)s)")
    parser.add_argument("--least", type=int, default=3, help="smallest number of timed rounds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "minimum_risk_cpu.json")
    args = parsed(parser)
    check()
    results = measure(args)
    show(results)
    options = ("scale", "sentences", "draws", "seconds", "least")
    settings = {name: getattr(args, name) for name in options}
    settings |= {"tags": len(NAMES), "length": LENGTH, "batch": BATCH, "threads": torch.get_num_threads()}
    write_record(args.out, command=command("minimum_risk.py"), settings=settings, results=results, seed=args.seed)
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
