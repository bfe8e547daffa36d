"""Does a smaller learning rate for transitions prevent temporary losses of accuracy?

A BiLSTM with low-rank transitions ("LC rank 64 + unary" of `linearcore reproduce tagging`, English EWT with 4,000 tags, Adam
at the learning rate tuned there) is evaluated on the dev set every 20 steps while the learning rate is high, with
transitions and with emissions only. A fall is the decrease from the best earlier evaluation.
"""

import argparse
import statistics
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from _harness import command, data_folder, parsed
from _scaled_chain import scaled_accuracy
from _work import all_runs, complaint_about, parser_for
from linearcore.runtime import write_record
from linearcore.tagging import Corpus
from linearcore_paper.experiments.tagging import training as training
from linearcore_paper.experiments.tagging.table import fall
from linearcore_paper.experiments.tagging.text import SOURCES, check_data, read_text

OUT = Path(__file__).parent / "results" / "chain_rate.json"
CHAIN_RATES = (1.0, 0.3, 0.1)
RATE, EVERY, METHOD = 0.02, 20, "lc-rank"
#: Number of training steps; the schedule is longer.
STEPS = 360


def one_run(source: str, chain_rate: float, seed: int, steps: int, data: Path | None) -> dict[str, Any]:
    """Trains for the first steps of the schedule and evaluates every `EVERY` steps."""
    plan = _plan(source, seed)
    text = read_text(source, data)
    model = training.make_model(plan, text, "cpu")
    generator = torch.Generator().manual_seed(seed)
    train, dev = (Corpus.of(text.parts[part], text.vocabulary, model.encoder) for part in ("train", "dev"))
    batches = training.make_batches(train, training.ROWS, "cpu", generator)
    dev_batches = training.make_batches(dev, training.DECODED, "cpu")[:1]
    stepper, rates = training.make_stepper(model, plan, chain_rate=chain_rate)
    model.train()
    curve, total_steps = [], SOURCES[source].epochs * len(batches)
    for step, _ in islice(training.trained_steps(stepper, rates, batches, total_steps, generator), steps):
        if step % EVERY == 0:
            curve.append([step, *(round(scaled_accuracy(model, dev_batches, scale), 2) for scale in (1.0, 0.0))])
    return {"chain_rate": chain_rate, "seed": seed, "curve": curve, "fall": round(fall([row[1] for row in curve]), 2)}


def _plan(source: str, seed: int) -> training.Plan:
    return training.Plan(source, "bilstm-adam", METHOD, RATE, seed, hidden=16 if source == "made" else 256)


def main() -> int:
    """Runs the benchmark."""
    args = arguments()
    source, steps = ("made", 2 * EVERY) if args.quick else ("ewt", STEPS)
    data = data_folder(args.data)
    complaint = complaint_about(args, lambda: check_data(data, [source]))
    if complaint is not None:
        print(f"chain_rate.py: {complaint}", file=sys.stderr)
        return 2
    text = read_text(source, data)
    runs = [
        (
            _plan(source, seed).to_json(text) | {"chain_rate": chain_rate, "steps": steps, "look": EVERY},
            one_run,
            (source, chain_rate, seed, steps, data),
        )
        for chain_rate in CHAIN_RATES
        for seed in range(1, args.seeds + 1)
    ]
    rows = all_runs(
        runs, args.workers, args.work, lambda row: f"{row['chain_rate']:g}, seed {row['seed']}: {row['fall']:.2f}"
    )
    settings = {
        "plan": _plan(source, 0).to_json(text),
        "every": EVERY,
        "steps": steps,
        "seeds": args.seeds,
        "source": source,
    }
    write_record(args.out, command=command("chain_rate.py"), settings=settings, results=rows, seed=1)
    table = Table("chain rate", "largest fall", f"accuracy after {steps} steps, %", "emissions alone, %")
    for chain_rate in CHAIN_RATES:
        matching = [row for row in rows if row["chain_rate"] == chain_rate]
        ends = [statistics.mean(row["curve"][-1][column] for row in matching) for column in (1, 2)]
        table.add_row(f"{chain_rate:g}", f"{max(row['fall'] for row in matching):.2f}", *(f"{end:.2f}" for end in ends))
    Console().print(table)
    return 0


def arguments() -> argparse.Namespace:
    """Parses the options."""
    example = "python benchmarks/chain_rate.py --data DIR --workers 2"
    return parsed(parser_for(__doc__, example=example, data="tagging/en_ewt-*.conllu.xz", seeds=3, out=OUT))


if __name__ == "__main__":
    sys.exit(main())
