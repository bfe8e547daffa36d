"""docs/noisy-images.md: losses on CIFAR-10 with wrong labels, said with the figures of records alone."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _tables import EXPERIMENTS, RESULTS, figure, mark, source, table, wrapped

from linearcore.runtime import read_record
from linearcore_paper.experiments.noise.claims import MIDDLE
from linearcore_paper.experiments.noise.methods import INCOMPLETE_METHODS, METHODS, Config
from linearcore_paper.runner import ResultsFile

SEARCH = RESULTS / "robust_search.json"
#: The same for centered scores, whose best was the largest scale, with larger ones.
FURTHER = RESULTS / "robust_search_further.json"
#: The same for the unhinged loss.
NORMED = RESULTS / "robust_search_normed.json"
FAVOURITES = RESULTS / "favourites.json"
WIDTHS = RESULTS / "core_width.json"
#: Runs of `noise` with norms that were removed, beside the rows that stayed: a record a line.
REMOVED = RESULTS / "robust_norms.jsonl"

SEARCHES = (SEARCH, FURTHER, NORMED)


def page(
    folder: Path = EXPERIMENTS,
    searches: Sequence[Path] = SEARCHES,
    favourites: Path = FAVOURITES,
    widths: Path = WIDTHS,
    removed: Path = REMOVED,
) -> str:
    """The whole page, with a section for each record that is there."""
    noise, pushes = (ResultsFile(folder, name) for name in ("noise", "gradient-histogram"))
    parts = [_HEAD]
    if noise.conclusion is not None:
        parts += noise_sections(noise.conclusion, spread_of_repeats(noise.parts))
        parts += incomplete_section(noise.parts)
        parts += removed_section(removed)
    if favourites.is_file():
        parts += favourites_section(read_record(favourites))
    if widths.is_file():
        parts += width_section(read_record(widths))
    if pushes.conclusion is not None:
        parts += push_section(pushes.conclusion)
    parts += search_section([read_record(path) for path in searches if path.is_file()])
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


# ---- the table of `noise` ------------------------------------------------------------------------------------------------


def noise_sections(record: dict[str, Any], repeats: str = "") -> list[str]:
    """Accuracies, what was chosen, wrong labels that are found, and the verdicts."""
    data = record["results"]["data"]
    rows = {(row["row"], row["law"], row["rate"]): row for row in data["rows"]}
    columns = list(dict.fromkeys((row["law"], row["rate"]) for row in data["rows"]))
    # Records sort the names of a mapping; rows stand in the order of the table.
    data["labels"] = {row["row"]: data["labels"][row["row"]] for row in data["rows"]}
    about = wrapped(f"{data['source']}, ResNet-18, {_RECIPE}: {data['told']}. {_made_by(record)}")
    verdicts = [f"- {claim['claim']}: **{claim['verdict']}**." for claim in record["results"]["claims"]]
    return [
        "## Accuracy",
        about,
        "![Test accuracy against the rate of wrong labels](../paper/src/linearcore_paper/experiments/noise/noise.png)",
        _accuracies(data, rows, columns),
        "## What was chosen",
        wrapped(f"{_CHOICES.format(rate=f'{100 * MIDDLE:g}')} {repeats}"),
        _choices(data),
        "## Finding the wrong ones",
        wrapped(_FINDING),
        _found(data, rows),
        "## What was learned",
        wrapped(_LEARNED),
        _learned(data, rows, columns),
        "## Verdicts",
        "\n".join(verdicts),
        wrapped(_WHY),
    ]


def _accuracies(data: dict[str, Any], rows: dict[Any, Any], columns: list[tuple[str, float]]) -> str:
    """A line for each method, the best of a column in bold, and the paper's lines below."""
    noisy = [rate for law, rate in columns if law == "instance" and rate > 0]
    best = {column: max((_mean(rows[key, *column]) for key in data["labels"]), default=0.0) for column in columns}
    means = {key: _mean_over([rows[key, "instance", rate]["mean"] for rate in noisy]) for key in data["labels"]}
    lines = [
        [
            label,
            *(_cell(rows[key, *column], best[column]) for column in columns),
            _bold(figure(means[key], ".2f"), means[key] == max(mean for mean in (*means.values(), 0.0) if mean is not None)),
        ]
        for key, label in data["labels"].items()
    ]
    for key, pairs in data["paper"].items():
        known = {rate: value for rate, value in pairs}
        cells = [figure(known.get(rate) if law == "instance" else None, ".2f") for law, rate in columns]
        lines.append([f"the paper's {key.upper()}", *cells, f"{statistics.mean(known.values()):.2f}"])
    head = [f"{100 * rate:g} %" + ("" if law == "instance" else f" {data['laws'][law]['label']}") for law, rate in columns]
    return table(["test accuracy, %", *head, "mean over " + ", ".join(f"{100 * rate:g}" for rate in noisy)], lines)


def _heads(data: dict[str, Any], columns: Sequence[tuple[str, float]]) -> list[str]:
    return [f"{100 * rate:g} %" + ("" if law == "instance" else f" {data['laws'][law]['label']}") for law, rate in columns]


def _mean_over(values: Sequence[float | None]) -> float | None:
    """None if one of them is missing."""
    known = [value for value in values if value is not None]
    return statistics.mean(known) if len(known) == len(values) else None


def _mean(row: dict[str, Any]) -> float:
    """A run that failed has learned nothing."""
    return 0.0 if row["mean"] is None else float(row["mean"])


def _cell(row: dict[str, Any], best: float) -> str:
    if row["mean"] is None:
        return "failed"
    told = f"{row['mean']:.2f}" + ("" if row["spread"] is None else f" ± {row['spread']:.2f}")
    return _bold(told, row["mean"] == best)


def _bold(text: str, is_best: bool) -> str:
    return f"**{text}**" if is_best else text


def spread_of_repeats(records: dict[str, Any]) -> str:
    """How far tries with the same seed lie apart; nothing where none was repeated."""
    groups: dict[str, list[float]] = {}
    for repeat in sorted(part for part in records if "_again" in part):
        name = repeat.rpartition("_again")[0]
        own = groups.setdefault(name, [_agreement(records[name])])
        own.append(_agreement(records[repeat]))
    if not groups:
        return ""
    # All as far apart by chance, whatever their mean.
    spread = statistics.mean(statistics.variance(values) for values in groups.values()) ** 0.5
    widest = max(max(values) - min(values) for values in groups.values())
    return _REPEATS.format(tries=len(groups), spread=f"{spread:.1f}", widest=f"{widest:.1f}")


def _agreement(record: dict[str, Any]) -> float:
    return float(record["results"]["noisy_validation_accuracy"])


def _choices(data: dict[str, Any]) -> str:
    """All that was tried, the chosen one first, and then the best."""
    lines = []
    for choice in data["choices"]:
        label = data["labels"][choice["row"]]
        agreed = [one["noisy_validation_accuracy"] for one in choice["tried"]]
        order = sorted(range(len(agreed)), key=lambda place: (place != choice["chosen"], -(agreed[place] or 0.0)))
        for place in order:
            one = choice["tried"][place]
            config = Config(one["scale"], one["decay"], one["options"])
            told = "failed" if agreed[place] is None else f"{agreed[place]:.2f}"
            lines.append([label, _bold(config.words, place == choice["chosen"]), told])
            label = ""
    return table(["method", "configuration", "agreement, %"], lines)


def _found(data: dict[str, Any], rows: dict[Any, Any]) -> str:
    """Areas under the curve where most seeds are."""
    wanted = max(
        (key[1:] for key in rows if key[2] > 0), key=lambda column: len(rows[next(iter(data["labels"])), *column]["seeds"])
    )
    lines = []
    for key, label in data["labels"].items():
        row = rows[key, *wanted]
        lines.append([label, *(figure(row[name], ".3f") for name in ("auc_margin", "auc_loss"))])
    law, rate = wanted
    return table([f"{data['laws'][law]['label']}, {100 * rate:g} %", "by margin", "by loss"], lines)


def _learned(data: dict[str, Any], rows: dict[Any, Any], columns: Sequence[tuple[str, float]]) -> str:
    """Wrong labels that the network ends up giving as well, and true ones that it does not."""
    wrong = [(law, rate) for law, rate in columns if rate > 0]
    lines = [
        [label, figure(_missed(rows[key, "instance", 0.0]), ".1f")]
        + [figure(rows[key, *column]["wrong_learned"], ".1f") for column in wrong]
        for key, label in data["labels"].items()
    ]
    return table(["per cent", "missed at 0 %", *(f"learned at {head}" for head in _heads(data, wrong))], lines)


def _missed(row: dict[str, Any]) -> float | None:
    """Of the training images with right labels."""
    return None if row["train_accuracy"] is None else 100.0 - float(row["train_accuracy"])


# ---- runs beside the table -----------------------------------------------------------------------------------------------


def incomplete_section(parts: dict[str, dict[str, Any]]) -> list[str]:
    """Accuracies of methods that lack some of their runs; nothing where there are no runs of them."""
    found = _by_rate(parts, {key: method.label for key, method in INCOMPLETE_METHODS.items()})
    tried = {key: sum(f"tune_{key}_{place}" in parts for place in range(6)) for key in INCOMPLETE_METHODS}
    left = [method.label for key, method in INCOMPLETE_METHODS.items() if tried[key] == 6 and method.label not in found]
    more = f" Of {', '.join(left)} only the six tries were run." if left else ""
    return ["## Runs that are not in the table yet", wrapped(_INCOMPLETE + more), _rates_table(found)] if found else []


def removed_section(path: Path) -> list[str]:
    """Accuracies of norms that were removed, beside those of the rows that stayed."""
    if not path.is_file():
        return []
    records = {record["part"]: record for record in map(json.loads, path.read_text("utf-8").splitlines())}
    found = _by_rate(records, _REMOVED_LABELS)
    first = next(iter(records.values()))
    made = f"`{first['command'].partition(' --parts')[0]} --data DIR`, {first['environment']['device']}, commit"
    about = wrapped(f"{_REMOVED} {made} {first['environment']['commit'][:7]}, which still has the options.")
    return ["## Norms that were removed", about, _rates_table(found)]


def _by_rate(parts: dict[str, dict[str, Any]], labels: dict[str, str]) -> dict[str, dict[float, float]]:
    """The test accuracy of the first seed by label and rate."""
    found: dict[str, dict[float, float]] = {}
    for name, record in sorted(parts.items()):
        kind, *rest = name.split("_")
        if kind == "run" and rest[0] == "instance" and rest[2] in labels:
            found.setdefault(labels[rest[2]], {}).setdefault(float(rest[1]), record["results"]["test_accuracy"])
    return {label: found[label] for label in labels.values() if label in found}


def _rates_table(found: dict[str, dict[float, float]]) -> str:
    rates = sorted({rate for values in found.values() for rate in values})
    best = {rate: max(values[rate] for values in found.values() if rate in values) for rate in rates}
    lines = [
        [label, *(_bold(figure(values.get(rate), ".2f"), values.get(rate) == best[rate]) for rate in rates)]
        for label, values in found.items()
    ]
    return table(["test accuracy, %", *(f"{100 * rate:g} %" for rate in rates)], lines)


# ---- what can be known ---------------------------------------------------------------------------------------------------


def favourites_section(record: dict[str, Any]) -> list[str]:
    """What learners that know the law would answer."""
    found = {(row["rate"], row["learner"], row["answer"]): statistics.mean(row["answered"]) for row in record["results"]}
    rates = sorted({rate for rate, _, _ in found})
    lines = [
        [f"knows {seen}, answers {given}", *(f"{found[rate, learner, answer]:.1f}" for rate in rates)]
        for learner, seen in _LEARNERS.items()
        for answer, given in _ANSWERS.items()
    ]
    settings = record["settings"]
    about = _FAVOURITES.format(images=f"{settings['images']:,}", seeds=len(settings["seeds"]), command=record["command"])
    head = ["true classes that are answered, %", *(f"{100 * rate:g} %" for rate in rates)]
    return ["## What such labels can teach", wrapped(about), table(head, lines)]


# ---- how wide a core ------------------------------------------------------------------------------------------------------


def width_section(record: dict[str, Any]) -> list[str]:
    """What a tail does, with a small network."""
    runs, settings = record["results"], record["settings"]
    rates = sorted({run["rate"] for run in runs})
    lines = []
    for name in dict.fromkeys(run["row"] for run in runs):
        own = [[run for run in runs if (run["row"], run["rate"]) == (name, rate)] for rate in rates]
        learned = [[run.get("learned") for run in some] for rate, some in zip(rates, own, strict=True) if rate > 0]
        cells = [*([run.get("test") for run in some] for some in own), *learned]
        lines.append([name, *map(_over_seeds, cells)])
    about = _WIDTHS.format(images=f"{settings['images'][0]:,}", epochs=settings["recipe"]["epochs"], seeds=settings["seeds"])
    head = [f"right at {100 * rate:g} %" for rate in rates]
    head += [f"wrong labels learned at {100 * rate:g} %" for rate in rates if rate > 0]
    return ["## How wide a core", wrapped(f"{about} {source(record)}"), table(["per cent", *head], lines)]


def _over_seeds(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "failed"
    return f"{statistics.mean(known):.1f}" + (f" ± {statistics.stdev(known):.1f}" if len(known) > 1 else "")


# ---- `gradient-histogram` ------------------------------------------------------------------------------------------------


def push_section(record: dict[str, Any]) -> list[str]:
    """How hard right and wrong labels push, and whether it is as the paper draws it."""
    data = record["results"]["data"]
    lines = []
    for reading in data["readings"]:
        for key, run in data["runs"].items():
            for name in () if "failed" in run else ("right", "wrong"):
                group = run["readings"][reading][name]
                cells = [
                    f"{group['mean']:.3f} ± {group['deviation']:.3f}",
                    f"{100 * group['counts'][-1] / sum(group['counts']):.1f}",
                    f"{100 * group['share_of_push']:.1f}",
                ]
                lines.append([f"{data['labels'][key]}, {name} labels, {reading}", *cells])
    head = ["after epoch " + str(data["epoch"]), "mean push", f"above {1 - 1 / data['bins']:g}, %", "share of all push, %"]
    verdicts = [f"- {claim['claim']}: **{claim['verdict']}**." for claim in record["results"]["claims"]]
    picture = "![Histograms of pushes](../paper/src/linearcore_paper/experiments/gradient_histogram/gradient-histogram.png)"
    about = wrapped(f"{_PUSH} {data['magnitude']}. {_made_by(record)}")
    return ["## How hard labels push", about, picture, table(head, lines), "\n".join(verdicts)]


# ---- the sweep -----------------------------------------------------------------------------------------------------------


def search_section(records: Sequence[dict[str, Any]]) -> list[str]:
    """Which form is worth a large network; nothing where there is no record."""
    if not records:
        return []
    shared = ("recipe", "noise", "held_out")
    if any(record["settings"][name] != records[0]["settings"][name] for record in records for name in shared):
        raise ValueError(f"sweeps in one table must have the same {', '.join(shared)}")
    rows, settings = [row for record in records for row in record["results"]], records[0]["settings"]
    scales = sorted({row["scale"] for row in rows}, reverse=True)
    found: dict[str, dict[float, float | None]] = {}
    for row in rows:
        found.setdefault(row["loss"], {})[row["scale"]] = row.get("noisy_validation_accuracy")
    best = {
        name: max((value for value in values.values() if value is not None), default=0.0) for name, values in found.items()
    }

    def cell(name: str, scale: float) -> str:
        if scale not in found[name]:
            return "–"
        value = found[name][scale]
        return "failed" if value is None else _bold(f"{value:.2f}", value == best[name])

    lines = [[name, *(cell(name, scale) for scale in scales)] for name in sorted(found, key=lambda name: -best[name])]
    recipe, noise = settings["recipe"], settings["noise"]
    about = _SEARCH.format(
        epochs=recipe["epochs"], rate=f"{100 * noise['rate']:g}", held=f"{settings['held_out']:,}",
        error=f"{100 * (0.25 / settings['held_out']) ** 0.5:.1f}", right=f"{100 * (1 - noise['rate']):g}",
    )  # fmt: skip
    head = ["agreement, %", *(f"scale {scale:g}" for scale in scales)]
    made_by = " ".join(_made_by(record) for record in records)
    return ["## Which form", wrapped(f"{about} {made_by}"), table(head, lines)]


def _made_by(record: dict[str, Any]) -> str:
    """The command and the machine; of an experiment, the machines of its runs."""
    where = record["settings"].get("runs_on")
    if where is None:
        place = record["environment"]
        return f"`{record['command']}`, {place['device']}, torch {place['torch']}.{mark(record)}"
    # Runs of an experiment were done elsewhere; a record leaves out what decides nothing.
    return f"`{record['command']} --data DIR --device cuda`, {'; '.join(where)}.{mark(record)}"


_HEAD = """# Wrong labels on CIFAR-10

What losses make of images whose labels are wrong. Every figure comes from a record;
`python docs/write_measured.py` writes the page. How to train so yourself: [Images](images.md). Which loss for which labels:
[Which to take](robust-loss.md#which-to-take)."""

_RECIPE = "the paper's recipe (but for weight decay and the loss's scale, where they are tuned)"

_CHOICES = """Every tuned loss had the same number of tries, each as long as the runs that count, with {rate} % of wrong
labels by instance. "Agreement" is with held-out labels, as wrong as those of training. The best, in bold, was taken for all
rates and for both laws; some lie at the edge of what was tried, so that more tries might find better ones. Tries were
changed once, after ten final runs had been seen: before, they were of twenty epochs, and the best two were repeated in
full. The unhinged loss has no least value: on raw scores it diverged, or weight decay took everything. So its network has
batch norm behind its scores, as in the released code of Patrini et al. (2017), without that norm's learned scale. A second
GCE has the same norm, to tell what it does from what a loss does; all others have the paper's network as it is. The unhinged
loss's norm came after some final runs of the others had been seen, GCE's norm after one seed of all of them, when the
unhinged loss with its norm was ahead from 40 % on."""

_REPEATS = """{tries} tries were repeated with the same seed: a GPU does not repeat itself to the last bit, and agreements
then differ by {spread} points (standard deviation; {widest} at most). Gaps of this size, between configurations or losses,
say nothing."""

_INCOMPLETE = """Methods that some runs are still missing of, with one seed; compare with the first seed only. "LC as in the
paper, sum" is Eq. (3) as printed, where the table has the mean over competitors. "Tuned LC, pairwise" had the same six tries
as the tuned rows of the table. "LC, wide core" has τ = 5 and the settings that the unhinged loss chose."""

_REMOVED = """Seed 2. Each row has the settings that six tries chose, the wide core those of the unhinged loss. "Shared
length" was `robust_loss(norm="batch")`, one norm for a batch. "Balanced" was `norm="class"` on `NormedScores(sphere=True)`.
Both were removed, since at every rate a row that stays is ahead of both."""

_REMOVED_LABELS = {
    "robust": METHODS["robust"].label,
    "lc-wide": INCOMPLETE_METHODS["lc-wide"].label,
    "shared": "robust, shared length (removed)",
    "balanced": "robust, balanced (removed)",
}

_LEARNERS = {"class": "the class", "pixels": "what it becomes"}
_ANSWERS = {"likeliest": "the likeliest", "normed": "what it has more of"}

_FAVOURITES = """The law of these wrong labels, as released by Xia et al., has favourites: images of a class that go wrong
become the same few other classes, and pixels tell which. Two learners know it. One knows the class of an image, and how
often that class becomes each other; one knows what this very image becomes, as if it had learned the projections of pixels
that decide. The likeliest label is what every consistent loss aims at. Above 50 % it is the wrong one for whoever knows what
an image becomes: the better such a loss learns, the worse its answers. What an image has *more of than other images have*,
each class in its own standard deviations, is what a loss that is straight in normed scores aims at
([why](robust-loss.md#heavy-noise-a-wide-core-on-normed-scores)). Up to 40 % the labels would teach everything to
both. Networks err on their own as well; none is trained here. {images} images, mean over {seeds} seeds. `{command}`."""

_WIDTHS = """Normed scores, as the unhinged loss has them in `linearcore reproduce noise`, and cores of several widths:
{images} images, a small network with time to learn labels by heart ({epochs} epochs), all settings the same and nothing
tuned, so that a row may do better with others. Classes that are told apart without doubt have margins of about 1. Beyond
the core a tail lets go of images that are answered well; those that are not go on pushing, wrong labels among them. Without
a tail the loss is the unhinged one. Mean and standard deviation over {seeds} seeds."""

_FINDING = """After the last epoch, how well the scores tell wrong training labels from right ones: areas under the curve, by
the margin of the given label and by its loss. [Finding wrong labels](finding-wrong-labels.md) does this with your own."""

_WHY = """Where our marks come from, and why the robust loss misses some: [The robust loss, on
images](robust-loss.md#on-images). Which loss for which labels: [Which to take](robust-loss.md#which-to-take)."""

_LEARNED = """Of the wrong training labels, those that the network answers with after the last epoch: learned by heart, or
because the law of the noise was learned. "Missed" is the share of training images with right labels that it does not answer
rightly. Both should be small."""

_PUSH = """How hard a label pushes late in training, that is,"""

_SEARCH = """A sweep with a small network, to see which linear core is worth a large one: {epochs} epochs, {rate} % of
wrong labels by instance, one seed, the same order, rate and weight decay for all, and the loss times some scales. The
figures are agreements with {held} held-out labels, as wrong as the others (standard error up to {error} points): a network
that is always right would agree with about {right} %, and nobody looked at a true label. The best of a row is bold, and the
best row first; – was not tried. "Sphere of radius 1" is `RobustLinearCoreLoss()`; pairwise and centered are means over the
competitors."""
