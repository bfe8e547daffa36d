"""The section about taggers in docs/measured.md."""

from _tables import RESULTS, figure, source, table

from linearcore.runtime import read_record

SETS = {
    "ewt": "English EWT, XPOS",
    "turkish": "Turkish Web Treebank, UPOS and features",
    "latin": "LASLA Latin, UPOS and features",
}
LOSSES = {"lc": "linear core", "ce": "token cross-entropy", "crf": "CRF", "ssvm": "SSVM"}


def tagging() -> list[str]:
    """Accuracy and speed of taggers, and the large file."""
    found = [path for name in SETS if (path := RESULTS / f"tagging_{name}.json").is_file()]
    parts = [_set(read_record(path)) for path in found]
    large = RESULTS / "streaming_cpu.json"
    if large.is_file():
        parts.append(_large(read_record(large)))
    return ["\n\n".join([_TAGGING, *parts]) + "\n"] if parts else []


def _set(record: dict) -> str:
    results, settings = record["results"], record["settings"]
    speeds = results["training_words_per_second"]
    on_gpu = settings["device"] != "cpu"
    rows = []
    for loss, row in sorted(results["summary"].items(), key=lambda item: -item[1]["test_accuracy"]):
        spread = "" if row["spread"] is None else f" ± {row['spread']:.2f}"
        cells = [
            f"{row['test_accuracy']:.2f}{spread}",
            f"{row['unknown']:.2f}",
            f"{row['epochs']:g}",
            f"{row['seconds']:.0f}",
        ]
        rows.append([LOSSES[loss], *cells, figure(speeds.get(loss), ",")])
        rows[-1] += [f"{row['peak_gib']:.2f}"] if on_gpu else []
    seeds = max(row["seeds"] for row in results["summary"].values())
    threads = record["environment"]["threads"]
    place = "one CPU thread" if threads == 1 else f"{threads} CPU threads"
    place = f"one {record['environment']['device']}" if on_gpu else place
    tags = results["runs"][0]["tags"]
    counted = "one seed" if seeds == 1 else f"{seeds} seeds"
    head = ["loss", "test accuracy, %", "unknown words, %", "epochs", "seconds", "training words/s"]
    head += ["peak GiB"] if on_gpu else []
    # To be dropped with the next record: SSVM trains by exact search, which has become faster on GPUs since.
    note = " SSVM is from before exact search had fused kernels." if on_gpu and "ssvm" in results["summary"] else ""
    title = f"**{SETS[settings['set']]}**, {tags:,} tags in training, {place}, {counted}."
    return f"{title}{note} {source(record)}\n\n{table(head, rows)}"


def _large(record: dict) -> str:
    found = record["results"]
    first, second = (round(found[f"{half}_half_median_mib"]) for half in ("first", "second"))
    return (
        f"**A file of {found['file_mb']:,.0f} MB** ({found['words']:,} words) through `linearcore tag predict`: the process "
        f"held {found['peak_mib']:.0f} MiB at most, {first} MiB in the first half of the run and {second} MiB in the second "
        f"(medians). It ran beside other work, so its time tells nothing. {source(record)}"
    )


_TAGGING = """## Taggers

`linearcore.tagging` with its default BiLSTM and spelling, equal settings for all losses; dev chooses the epoch. "seconds"
are those of a whole run, with preparing the sentences and decoding dev after each epoch. Turkish ran on one thread beside
other work: compare its words per second, which were measured alone on two threads, and not its seconds."""
