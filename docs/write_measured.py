"""Writes pages in docs from the records in benchmarks/results: no figure there is typed by hand.

They are measured.md, sampling.md, finding-wrong-labels.md, many-tags.md and noisy-images.md.

python docs/write_measured.py
"""

import argparse
from pathlib import Path

import _many_tags_page
import _noisy_images_page
import _sampling_page
import _wrong_labels_page
from _noisy_letters_section import noisy_letters
from _tables import RESULTS, ROOT, figure, source, table
from _tagging_section import tagging

from linearcore.runtime import read_record

SETS = {"digits": "digits, 10 classes", "letter": "letter, 26 classes", "many": "generated, 200 classes"}


def page() -> str:
    """The whole page."""
    return "\n".join(
        [
            _HEAD,
            one_line(),
            *noisy_letters(),
            dense("cpu"),
            dense("cuda"),
            fenchel_young(),
            *chain("cpu"),
            *chain("cuda"),
            *decoding("cpu"),
            *decoding("cuda"),
            *sampled(),
            *tagging(),
        ]
    )


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


def chain(device: str) -> list[str]:
    """A training step of the chain heads beside other CRFs and token cross-entropy; nothing where there is no record."""
    path = RESULTS / f"chain_{device}.json"
    if not path.is_file():
        return []
    record = read_record(path)
    columns = _CHAIN_COLUMNS if device == "cuda" else {key: head for key, head in _CHAIN_COLUMNS.items() if key != _ANY_MODE}
    rows, missing = [], []
    for case in record["results"]["cases"]:
        size = "×".join(map(str, case["size"]))
        missing += [f"- {size}, {name}: {why}." for name, why in case["left_out"].items()]
        for row in case["steps"]:
            ratios = [figure(row[key], ".2f") for key in columns]
            rows.append([size, row["name"], f"{row['median_ms']:.3f}", *ratios, f"{row['peak_mib']:.1f}"])
            size = ""
    marks = []
    for mark in record["results"]["marks"]:
        figures = [figure(mark[key], ".2f") for key in ("measured", "against_strongest")]
        verdict = {None: "not measured", True: "yes", False: "no"}[mark["met"]]
        marks.append(["×".join(map(str, mark["size"])), mark["mark"], mark["mode"], mark["limit"], *figures, verdict])
    place = "two CPU cores" if device == "cpu" else f"one {record['environment']['device']}"
    parts = [f"## Chain heads, {place}\n\n{_CHAIN[device]}\n{source(record)}"]
    if marks:
        head = ["\\|Y\\|×L×B", "what was to be reached", "mode", "limit", "measured", "against the strongest", "met"]
        parts.append(table(head, marks))
    parts.append(table(["\\|Y\\|×L×B", "loss", "median ms", *columns.values(), "peak MiB"], rows))
    if missing:
        parts.append("\n".join(["Left out:", "", *missing]))
    return ["\n\n".join(parts) + "\n"]


def decoding(device: str) -> list[str]:
    """Exact decoding and beams with thousands of tags; nothing where there is no record."""
    path = RESULTS / f"decoding_{device}.json"
    if not path.is_file():
        return []
    record = read_record(path)
    place = "" if device == "cpu" else f" {record['environment']['device']}."
    results, parts = record["results"], [f"{_DECODING[device]}\n{source(record)}{place}"]
    # On a GPU there is one exact way.
    speeds = ["tokens/s", "× torchcrf", *(["× exact, dense"] if device == "cpu" else []), "× exact"]
    for name, found in results["sets"].items():
        rows = [
            [row["method"], f"{row['accuracy']:.2f}", f"{row['points_from_exact']:+.3f} ± {row['error']:.3f}", *_speeds(row)]
            for row in found["methods"]
        ]
        parts += [
            _mark(found["mark"]),
            table([f"{name}, {found['num_tags']} tags", "accuracy, %", "points from exact", *speeds], rows),
        ]
    shape = "×".join(map(str, results["without_a_model"]["shape"]))
    rows = [[row["method"], f"{row['score']:.4f}", *_speeds(row)] for row in results["without_a_model"]["methods"]]
    parts += [_WITHOUT_A_MODEL[device], table([f"N(0, 1), {shape}", "score / exact", speeds[0], *speeds[2:]], rows)]
    return ["\n\n".join(parts) + "\n"]


def sampled() -> list[str]:
    """Whole steps with sampled candidates; what there is a record of."""
    parts = []
    for device in ("cpu", "cuda"):
        path = RESULTS / f"sampled_{device}.json"
        if not path.is_file():
            continue
        record = read_record(path)
        results = record["results"]
        marks = [
            [mark["mark"], mark["limit"], f"{mark['measured']:g}", "yes" if mark["met"] else "no"]
            for mark in results["marks"]
        ]
        parts += [source(record), table(["what was to be reached", "limit", "measured", "met"], marks)]
        cases = {name: results[name] for name in ("growth", "search") if name in results}
        cases |= {"large": {"100000": results["large"]}} if "large" in results else {}
        for name, sizes in cases.items():
            rows = []
            for size, steps in sizes.items():
                first = f"{int(size):,}"
                for step, row in steps.items():
                    rows.append([first, step, f"{row['median_ms']:.3f}", f"{row['ratio']:.2f}", f"{row['peak_mib']:.1f}"])
                    first = ""
            parts.append(table([_SAMPLED_TABLES[name], "step", "median ms", "× sampled, SGD", "peak MiB"], rows))
    return ["\n\n".join([_SAMPLED, *parts]) + "\n"] if parts else []


def _speeds(row: dict) -> list[str]:
    ratios = [f"{row[key]:.2f}" for key in ("times_torchcrf", "times_dense", "times_exact") if key in row]
    return [f"{row['tokens_per_second']:,.0f}", *ratios]


def _mark(mark: dict | None) -> str:
    """What came of the beam that the dev sentences chose."""
    if mark is None:
        return "No width was surely within 0.05 points of exact on the dev sentences."
    dense = f"{mark['times_dense']:.1f} times as fast as dense exact decoding, " if "times_dense" in mark else ""
    return (
        "The narrowest beam that is surely within 0.05 points of exact on the dev sentences, two standard errors included, "
        f"has width {mark['width']}. On the test sentences it is {mark['points_from_exact']:+.3f} points away, and "
        f"{dense}{mark['times_exact']:.1f} times as fast as exact decoding as it comes, and "
        f"{mark['times_torchcrf']:.0f} times as fast as torchcrf."
    )


_HEAD = """# Measured

Every figure on this page comes from a record under `benchmarks/results/`, which holds the command, settings, seeds and
environment; `python docs/write_measured.py` writes the page from them. Which proposals train, and what sampled gradients are
worth, is on a page of its own: [Sampling](sampling.md).
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
    "cuda": """As above. logodds has fused kernels: eager, it is level with F.cross_entropy or ahead, but for the smallest
case, where the host is what takes time. The other forms are many small kernels, and lose until they are
compiled. Before timing, each form also ran with host synchronisation forbidden and inside a CUDA graph.
""",
}

_FENCHEL_YOUNG = """## The convolutional Fenchel–Young loss

Cao et al. (2025) have a loss with a linear bound for any number of classes. With the closed form of its inner problem
([The consistency lab](consistency-lab.md)) it is no strawman: with up to ten classes it takes about as long as our
`centered`, with 1000 two to five times as long. Forward + backward, float32, one CPU core.
"""

_RATIOS = """The least surrogate regret of a wrong prediction, over its 0-1 regret. A linear bound keeps a row away from
zero; the higher, the better the bound."""

_ANY_MODE = "ratio_to_fastest_cross_entropy"
_CHAIN_COLUMNS = {
    "ratio_to_cross_entropy": "× token cross-entropy",
    _ANY_MODE: "× fastest token cross-entropy",
    "times_faster_than_peers": "fastest other CRF ÷ this",
    "times_faster_than_chain_crf": "ChainCRF ÷ this",
}

_CHAIN = {
    "cpu": """A training step: projection from 256 hidden units to |Y| tags, loss, backward pass to the hidden states, the
projection and the head's parameters; float32, interleaved medians in one process. Every case first checks that the three
CRFs have the same loss and gradient, and each form of ours those of its plain twin in float64. "broadcast CRF" is the
fastest that we could write with one broadcast logsumexp a position. The last two ratios say how many times faster a step is
than the fastest CRF that is not ours, and than our own.
""",
    "cuda": """As above, and every step also replayed as a CUDA graph where it can be recorded. "× token cross-entropy"
compares like with like, eager with eager and graph with graph; the ratios with "fastest", and to ChainCRF, are to
whichever mode is faster. ChainSSVM is from before exact search had fused kernels on GPUs.
""",
}

_DECODING = {
    "cpu": """## Decoding with thousands of tags, two CPU cores

A tagger is trained with `LinearCoreChain`, and every decoder gets its emissions, 8 sentences a batch. "exact" skips tags by
a bound that cannot change the result; "exact, dense" looks at every transition, as torchcrf does. All three were checked to
find the same scores, so that only "exact" was run for accuracy. "argmax" leaves the transitions out. Points have their
standard error over sentences, for this one model. torchcrf and the 5 best were timed once, as were both exact ways without a
model; the rest are medians of interleaved rounds.
""",
    "cuda": """## Decoding with thousands of tags, one GPU

The same tagger and sentences. Exact decoding looks at every transition, in fused kernels that never write the sums of a step
down; torchcrf and the first of the 5 best were checked to find the same score. Both were timed once, the rest are medians of
interleaved rounds.
""",
}

_WITHOUT_A_MODEL = {
    "cpu": """Without a model, emissions and transitions drawn from N(0, 1), the bound has nothing to skip and a beam
little to go by. A trained model is not like that; it is the worst case.""",
    "cuda": """Without a model, emissions and transitions drawn from N(0, 1), a beam has little to go by.""",
}


_SAMPLED_TABLES = {
    "growth": "tags, low rank",
    "search": "tags, dense transitions",
    "large": "tags, low rank, L = 128, batch 8",
}
_SAMPLED = """## Sampled candidates

A whole training step, optimiser included. On two CPU cores: one chain of 20 positions, 64 shared uniform candidates. The
sampled step does not grow with the number of tags; the search of a structured SVM does, even where a bound lets it skip
tags. The paper reports a factor of 23 at 400 tags against a search of its own. On an H200: 100,000 tags, 128 positions,
batch 8; eager, the host is what takes time."""


PAGES = {
    "measured.md": page,
    "sampling.md": _sampling_page.page,
    "finding-wrong-labels.md": _wrong_labels_page.page,
    "many-tags.md": _many_tags_page.page,
    "noisy-images.md": _noisy_images_page.page,
}


def main() -> None:
    """Writes the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder to write to (default: docs)")
    args = parser.parse_args()
    for name, write in PAGES.items():
        (args.out / name).write_text(write(), encoding="utf-8")
        print(f"written to {args.out / name}")


if __name__ == "__main__":
    main()
