"""docs/finding-wrong-labels.md: how to find wrong labels, and how well that works by the record of a benchmark."""

import inspect
import textwrap
from typing import Any

from _tables import EXPERIMENTS, RESULTS, source, table, wrapped

from linearcore.cleaning import out_of_fold_scores
from linearcore.runtime import read_record
from linearcore_paper.experiments.noise.claims import MIDDLE
from linearcore_paper.runner import ResultsFile

NAMES = {
    "ce": "CE", "gce": "GCE", "lc": "LC logodds", "lc-pairwise": "LC pairwise", "lc-centered": "LC centered",
    "robust": "LC robust", "unhinged": "unhinged",
}  # fmt: skip
LAWS = ("symmetric 20 %", "symmetric 40 %", "instance-dependent 40 %", "pair flip 40 %")
MEASURES = {"margin": "margin", "log_odds": "log-odds", "p_margin": "margin of p", "loss": "its loss"}

Row = dict[str, Any]


def page() -> str:
    """The whole page."""
    record = read_record(RESULTS / "wrong_labels.json")
    sets: Row = record["results"]["sets"]
    parts = [_HOW, _EXPECT, expected(sets), setup(record), measures(sets), _MEASURES, seen(sets), seen_images()]
    parts += [_FAILS, failing(sets), _OTHER_FAULTS, _SHARE, share(sets)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def setup(record: Row) -> str:
    """What was trained, and what made the figures."""
    settings, sets = record["settings"], record["results"]["sets"]
    grid = ", ".join(f"{rate:g}" for rate in settings["learning_rates"])
    sizes = " and ".join(f"{found['rows']:,} rows of {name}" for name, found in sets.items())
    text = wrapped(
        f"Mean ± spread over {len(settings['seeds'])} seeds; bold is the best mean of its row. {sizes}. One hidden layer of "
        f"{settings['hidden']} units, Adam, {settings['folds']} folds, at most {settings['epochs']} epochs; for every case "
        f"and loss the learning rate of {grid}, and for every training the epoch, that agree with most labels *as given*, "
        "out of fold. For the unhinged loss, networks norm their scores over the batch (`NormedScores`). "
        f'Instance-dependent noise has `inputs="{_inputs(sets)}"`; of other inputs it is another law.'
    )
    return f"{text}\n{source(record)}"


def _inputs(sets: Row) -> str:
    """What the projections of instance-dependent noise look at."""
    (name,) = {found["laws"]["instance-dependent 40 %"]["law"]["inputs"] for found in sets.values()}
    return str(name)


def _cases(sets: Row) -> list[tuple[str, Row]]:
    """Every set under every law, by name."""
    return [
        (f"{name}, {found['num_classes']} classes: {law}", found["laws"][law]["losses"])
        for name, found in sets.items()
        for law in LAWS
    ]


def _mean(losses: Row, loss: str, kind: str = "out_of_fold", measure: str = "margin") -> float:
    value: float = losses[loss][kind][measure]["mean"]
    return value


def _best(losses: Row) -> str:
    """The loss that finds most."""
    return max(losses, key=lambda loss: _mean(losses, loss))


def _averages(sets: Row, kind: str, measure: str) -> dict[str, float]:
    """The mean over all cases, for every loss."""
    cases = [losses for _, losses in _cases(sets)]
    return {loss: sum(_mean(losses, loss, kind, measure) for losses in cases) / len(cases) for loss in NAMES}


def expected(sets: Row) -> str:
    """AUC by margin, out of fold."""
    rows = []
    for case, losses in _cases(sets):
        cells = []
        for loss in NAMES:
            found = losses[loss]["out_of_fold"]["margin"]
            text = f"{found['mean']:.4f} ± {found['sd']:.4f}"
            cells.append(f"**{text}**" if loss == _best(losses) else text)
        rows.append([case, *cells])
    averages = _averages(sets, "out_of_fold", "margin")
    ranking = sorted(averages, key=lambda loss: -averages[loss])
    wins = [_best(losses) for _, losses in _cases(sets)]
    told = ", ".join(f"{NAMES[loss]} in {wins.count(loss)}" for loss in ranking if loss in wins)
    means = ", ".join(f"{NAMES[loss]} {averages[loss]:.4f}" for loss in ranking)
    default = inspect.signature(out_of_fold_scores).parameters["loss"].default
    text = wrapped(
        f"Of {len(wins)} cases the best is {told}. Mean over the cases: {means}. The command and `out_of_fold_scores` take "
        f"{NAMES[default]} unless told otherwise."
    )
    return f"{table(['AUC by margin, out of fold', *NAMES.values()], rows)}\n\n{text}"


def measures(sets: Row) -> str:
    """Mean AUC over the cases by measure."""
    found = {measure: _averages(sets, "out_of_fold", measure) for measure in MEASURES}
    precision = _averages(sets, "out_of_fold", "precision")
    rows = [
        [name, *[f"{found[measure][loss]:.4f}" for measure in MEASURES], f"{precision[loss]:.3f}"]
        for loss, name in NAMES.items()
    ]
    head = ["mean over the cases, out of fold", *[f"AUC by {name}" for name in MEASURES.values()], "precision by margin"]
    return f"## Which measure\n\n{table(head, rows)}"


def seen(sets: Row) -> str:
    """In sample against out of fold."""
    held, own = _averages(sets, "out_of_fold", "margin"), _averages(sets, "in_sample", "margin")
    lost = {
        (case, loss): (_mean(losses, loss), _mean(losses, loss, "in_sample"))
        for case, losses in _cases(sets)
        for loss in NAMES
    }
    case, loss = max(lost, key=lambda key: lost[key][0] - lost[key][1])
    pairs = ", ".join(f"{name} {own[loss]:.4f} instead of {held[loss]:.4f}" for loss, name in NAMES.items())
    text = (
        "The same networks trained on all rows to the last epoch, each row scored by the network that saw it, at the "
        f"learning rate that is best for that: AUC by margin, mean over the cases, {pairs}. The most is lost with "
        f"{NAMES[loss]} on {case}: {lost[case, loss][1]:.4f} instead of {lost[case, loss][0]:.4f}."
    )
    return f"## Rows that the model has seen\n\n{wrapped(text)}"


def seen_images() -> str:
    """The same with a large network, from the record of `noise`."""
    record = ResultsFile(EXPERIMENTS, "noise").conclusion
    if record is None:
        raise ValueError("`noise` has no conclusion; run `linearcore reproduce noise --scale paper`")
    data = record["results"]["data"]
    area = {(row["row"], row["rate"]): row["auc_margin"] for row in data["rows"] if row["law"] == "instance"}
    methods = sorted(data["labels"], key=lambda key: -area[key, MIDDLE])
    told = "; ".join(f"{data['labels'][key]} {area[key, MIDDLE]:.3f}" for key in methods)
    worst = max(rate for _, rate in area)
    most = max(area[key, worst] for key in methods)
    return wrapped(_IMAGES.format(rate=f"{100 * MIDDLE:g}", told=told, worst=f"{100 * worst:g}", most=f"{most:.3f}"))


def failing(sets: Row) -> str:
    """What pair flips do to the best loss."""
    texts = []
    for name, found in sets.items():
        flips, even = (found["laws"][law]["losses"] for law in ("pair flip 40 %", "symmetric 40 %"))
        best = _best(flips)
        flagged = [100 * _mean(losses, best, measure="precision") for losses in (flips, even)]
        texts.append(
            f"on {name} the best loss, {NAMES[best]}, reaches an AUC of {_mean(flips, best):.4f} with pair flips and "
            f"{_mean(even, best):.4f} with symmetric noise of the same rate; flagging as many rows as are wrong, "
            f"{flagged[0]:.0f} % of them are, instead of {flagged[1]:.0f} %"
        )
    return textwrap.indent(wrapped(f"In the record, {'. And '.join(texts)}.", 123), "  ")


def share(sets: Row) -> str:
    """How far disagreement is above the true share."""
    gaps = {}
    for name, found in sets.items():
        gaps[name] = [
            100 * (1 - agreement - draw["wrong"])
            for case in found["laws"].values()
            for agreement, draw in zip(case["losses"]["gce"]["agreement"], case["noise"], strict=True)
        ]
    told = " and ".join(f"{min(gap):.0f} to {max(gap):.0f} points on {name}" for name, gap in gaps.items())
    return f"In the record that share is above the true one by {told} (GCE)."


_HOW = """# Finding wrong labels

Given labels, and a model that was trained on them: which labels should a person look at again? Rows are ranked by how far
the model puts another class above the given one. The list is for looking at; nothing is relabelled by itself.

## From a CSV file

    linearcore suspects pets.csv --label kind --out ranked.csv

prints the most suspicious rows with their line, given label and suggested label, and writes the whole file, every row in
its place, with `suspicion_rank`, `suspicion` and `suggested_label` added. The suggested label is the given one where the
networks agree with it, here, in the table and in JSON, so that the rows in which the two differ are those for which another
label is preferred. A name that ends in `.gz`, `.xz` or `.bz2` packs the file.

Small networks are trained in five folds, so that every row is scored by one that did not see it; that takes a second for
2,000 rows and ten for 20,000. Columns of numbers are normalised, columns of words become categories, and anything else is
refused with its line: a missing value, a word among numbers, a decimal comma, a row that is too short. `--loss lc` takes
another loss, `--json` prints for a program, `--help` shows the rest. In Python:

```python
import csv
import torch
from linearcore.cleaning import find_wrong_labels, read_table

stream = torch.Generator().manual_seed(0)
with open("pets.csv", "w", newline="") as file:  # a small file in place of yours
    rows = csv.writer(file)
    rows.writerow(["weight", "height", "coat", "kind"])
    for number in range(200):
        dog = number % 2
        weight, height = (torch.randn(2, generator=stream) + 4 * dog).tolist()
        rows.writerow([weight, height, "long" if number % 3 else "short", "dog" if dog and number != 41 else "cat"])

found = find_wrong_labels(read_table("pets.csv"), "kind")
for suspect in found.most_suspicious(3):
    print(suspect)
assert found.most_suspicious(1)[0].line == 43  # row 41, counted from 0, below the header
found.write("ranked.csv")
```

## From features and labels, or from scores

`out_of_fold_scores` trains the same networks on tensors or arrays. If you have scores of your own, from a model of any
kind that did not see the rows, begin with `suspects`: it takes logits or log-probabilities, (N, C), and −inf is a class
that is not there.

```python
from linearcore.cleaning import flagging_auc, flagging_precision, out_of_fold_scores, suspects
from linearcore.noise import symmetric

clean = torch.arange(600) % 3
features = 3 * torch.eye(3)[clean] + torch.randn(600, 3, generator=stream)
labels = symmetric(clean, 0.2, num_classes=3, seed=0).labels

scores = out_of_fold_scores(features, labels, num_classes=3).scores  # loss="lc" or a function of yours: another loss
ranked = suspects(scores, labels)  # measure="log_odds" is another measure
look_at = ranked.order[:20]  # the most suspicious first
print(labels[look_at], ranked.suggested[look_at], ranked.suspicion[look_at])
keep = ~ranked.flag(fraction=0.1)  # or count=60
print("AUC", flagging_auc(ranked.suspicion, labels != clean))
print("precision", flagging_precision(ranked.suspicion, labels != clean))
assert (labels == clean)[keep].float().mean() > (labels == clean).float().mean()
```

`flagging_auc` and `flagging_precision` judge a ranking where the truth is known: the chance that a wrong label ranks above a
right one, and the share of wrong labels among the first w rows if w are wrong.

## From a training run of your own

Losses row by row, which `reduction="none"` gives, are a measure, too; their mean over epochs is a usual one. The model
sees the rows that it judges, so stop early: [what that costs](#rows-that-the-model-has-seen).

```python
import linearcore as lc

model = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
criterion, optimizer = lc.LinearCoreLoss(reduction="none"), torch.optim.Adam(model.parameters(), 0.01)
total = torch.zeros(600)
for epoch in range(20):
    losses = criterion(model(features), labels)
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    total += losses.detach()
ranked = suspects(model(features), labels, measure=total / 20)
assert flagging_auc(ranked.suspicion, labels != clean) > 0.8
```"""

_EXPECT = """## What to expect

Labels of two sets were made wrong by [a stated law](label-noise.md), and the AUC of finding them measured. ½ is chance."""

_MEASURES = """p is the softmax of the scores. The log-odds have the order of 1 − p_y, which the package cleanlab calls
self-confidence, and the order of the losses CE, GCE and LC logodds, but for rounding; "margin of p" is its normalised
margin. Precision is the share of wrong labels among the first w rows, w being the true number of wrong ones."""

_IMAGES = """On images settings matter more than here. A ResNet-18 on CIFAR-10 with {rate} % of wrong labels by instance,
each image scored by the network that learned it, after the last epoch of `linearcore reproduce noise`, AUC by margin:
{told}. With {worst} % nothing is found, {most} at most, since the likeliest label is often a wrong one there
([more](noisy-images.md#finding-the-wrong-ones))."""

_FAILS = """## When it fails

- **Wrong in the same way.** If most labels of a kind of row are wrong in the same direction, the model learns that as the
  truth and finds the right ones suspicious. Pair flips are half way there: a wrong label has all the company it needs."""

_OTHER_FAULTS = """- **Columns that say little.** Then the model errs more often than the labels do, and unusual rows
  come first. The command says so where its networks are hardly better than always naming the most frequent label.
- **Twins.** A row that is twice in the table with the same wrong label may be scored by a network that saw its twin.
  Take copies out first.
- **A small class.** One with few rows is hardly learned, and its rows look wrong together. A label of a single row is
  named by the command, since it is often misspelt."""

_SHARE = """## How many are wrong

No number is offered. The share of rows for which another label is preferred counts the model's own mistakes as wrong
labels. Look from the top, and stop where most labels are right."""
