"""Error of each proposal and number of samples at equal training time.

Every method trains the same tagger for the same number of seconds on one thread, and its learning rate decreases to zero in
that time. The learning rate is chosen from a grid by the dev error with seed 0; results are mean and standard deviation of
the test error over other seeds. Methods with faster steps run more of them.

    token cross-entropy, LC over all candidates, ChainCRF     use all tags in every step
    PROPOSAL, K = …            `sampled_loss` with K samples per batch (own draws: K per position); log-odds unless it says
                               pairwise. "hard 16": a list of 16 competitors of every tag, from the weights of the
                               projection, updated every 200 steps. "in batch": always includes the tags of the batch
    whole sequences            LinearCoreChain.structured, the corrected Algorithm 1 of the paper

The encoder has the same optimiser for all methods. Gradients of projection and chain are dense for methods over all tags
(fused Adam) and sparse for sampled ones (SparseAdamW without weight decay, the same learning rate).

Datasets:

    chains      generated chains of 20 positions with 200 and with 2,000 tags, dense transitions, a linear tagger
    turkish     the Turkish Web Treebank, tags "UPOS|FEATS", low-rank transitions, a window tagger. The sentences of each
                file are numbered from 1: numbers that end in 9 are dev, those that end in 0 test. Needs
                tagging/tr_web.conllu.xz and tagging/tr_wiki.conllu.xz in --data or LINEARCORE_DATA
"""

import argparse
import hashlib
import statistics
import sys
import tempfile
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from _harness import data_folder, parsed
from _proposal_methods import CRF, LISTED, REFRESH, STRUCTURED, Method, methods
from _proposal_runs import Run, Size, load, perform
from _tagger import TURKISH, Recipe, UsageError
from _work import keep, kept, processes
from linearcore.runtime import Progress, write_record

RESULTS = Path(__file__).parent / "results"
SETS = ("chains", "turkish")
#: Numbers of samples; with 200 tags, 256 would exceed the number of tags.
DRAWS = {"chains, 200 tags": (16, 64), "chains, 2000 tags": (16, 64, 256), "turkish": (16, 64, 256)}
SIZES = {
    "chains, 200 tags": Size(200, 4.0, (0.01, 0.03, 0.1)),
    # More tags need more inputs to be separable, and more sequences to contain every transition.
    "chains, 2000 tags": Size(2000, 8.0, (0.01, 0.03, 0.1), batch=8, inputs=30, chains=(6000, 100, 200)),
    "turkish": Size(0, 35.0, (0.003, 0.01, 0.03)),
}
TOY = {"seconds": 0.05, "rates": (0.01, 0.1)}
QUICK = {
    "chains, 200 tags": replace(SIZES["chains, 200 tags"], tags=12, chains=(64, 20, 20), **TOY),
    "chains, 2000 tags": replace(SIZES["chains, 2000 tags"], tags=20, chains=(64, 20, 20), **TOY),
    "turkish": replace(SIZES["turkish"], recipe=Recipe(tokens=200, buckets=2**10, width=8, hidden=16, rank=4), **TOY),
}

# ---- running -------------------------------------------------------------------------------------------------------------


class Study:
    """Tunes every method, then trains it with other seeds; finished runs are saved in a folder."""

    def __init__(self, sizes: dict[str, Size], args: argparse.Namespace, folder: Path | None) -> None:
        self.args, self.folder, self.sizes = args, folder, sizes
        self.done: dict[Run, dict[str, Any]] = {}
        self.field = [(size, method) for name, size in sizes.items() for method in field(name, args.quick)]

    def tuning(self, size: Size, method: Method) -> list[Run]:
        """Lists one run per learning rate; slow methods (CRF, whole sequences) have two with 2,000 tags."""
        rates = size.rates[:2] if method.loss in (CRF, STRUCTURED) and size.tags > 1000 else size.rates
        return [Run(size, method, rate, 0, is_final=False) for rate in rates]

    def finals(self, size: Size, method: Method) -> list[Run]:
        """Lists one run per seed with the best learning rate; empty until tuning is finished."""
        tried = self.tuning(size, method)
        if not all(run in self.done for run in tried):
            return []
        rate = min(tried, key=lambda run: self.done[run]["dev"]).rate
        return [Run(size, method, rate, seed, is_final=True) for seed in range(1, self.args.seeds + 1)]

    def perform(self, work: Path) -> None:
        """Runs everything in parallel, except runs that are in `work`."""
        total = sum(len(self.tuning(*pair)) + self.args.seeds for pair in self.field)
        asked: set[Run] = set()
        with processes(self.args.workers) as pool, Progress() as progress, progress.part("runs", total) as part:
            waiting: dict[Future[dict[str, Any]], Run] = {}
            while True:
                new = [run for pair in self.field for run in (*self.tuning(*pair), *self.finals(*pair)) if run not in asked]
                asked.update(new)
                found = {run: saved for run in new if (saved := kept(work, asdict(run))) is not None}
                self.done |= found
                part.advance(len(found))
                waiting |= {pool.submit(perform, run, self.folder): run for run in new if run not in found}
                if not waiting and not found:
                    return
                ready = wait(waiting, return_when=FIRST_COMPLETED).done if waiting and not found else ()
                for future in ready:
                    run = waiting.pop(future)
                    self.done[run] = future.result()
                    keep(work, asdict(run), self.done[run])
                    part.advance()

    def rows(self, size: Size) -> list[dict[str, Any]]:
        """Makes a row for every method, in order."""
        return [self._row(size, method) for of_size, method in self.field if of_size == size]

    def _row(self, size: Size, method: Method) -> dict[str, Any]:
        tried, finals = self.tuning(size, method), self.finals(size, method)
        ends = [self.done[run] for run in finals]
        tests = [end["test"] for end in ends]
        return {
            "method": method.name,
            **asdict(method),
            "rate": finals[0].rate,
            "tuning": [{"rate": run.rate, "dev": self.done[run]["dev"], "steps": self.done[run]["steps"]} for run in tried],
            "steps": round(statistics.mean(end["steps"] for end in ends)),
            "seconds": round(statistics.mean(end["seconds"] for end in ends), 3),
            "dev": round(statistics.mean(end["dev"] for end in ends), 3),
            "test": round(statistics.mean(tests), 3),
            "spread": round(statistics.stdev(tests), 3) if len(tests) > 1 else None,
            "tests": tests,
        }


def field(name: str, quick: bool) -> list[Method]:
    """Returns the methods for a dataset."""
    found = methods(DRAWS[name], with_chains=name != "turkish")
    # The first, the last and two in the middle cover every kind of loss and proposal.
    return [*found[:5], *found[8:10], found[-4], *found[-2:]] if quick else found


# ---- the command ---------------------------------------------------------------------------------------------------------


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints one table, sorted by error."""
    table = Table(title=title)
    table.add_column("method", no_wrap=True)
    for head in ("test error, %", "±", "dev error, %", "rate", "steps"):
        table.add_column(head, justify="right")
    for row in sorted(rows, key=lambda row: row["test"]):
        spread = "–" if row["spread"] is None else f"{row['spread']:.2f}"
        cells = (f"{row['test']:.2f}", spread, f"{row['dev']:.2f}", f"{row['rate']:g}", f"{row['steps']:,}")
        table.add_row(row["method"], *cells)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def hashes(folder: Path | None) -> dict[str, str]:
    """Returns the SHA-256 of the Turkish files."""
    assert folder is not None
    names = [f"tagging/{name}.conllu.xz" for name in TURKISH]
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/proposals.py --workers 16                                the committed figures of chains\n"
        "  python benchmarks/proposals.py --sets turkish --data DIR --workers 16      and of Turkish\n"
        "  python benchmarks/proposals.py --sets chains --quick                       seconds: does it run?\n",
    )
    parser.add_argument("--data", type=Path, help="folder with tagging/ in it (default: variable LINEARCORE_DATA)")
    parser.add_argument("--sets", default="chains", help="chains, turkish, or both, comma-separated (default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="training seconds per run (default: 4 and 8 for chains, 35)")
    parser.add_argument("--seeds", type=int, default=3, help="seeds with the chosen learning rate (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each (default: %(default)s)")
    parser.add_argument("--work", type=Path, help="folder for finished runs; an interrupted command resumes from it")
    parser.add_argument("--quick", action="store_true", help="smoke test with a toy size")
    parser.add_argument("--out", type=Path, help="JSON, for one set (default: benchmarks/results/proposals_SET.json)")
    return parsed(parser)


def run_set(name: str, args: argparse.Namespace, work: Path) -> None:
    """Runs one dataset, prints its tables and writes its result file."""
    folder = data_folder(args.data)
    sizes = {key: size for key, size in (QUICK if args.quick else SIZES).items() if key.startswith(name)}
    if args.seconds is not None:
        sizes = {key: replace(size, seconds=args.seconds) for key, size in sizes.items()}
    descriptions = {key: load(size, folder).describe() for key, size in sizes.items()}
    study = Study(sizes, args, folder)
    study.perform(work)
    results = {key: descriptions[key] | {"methods": study.rows(size)} for key, size in sizes.items()}
    for key, found in results.items():
        show(f"{key}, {found['num_tags']} tags, {sizes[key].seconds:g} s", found["methods"])
    command = f"python benchmarks/proposals.py --sets {name}" + (" --data DIR" if name == "turkish" else "")
    given = {"seconds": (args.seconds, None), "seeds": (args.seeds, 3), "workers": (args.workers, 1)}
    command += "".join(f" --{key} {value:g}" for key, (value, usual) in given.items() if value != usual)
    settings = {"sizes": {key: asdict(size) for key, size in sizes.items()}, "seeds": args.seeds, "workers": args.workers}
    settings |= {"listed": LISTED, "refresh": REFRESH, "files": hashes(folder) if name == "turkish" else {}}
    out = args.out or RESULTS / f"proposals_{name}.json"
    write_record(out, command=command + " --quick" * args.quick, settings=settings, results={"sets": results}, seed=0)
    print(f"written to {out}")


def main() -> None:
    """Runs the datasets one after the other."""
    args = arguments()
    torch.set_num_threads(1)
    try:
        names = [name.strip() for name in args.sets.split(",")]
        for name in names:
            if name not in SETS:
                raise UsageError(f"--sets takes chains and turkish, and {name!r} is neither")
        if args.out is not None and len(names) > 1:
            raise UsageError("--out is one file, but every dataset has its own: pass one dataset, or leave --out away")
        with tempfile.TemporaryDirectory() as scratch:
            work = args.work or Path(scratch)
            work.mkdir(parents=True, exist_ok=True)
            for name in names:
                run_set(name, args, work)
    except (UsageError, OSError) as error:
        print(f"proposals.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
