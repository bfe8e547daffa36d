"""Writes docs/measured.md from the records in benchmarks/results, so that no figure there is typed by hand.

python docs/write_measured.py --out docs/measured.md
"""

import argparse
from pathlib import Path

from linearcore._record import read_record

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SETS = {"digits": "digits, 10 classes", "letter": "letter, 26 classes", "many": "generated, 200 classes"}


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, one_line(), dense("cpu"), dense("cuda"), fenchel_young()])


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, the first column to the left and the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def one_line() -> str:
    """The one-line promise: the same network, hyper-parameters, start and batches."""
    record = read_record(RESULTS / "one_line.json")
    rows = []
    for key, losses in record["results"]["same_rate"].items():
        name, optimizer = key.split(", ")
        for row in losses:
            first = row["loss"] == "cross-entropy"
            difference = "" if first else f"{row['difference']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
            verdict = "" if first else row["verdict"]
            case = f"{SETS[name]}, {optimizer}, rate {row['rate']:g}" if first else ""
            rows.append([case, row["loss"], f"{row['mean']:.2f} ± {row['sd']:.2f}", difference, verdict])
    head = ["case", "loss", "test accuracy, %", "to cross-entropy [95 %]", "verdict"]
    return f"{_ONE_LINE}\n{source(record)}\n\n{table(head, rows)}\n"


def dense(device: str) -> str:
    """Forward + backward of dense losses."""
    record = read_record(RESULTS / f"dense_loss_{device}.json")
    rows = []
    for case in record["results"]:
        shape = f"{'×'.join(map(str, case['shape']))}, {case['dtype']}"
        for name, row in case["losses"].items():
            cells = [f"{row['median_ms']:.3f}", f"{row['ratio_to_cross_entropy']:.2f}", f"{row['peak_mib']:.1f}"]
            rows.append([shape, name, *cells])
            shape = ""
    place = "two CPU cores" if device == "cpu" else f"one {record['environment']['device']}"
    text = _DENSE[device]
    head = ["scores", "loss", "median ms", "× F.cross_entropy", "peak MiB"]
    return f"## Dense losses, {place}\n\n{text}\n{source(record)}\n\n{table(head, rows)}\n"


def fenchel_young() -> str:
    """The convolutional Fenchel–Young loss beside ours."""
    record = read_record(RESULTS / "fenchel_young.json")
    rows = []
    for case in record["results"]["time"]:
        shape = f"{'×'.join(map(str, case['shape']))}, scores of scale {case['scale']:g}"
        for name, row in case["losses"].items():
            rows.append([shape, name, f"{row['median_ms']:.3f}", f"{row['ratio_to_cross_entropy']:.2f}"])
            shape = ""
    head = ["scores", "loss", "median ms", "× F.cross_entropy"]
    deltas = record["settings"]["deltas"]
    ratios = [
        table(
            [f"p = {path}", *[f"δ = {delta:g}" for delta in deltas]],
            [[name, *map("{:.3f}".format, row)] for name, row in found.items()],
        )
        for path, found in record["results"]["ratio"].items()
    ]
    return "\n\n".join([f"{_FENCHEL_YOUNG}\n{source(record)}", table(head, rows), _RATIOS, *ratios]) + "\n"


def source(record: dict) -> str:
    """Which command made the figures, and on what."""
    where = record["environment"]
    return f"`{record['command']}`, torch {where['torch']}, {where['cpu']}."


_HEAD = """# Measured

Every figure on this page comes from a record under `benchmarks/results/`, which holds the command, settings, seeds and
environment; `python docs/write_measured.py --out docs/measured.md` writes the page from them.
"""

_ONE_LINE = """## One changed line

The same network, hyper-parameters, starting point and batches with `nn.CrossEntropyLoss()` and with
`LinearCoreLoss(form=…)`, on clean data, ten seeds. The learning rate is the one that is best *for cross-entropy* on
validation data. The default form, `logodds`, loses nothing beyond noise in any of the six cases. The other forms do:
`pairwise` a little, more with many classes, and `centered` is not for many classes at all. `logodds` has steeper gradients
than cross-entropy, so that an SGD rate near the limit of stability wants to be lowered; the record holds all rates.
"""

_DENSE = {
    "cpu": """Forward + backward, interleaved medians in one process; every case first checks our gradient against the plain
twin in float64. The ratio is to eager F.cross_entropy. Runs differ by some ten per cent, F.cross_entropy's own by more where
its temporaries come from fresh memory.
""",
    "cuda": """As above. Eager is many small kernels here, and loses; compiled, logodds is level with F.cross_entropy. Fused
kernels are still to come. Before timing, each form also ran with host synchronisation forbidden and inside a CUDA graph.
""",
}

_FENCHEL_YOUNG = """## The convolutional Fenchel–Young loss

Cao et al. (2025) have a loss with a linear bound for any number of classes. With the closed form of its inner problem
([The consistency lab](consistency-lab.md)) it is no strawman: with up to ten classes it takes about as long as our
`centered`, with 1000 two to five times as long. Forward + backward, float32, one CPU core.
"""

_RATIOS = """The least surrogate regret of a wrong prediction, over its 0-1 regret. A linear bound keeps a row away from
zero; the higher, the better the bound."""


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "measured.md")
    args = parser.parse_args()
    args.out.write_text(page(), encoding="utf-8")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
