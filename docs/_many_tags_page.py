"""docs/many-tags.md: which loss to take for a tagger with thousands of tags, said with the figures of a record alone."""

import statistics
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from _tables import EXPERIMENTS, RESULTS, figure, mark, source, table, wrapped

from linearcore.runtime import read_record
from linearcore_paper.experiments.tagging.table import OURS, Row, best_on_dev, by_method, margin, ratio
from linearcore_paper.experiments.tagging.text import SOURCES
from linearcore_paper.runner import ResultsFile

FILES = [name for source in SOURCES.values() for name in source.files]
VARIANTS = RESULTS / "chain_variants.json"
#: The variant that the experiment has as `lc-rank`.
TAKEN = "unary ½, sharpness 4"
CHAIN_RATES = RESULTS / "chain_rate.json"


class Case:
    """One data set with one encoder.

    Args:
        name: what a reader calls it.
        rows: of each method.
        labels: what a reader calls those.
        kind: of tags and encoder, in words.
    """

    def __init__(self, name: str, rows: dict[str, Row], labels: dict[str, str], kind: str) -> None:
        self.name, self.rows, self.labels, self.kind = name, rows, labels, kind
        #: The linear core that dev chose.
        self.ours = best_on_dev(rows)

    def points(self, other: str) -> tuple[float, float] | None:
        """How many points of test accuracy our best is above another, and what may be chance; None if one has failed."""
        row = self.rows[other]
        if self.ours is None or self.ours.accuracy is None or row.accuracy is None:
            return None
        return self.ours.accuracy - row.accuracy, margin(self.ours, row)

    def is_better(self, other: str) -> bool | None:
        """Whether our best is more accurate, True, or less, False; None within chance, or where one has failed."""
        found = self.points(other)
        return None if found is None or abs(found[0]) <= found[1] else found[0] > 0

    def told(self, other: str) -> str:
        """The name, with the difference."""
        found, chance = self.points(other) or (0.0, 0.0)
        return f"{self.name} ({_signed(found)} ± {chance:.2f} points)"

    def epochs(self, other: str) -> float | None:
        """How many times as long an epoch of another method takes as one of our best."""
        return None if self.ours is None else _quotient(self.rows[other].step_seconds, self.ours.step_seconds)

    def soonest(self) -> Row | None:
        """The method that reaches the target first."""
        known = [row for row in self.rows.values() if row.seconds]
        return min(known, key=lambda row: statistics.mean(row.seconds or [0.0]), default=None)

    def table(self, target: str) -> str:
        """Everything that was measured of it."""
        head = ["method", f"seconds to {target} %", "broadcast CRF ÷ this", "ChainCRF ÷ this", "test accuracy, %"]
        head += ["seconds an epoch", "× token cross-entropy", "not compiled", "rate"]
        return table(head, [self._cells(row) for row in self.rows.values()])

    def over_time(self) -> str:
        """Accuracies on dev at some seconds of training, which is what there is where nobody reaches the target."""
        rows = [row for row in self.rows.values() if row.curve]
        last = max((row.curve[-1][0] for row in rows), default=0.0)
        clock = [seconds for seconds in _CLOCK if seconds <= last]
        head = ["method", *(f"{seconds:g} s" for seconds in clock), "end", "seconds to the end"]
        return table(head, [[self.labels[row.method], *_looked_at(row, clock)] for row in rows])

    def _cells(self, row: Row) -> list[str]:
        base = self.rows["ce"]
        against = (_quotient(row.step_seconds, base.step_seconds), _quotient(row.plain_seconds, base.plain_seconds))
        return [
            self.labels[row.method],
            _seconds(row),
            *(figure(ratio(self.rows[other], row), ".3g") for other in ("broadcast", "crf")),
            _percent(row),
            figure(row.epoch_seconds, ".3g"),
            *(figure(times, ".2f") for times in against),
            figure(row.rate, "g") + (", edge" if row.is_edge else ""),
        ]


def page(folder: Path = EXPERIMENTS, variants: Path = VARIANTS, chain_rates: Path = CHAIN_RATES) -> str:
    """The whole page, from the results of `tagging` in a folder of experiments."""
    record = ResultsFile(folder, "tagging").conclusion
    if record is None:
        raise ValueError(f"`tagging` has no conclusion in {folder}; run `linearcore reproduce tagging --scale paper`")
    data = record["results"]["data"]
    rows = [Row(**{field.name: row[field.name] for field in fields(Row)}) for row in data["rows"]]
    pairs = list(dict.fromkeys((row.source, row.encoding) for row in rows))
    cases = [
        Case(_where(place, encoding, data), by_method(rows, place, encoding), data["labels"], _kind(place, encoding, data))
        for place, encoding in pairs
    ]
    parts = [_HEAD, *which(cases, data), *measured(record, rows), *accuracies(cases, data), *falls(cases, chain_rates)]
    parts += memory(data)
    parts += [*beside_the_paper(rows, record["results"]), *variants_section(variants, rows)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def which(cases: Sequence[Case], data: dict[str, Any]) -> list[str]:
    """What to take."""
    return [
        "## Which to take",
        in_short(cases, data),
        _RULE,
        wrapped(f"**A linear core, or token cross-entropy?** {_against_tokens(cases)}"),
        wrapped(f"**A linear core, or a CRF?** {_against_crf(cases)}"),
        wrapped(f"**Which linear core?** {_which_core(cases)}"),
        wrapped(f"**If only the time to {data['target']:g} % counts:** {_soonest(cases)}"),
        *([wrapped(f"**If memory decides:** {_batches(data)}")] if _fitted(data) else []),
    ]


def in_short(cases: Sequence[Case], data: dict[str, Any]) -> str:
    """A line for each kind of tags and encoder."""
    lines = []
    for kind in dict.fromkeys(case.kind for case in cases):
        own = [case for case in cases if case.kind == kind]
        better = [case for case in own if case.is_better("ce")]
        chosen = list(dict.fromkeys(case.ours.method for case in better if case.ours is not None))
        how = " or ".join(f"{data['labels'][key]} ({_options(key, data)})" for key in chosen)
        points = [case.points("ce") for case in own]
        gains = ", ".join("failed" if pair is None else f"{_signed(pair[0])} ± {pair[1]:.2f}" for pair in points)
        advice = f"**{how}**" if len(better) == len(own) else "**token cross-entropy** (`--loss ce`)"
        if better and len(better) < len(own):
            advice += f", or, where it gained, in {len(better)} of {len(own)} cases, {how}"
        lines.append(_bullet(f"{kind}: {advice}. Points of the linear core above token cross-entropy: {gains}."))
    lines.append("- Probabilities of whole sequences: **ChainCRF** (`--loss crf`).")
    return "\n".join(lines)


def _options(key: str, data: dict[str, Any]) -> str:
    """As `linearcore tag train` takes them."""
    own = data["options"][key]
    if "proposal" in own:
        return "`LinearCoreChain.sampled_loss`"
    return f"`{' '.join(['--loss lc', *(f'--{name} {own[name]:g}' for name in _FLAGS if name in own)])}`"


def _against_tokens(cases: Sequence[Case]) -> str:
    told = [
        f"Take the linear core where it is more accurate: {_listed(cases, 'ce', [True])}.",
        f"Take token cross-entropy where a chain gains nothing that is sure: {_listed(cases, 'ce', [None])}; and where it "
        f"loses: {_listed(cases, 'ce', [False])}.",
        *_missing(cases, "ce"),
    ]
    times = [1 / value for case in cases if (value := case.epochs("ce"))]
    return " ".join([*told, f"The linear core's epoch takes {_range(times)} times as long as token cross-entropy's."])


def _against_crf(cases: Sequence[Case]) -> str:
    told = [
        f"Take the linear core where it is as accurate as ChainCRF, or more: {_listed(cases, 'crf', [None, True])}.",
        f"Take ChainCRF, if you can wait, where it is more accurate: {_listed(cases, 'crf', [False])}.",
        *_missing(cases, "crf"),
    ]
    for other, name in (("crf", "ChainCRF's"), ("broadcast", "A broadcast CRF's")):
        times = [value for case in cases if (value := case.epochs(other))]
        told.append(f"{name} epoch takes {_range(times)} times as long as the linear core's.")
    return " ".join([*told, "Take a CRF in any case when you need probabilities of whole sequences."])


def _which_core(cases: Sequence[Case]) -> str:
    """How often each was the best on dev, and what sampling does to a step."""
    chosen = [case.ours.method for case in cases if case.ours is not None]
    labels = cases[0].labels
    told = ", ".join(f"{labels[key]} {chosen.count(key)}" for key in OURS if key in chosen)
    behind = [
        f"{case.ours.accuracy - row.accuracy:.2f} points on {case.name}"
        for case in cases
        if case.ours is not None
        and case.ours.accuracy is not None
        and (row := case.rows["lc-sampled"]).accuracy is not None
        and case.ours.accuracy - row.accuracy > margin(case.ours, row)
    ]
    sampled = [
        row.step_seconds / min(local)
        for case in cases
        if (row := case.rows["lc-sampled"]).step_seconds is not None
        and (local := [value for key in OURS[:2] if (value := case.rows[key].step_seconds) is not None])
    ]
    return (
        f"Times that each was best on dev, of {len(cases)}: {told or 'none, all failed'}. A sampled step takes "
        f"{_range(sampled)} times as long as the faster of the two steps over all candidates; its accuracy is below that of "
        f"the one that dev chose, beyond chance, {'by ' + '; by '.join(behind) if behind else 'nowhere'}."
    )


def _soonest(cases: Sequence[Case]) -> str:
    found: dict[str, list[str]] = {}
    for case in cases:
        row = case.soonest()
        found.setdefault("No method" if row is None else case.labels[row.method], []).append(case.name)
    never = found.pop("No method", [])
    if len(found) == 1 and not never:
        return f"{next(iter(found))} is first everywhere."
    told = [f"{label[:1].upper()}{label[1:]} is first on {'; '.join(names)}." for label, names in found.items()]
    return " ".join([*told, *([f"No method gets there with every seed on {'; '.join(never)}."] if never else [])])


def _batches(data: dict[str, Any]) -> str:
    """What fits into the smallest memory."""
    found = {data["labels"][key]: held["sequences"] for key, held in _fitted(data).items()}
    size = min(next(iter(found.values())), key=int)
    told = ", ".join(f"{label} {held[size]:,}" for label, held in sorted(found.items(), key=lambda item: -item[1][size]))
    return f"sequences of a batch that fit into {size} GB ([below](#memory)): {told}."


def _fitted(data: dict[str, Any]) -> dict[str, Any]:
    """The memories that could be looked at."""
    return {key: held for key, held in data["memory"].items() if "sequences" in held}


def measured(record: dict[str, Any], rows: Sequence[Row]) -> list[str]:
    """The setting, the machine and the clock."""
    data, settings = record["results"]["data"], record["settings"]
    setting = data["setting"]
    counts = {row.source: row.tags for row in rows}
    tags = ", ".join(f"{_short(key, data)} ({count:,} tags)" for key, count in counts.items())
    inflated = " and ".join(_short(key, data) for key in counts if data["inflated"][key])
    tags += f". Most tags of {inflated} never occur: they were filled up to that number, as in the paper" if inflated else ""
    epochs = ", ".join(f"{count} on {_short(key, data)}" for key, count in setting["epochs"].items())
    grids = {key: ", ".join(f"{rate:g}" for rate in grid) for key, grid in setting["rates"].items()}
    rates = "; ".join(f"{data['encodings'][key]}: {grid}" for key, grid in grids.items())
    seeds = max(len(row.test) for row in rows)
    machines = "; ".join(settings.get("runs_on", [record["environment"]["device"]]))
    text = (
        f"{tags}. BiLSTMs see words alone, without spelling and dropout, as the paper has it; with both, as `linearcore tag "
        "train` has it, differences are smaller ([Taggers](measured.md#taggers)). Sentences are joined to sequences of at "
        f"least {setting['least_words']} words, {setting['batch']} in a batch, as the paper has it; passes over the "
        f"training part: {epochs}. Every method has the same encoder, batches in the same order, schedule and grid of "
        f"learning rates ({rates}), of which dev chose with a seed of its own; test accuracies are means ± standard "
        f"deviations over {seeds} other seeds. Machine: {machines}."
    )
    looks = setting["looks"]
    clock = (
        f"The clock: {data['times']}. Steps are CUDA graphs; those of token cross-entropy and linear cores have their loss "
        "compiled where that is faster (`tag train --compile`), while CRFs and SSVM, which go from position to position, "
        f"have nothing to gain by it. The seconds to {data['target']:g} % are the steps after which every further look at "
        "dev sequences found that accuracy, times those seconds: who falls back has not arrived. Looks come every "
        f"{looks['every']} steps until the first that finds it or {looks['most']:,} steps are done, and twice an epoch. "
        '"broadcast CRF" is the CRF that public libraries have, one broadcast logsumexp a position; its gradient is '
        "ChainCRF's, so that it has ChainCRF's steps on a clock of its own. That one and the SSVM are timed with sequences "
        "of the most frequent length, the others with all lengths."
    )
    made = (
        f"`{record['command']} --device cuda --data DIR`; DIR holds {', '.join(f'`tagging/{name}`' for name in FILES)}. "
        f"Tables and picture were put together with torch {record['environment']['torch']}.{mark(record)}"
    )
    methods = [f"- {data['labels'][key]}: {_options(key, data)}" for key in ("lc", "lc-rank")]
    methods += [f"- {data['labels']['lc-sampled']}: {_SAMPLED.format(**data['options']['lc-sampled'])}"]
    return ["## What was measured", wrapped(text), wrapped(clock), "\n".join([_METHODS, "", *methods]), wrapped(made)]


def accuracies(cases: Sequence[Case], data: dict[str, Any]) -> list[str]:
    """A table for each case."""
    parts = ["## Speed and accuracy", _COLUMNS, _FIGURE]
    for case in cases:
        parts += [f"### {case.name}", case.table(f"{data['target']:g}")]
        if case.soonest() is None:
            parts += [_OVER_TIME, case.over_time()]
    return parts


def falls(cases: Sequence[Case], chain_rates: Path) -> list[str]:
    """How far curves fall back, and what a smaller rate of the chain does about it, where that was measured."""
    if not chain_rates.is_file():
        return ["### Falls", wrapped(_fallen(cases))]
    record = read_record(chain_rates)
    steps, rows = record["settings"]["steps"], []
    for share in dict.fromkeys(row["chain_rate"] for row in record["results"]):
        own = [row for row in record["results"] if row["chain_rate"] == share]
        ends = [statistics.mean(row["curve"][-1][place] for row in own) for place in (1, 2)]
        rows.append([f"{share:g}", f"{max(row['fall'] for row in own):.1f}", *(f"{end:.2f}" for end in ends)])
    head = ["`--chain-lr-scale`", "largest fall, points", f"after {steps} steps, %", "emissions alone, %"]
    about = _CHAIN_RATE.format(seeds=record["settings"]["seeds"], every=record["settings"]["every"])
    return ["### Falls", wrapped(_fallen(cases)), wrapped(f"{about} {source(record)}"), table(head, rows)]


def _fallen(cases: Sequence[Case]) -> str:
    """The broadcast CRF has ChainCRF's curves."""
    most: dict[str, float] = {}
    for row in (row for case in cases for row in case.rows.values() if row.fall is not None and row.method != "broadcast"):
        most[row.method] = max(most.get(row.method, 0.0), row.fall or 0.0)
    told = ", ".join(f"{cases[0].labels[key]} {fall:.1f}" for key, fall in most.items())
    return f"{_FALLS} {told}."


def memory(data: dict[str, Any]) -> list[str]:
    """What a batch takes, and the largest ones; nothing if they were not looked for."""
    fitted, peaks = _fitted(data), {key: held for key, held in data["peaks"].items() if "peak_gb" in held}
    if not fitted:
        return []
    first = next(iter(fitted.values()))
    # In the order of numbers and of the other tables: a record has its keys in that of letters.
    sizes = sorted(first["sequences"], key=int)
    methods = [key for key in dict.fromkeys(row["method"] for row in data["rows"]) if key in fitted or key in peaks]
    held = {key: f"{peaks[key]['peak_gb']:,.3g}" if key in peaks else "–" for key in methods}
    rows = [[data["labels"][key], held[key], *_largest(fitted.get(key), sizes)] for key in methods]
    text = (
        f"One eager step of training, BiLSTM, sequences of {first['words']} words, {first['tags']:,} tags. First the GB "
        f"held at most with the experiment's batch of {data['setting']['batch']}, weights and optimiser included, and "
        "without what libraries keep for themselves. Then the most sequences that fit into a memory, to within 2 %, where "
        f"they were looked for, and the MB of one more, from the difference between {sizes[-2]} and {sizes[-1]} GB:"
    )
    head = ["method", f"GB, batch of {data['setting']['batch']}"]
    head += [*(f"fit in {size} GB" for size in sizes), "MB for one more"]
    return ["## Memory", wrapped(text), table(head, rows)]


def _largest(held: dict[str, Any] | None, sizes: Sequence[str]) -> list[str]:
    """Batches, and megabytes of one sequence more."""
    if held is None:
        return ["–"] * (len(sizes) + 1)
    fits = held["sequences"]
    few, many = sizes[-2:]
    each = 1000 * (int(many) - int(few)) / max(1, fits[many] - fits[few])
    return [*(f"{fits[size]:,}" for size in sizes), f"{each:,.3g}" if each < 1000 else f"{each:,.0f}"]


def beside_the_paper(rows: Sequence[Row], results: dict[str, Any]) -> list[str]:
    """Its seconds and ours, and the verdicts."""
    data, found = results["data"], []
    for kind, paper in sorted(data["paper"].items(), reverse=True):
        found.append([f"paper, {_KINDS[kind]}", f"{paper['crf']:g}", "–", f"{paper['lc']:g}", f"{paper['ratio']:g}", "–"])
    for place, encoding in dict.fromkeys((row.source, row.encoding) for row in rows):
        own = by_method(rows, place, encoding)
        cores = [own[key] for key in OURS if own[key].seconds]
        best = min(cores, key=lambda row: statistics.mean(row.seconds or [0.0]), default=None)
        ratios = [None if best is None else ratio(own[key], best) for key in ("broadcast", "crf")]
        # Where none has arrived with every seed, the one that did so most often.
        shown = best or max((own[key] for key in OURS), key=lambda row: sum(steps is not None for steps in row.reached))
        seconds = [_seconds(row) for row in (own["broadcast"], own["crf"], shown)]
        found.append([_where(place, encoding, data), *seconds, *(figure(value, ".3g") for value in ratios)])
    head = [f"seconds to {data['target']:g} %", "CRF (ours: broadcast)", "ChainCRF", "fastest linear core"]
    head += ["CRF ÷ linear core", "ChainCRF ÷ linear core"]
    verdicts = [
        _bullet(f"{claim['claim']}: **{claim['verdict']}**; {claim['ours'].partition('. ')[0]}.")
        for claim in results["claims"]
    ]
    return ["## Beside the paper", _PAPER, table(head, found), "\n".join(verdicts)]


def variants_section(path: Path, measured_rows: Sequence[Row]) -> list[str]:
    """A table of dev accuracies; nothing where there is no record."""
    if not path.is_file():
        return []
    record = read_record(path)
    runs: dict[str, list[dict[str, Any]]] = {}
    for run in record["results"]:
        runs.setdefault(run["name"], []).append(run["dev"])
    scales = list(dict.fromkeys(scale for found in runs.values() for dev in found for scale in dev if scale != "1"))
    ranked = sorted(runs, key=lambda name: -_mean(runs[name], "1"))
    rows = [[name, _told(runs[name]), *(_scaled(runs[name], scale) for scale in scales)] for name in ranked]
    seeds = record["settings"]["seeds"]
    counted = "one seed" if seeds == 1 else f"{seeds} seeds"
    head = ["variant", "dev accuracy, %", *(f"× {scale}" for scale in scales)]
    told = [f"Rate {record['settings']['rate']:g}, {counted}.", *_beside_variants(runs, measured_rows), source(record)]
    return ["## Variants that were tried", wrapped(_VARIANTS), wrapped(" ".join(told)), table(head, rows)]


def _beside_variants(runs: dict[str, list[dict[str, Any]]], rows: Sequence[Row]) -> list[str]:
    """What to hold the variants against, from the tables above: a CRF, and the spread of the one that they have."""
    own, told = by_method(rows, "latin", "bilstm-adam"), []
    crf, ours = own.get("crf"), own.get("lc-rank")
    if crf is not None and crf.dev:
        told.append(
            f"ChainCRF, at its own rate of {crf.rate:g} in the tables above, has {statistics.mean(crf.dev):.2f} on dev, the "
            f"mean over {len(crf.dev)} seeds."
        )
    if ours is not None and len(ours.dev) > 1 and TAKEN in runs:
        gap = max(_mean(found, "1") for found in runs.values()) - _mean(runs[TAKEN], "1")
        told.append(
            f'"{TAKEN}" is what the tables above call LC rank 64 + unary, where dev varies by '
            f"{statistics.stdev(ours.dev):.2f} points from seed to seed; the best here is {gap:.2f} points above it."
        )
    return told


def _looked_at(row: Row, clock: Sequence[float]) -> list[str]:
    """What the last look had found by then; nothing before the first look, and after the end."""
    seconds, end = row.curve[-1]
    cells = []
    for now in clock:
        before = [accuracy for then, accuracy in row.curve if then <= now]
        cells.append(f"{before[-1]:.2f}" if before and now <= seconds else "–")
    return [*cells, f"{end:.2f}", f"{seconds:.3g}" if seconds < 1000 else f"{seconds:,.0f}"]


def _mean(devs: list[dict[str, float]], scale: str) -> float:
    return statistics.mean(dev[scale] for dev in devs)


def _told(devs: list[dict[str, float]]) -> str:
    spread = f" ± {statistics.stdev(dev['1'] for dev in devs):.2f}" if len(devs) > 1 else ""
    return f"{_mean(devs, '1'):.2f}{spread}"


def _scaled(devs: list[dict[str, float]], scale: str) -> str:
    # Token cross-entropy has no transitions to scale.
    return figure(_mean(devs, scale) if all(scale in dev for dev in devs) else None, ".2f")


def _listed(cases: Sequence[Case], other: str, wanted: Sequence[bool | None]) -> str:
    """Those in which our best against another is as wanted, with the differences."""
    known = [case for case in cases if case.points(other) is not None]
    found = [case for case in known if case.is_better(other) in wanted]
    if len(found) == len(cases) > 1:
        points = sorted((case.points(other) or (0.0, 0.0))[0] for case in found)
        return f"everywhere, {_signed(points[0])} to {_signed(points[-1])} points"
    return "; ".join(case.told(other) for case in found) or "nowhere here"


def _missing(cases: Sequence[Case], other: str) -> list[str]:
    """Those that cannot be compared."""
    names = [case.name for case in cases if case.points(other) is None]
    return [f"Not compared, since runs failed: {'; '.join(names)}."] if names else []


def _quotient(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _range(values: Sequence[float]) -> str:
    if not values:
        return "an unknown number of"
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def _short(place: str, data: dict[str, Any]) -> str:
    """A data set without its number of tags."""
    return str(data["sources"][place]).partition(",")[0]


def _where(place: str, encoding: str, data: dict[str, Any]) -> str:
    return f"{_short(place, data)} · {data['encodings'][encoding]}"


def _kind(place: str, encoding: str, data: dict[str, Any]) -> str:
    """What a reader has in hand: tags that occur or do not, and an encoder."""
    tags = (
        "A few dozen tags that occur, and thousands that do not"
        if data["inflated"][place]
        else "Thousands of tags that occur"
    )
    return f"{tags}, with {'a pre-trained transformer' if encoding == 'bert' else 'a BiLSTM'}"


def _seconds(row: Row) -> str:
    if row.step_seconds is None:
        return "does not fit"
    return row.arrivals if row.seconds is None else f"{statistics.mean(row.seconds):.3g}"


def _percent(row: Row) -> str:
    if row.accuracy is None:
        return "failed"
    return f"{row.accuracy:.2f}" + ("" if row.spread is None else f" ± {row.spread:.2f}")


def _bullet(text: str) -> str:
    return wrapped(text, initial_indent="- ", subsequent_indent="  ")


_HEAD = """# Many tags

A tagger with thousands of tags, trained with a CRF, with token cross-entropy and with linear cores: how soon it is good, how
good it gets, what an epoch takes and what fits into memory, on a GPU; on a CPU, and for decoding, see
[Measured](measured.md#chain-heads-two-cpu-cores). Every figure, and every sentence with a figure in it, comes from the
record of `linearcore reproduce tagging --scale paper`, or of the command beside it; `python docs/write_measured.py` writes
the page. How to train one: [Tagging](tagging.md)."""

_RULE = """In numbers: a difference of mean test accuracies counts if its interval of 95 % over the seeds (Welch's) leaves
out 0; half of that interval stands behind ± in this section, and standard deviations in the tables. The linear core of a
case is the one that was best on dev."""

_METHODS = """What linear cores are called here, with the options of `linearcore tag train`:"""

_SAMPLED = """the options of the former, and candidates that are the tags of the batch and {samples} draws
  (`LinearCoreChain.sampled_loss`; the command has no option for it)"""

#: Options of a linear core that are flags of the command.
_FLAGS = ("rank", "unary", "sharpness")

_COLUMNS = """The two columns with ÷ say how many times as long a CRF takes to the target. "not compiled" is
the ratio before it of losses that are not compiled. "edge": the rate that dev chose is the first or the last of its grid, so
that another might do better yet."""

_FIGURE = """![Accuracy on dev against seconds of training, a panel for each data set and
encoder](../paper/src/linearcore_paper/experiments/tagging/tagging.png)"""

_FALLS = """While the rate is high, a tagger may lose for some steps what it had; it comes back as the rate falls. It is
linear cores with low-rank transitions that do; in the fall that was looked into, a rare tag that often follows itself had
got a transition that outweighed the words. Points by which a look at dev fell below one before it, at the most over all
cases and seeds:"""

_CHAIN_RATE = """`tag train --chain-lr-scale` has the chain's own scores learn at a share of the rate; it was not used in the
tables. LC rank 64 + unary on English EWT, BiLSTM, Adam, the first steps of the same schedule, a look every {every} of them,
{seeds} seeds:"""

_OVER_TIME = """Accuracy on dev, in per cent, after so many seconds of training:"""

#: Seconds at which those are told.
_CLOCK = (1.0, 2.0, 5.0, 10.0, 60.0, 300.0)

_KINDS = {"bert": "BERT", "bilstm": "BiLSTM"}

_PAPER = """The paper's seconds are of its own CRF, machine and text; what can be compared is the ratio. The linear core is
the fastest of the three in each case."""

_VARIANTS = """Ways to train a chain whose words are judged one by one, each between the tags of its neighbours. Unless its
name says otherwise a variant has transitions of rank 64 and sees the true neighbours. "Unary": so much of the loss is on the
emissions alone. "Own", "swept", "absent" and "expected neighbours": so often a word sees, instead of a neighbour's true tag,
the best one of the emissions, the best one between those, none, or the mean over the emissions' softmax. "Pairs": so much of
the loss is on two adjacent tags that change together. "Chain rate": transitions learn at so many times the rate. Gamma, τ
and sharpness are the surrogate's. Encoder, order, rate and steps are the same for all, on Latin, and token cross-entropy
stands beside them; dev part only, best first. In the columns with × transitions are multiplied by that factor when decoding;
× 0 is each tag by itself, and – where there are none."""
