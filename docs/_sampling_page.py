"""docs/sampling.md: what to take when candidates are sampled, said with the figures of the records and nothing else."""

import math
from typing import Any

from _estimators_section import estimators_section
from _tables import RESULTS, figure, source, table

from linearcore.runtime import read_record

#: Points from all candidates that count as near, and as far.
NEAR, FAR = 0.5, 5.0
SETS = ("turkish", "chains")

Row = dict[str, Any]


def page() -> str:
    """The whole page."""
    records = {name: read_record(path) for name in SETS if (path := RESULTS / f"proposals_{name}.json").is_file()}
    cases = [Case(name, record) for record in records.values() for name in record["results"]["sets"]]
    parts = [_HEAD, advice(cases), _CODE]
    if cases:
        parts += [_TABLES, *(case.section() for case in cases)]
    parts += [*estimators_section(), left_out(cases)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


class Case:
    """One set of a record of `benchmarks/proposals.py`."""

    def __init__(self, name: str, record: dict[str, Any]) -> None:
        self.record, self.found = record, record["results"]["sets"][name]
        self.name = name.capitalize() if "tags" in name else f"{name.capitalize()}, {self.found['num_tags']:,} tags"
        self.seconds, self.seeds = record["settings"]["sizes"][name]["seconds"], record["settings"]["seeds"]
        self.rows: list[Row] = self.found["methods"]
        self.all = next(row for row in self.rows if row["loss"] == "all" and row["form"] == "logodds")
        self.sampled = [row for row in self.rows if row["loss"] == "sampled" and row["form"] == "logodds"]
        self.shared = [row for row in self.sampled if row["shared"]]
        #: Chosen on dev, told of on test.
        self.best = min(self.sampled, key=lambda row: row["dev"])

    def row(self, **wanted: object) -> Row | None:
        """The first row with these entries."""
        return next((row for row in self.rows if all(row[key] == value for key, value in wanted.items())), None)

    def against(self, row: Row, other: Row) -> str:
        """How far `row` is from `other`, and whether that is more than two standard errors of the seeds."""
        points, spreads = row["test"] - other["test"], (row["spread"], other["spread"])
        if None in spreads:
            return f"{points:+.2f} points"
        error = math.hypot(*spreads) / math.sqrt(self.seeds)
        verdict = "level within noise" if abs(points) <= 2 * error else "better" if points < 0 else "worse"
        return f"{points:+.2f} ± {2 * error:.2f} points, {verdict}"

    # ---- sentences ----

    def take(self) -> str:
        """All candidates or sampled."""
        token = self.row(loss="token")
        assert token is not None
        steps = self.best["steps"] / self.all["steps"]
        return (
            f"{self.name}, {self.seconds:g} s: all candidates err at {self.all['test']:.2f} %, token cross-entropy at "
            f"{token['test']:.2f} %; the sampled way that was best on dev, *{self.best['method']}*, at "
            f"{self.best['test']:.2f} % ({self.against(self.best, self.all)}) in {steps:.1f} times as many steps"
        )

    def proposals(self) -> str:
        """Which come near, which is best for each number of draws, and what uniform draws lose."""
        near = [row["method"] for row in self.sampled if row["test"] - self.all["test"] <= NEAR]
        uniform = [row for row in self.shared if row["draws"] == "uniform"]
        losses = ", ".join(f"{row['test'] - self.all['test']:+.1f} with K = {row['samples']}" for row in uniform)
        text = (
            f"{self.name}: within {NEAR:g} points of all candidates are {_listed(near)}"
            if near
            else (f"{self.name}: no sampled way is within {NEAR:g} points of all candidates")
        )
        sizes = sorted({row["samples"] for row in self.shared})
        best = [min((row for row in self.shared if row["samples"] == size), key=lambda row: row["dev"]) for size in sizes]
        told = ", ".join(f"*{row['method']}* ({row['test']:.2f} % on test)" for row in best)
        text += f"; the best on dev for each K are {told}"
        return f"{text}; uniform draws are off by {losses} points" if losses else text

    def draws(self) -> str:
        """How the number of draws matters, for the proposal that was best."""
        rows = [row for row in self.shared if row["draws"] == self.best["draws"]]
        told = ", ".join(f"K = {row['samples']}: {row['test']:.2f} % in {row['steps']:,} steps" for row in rows)
        return f"{self.name}, {self.best['draws']}: {told}"

    def sharing(self) -> str:
        """Own draws beside shared ones."""
        told = []
        for own in (row for row in self.sampled if not row["shared"]):
            shared = self.row(**{key: own[key] for key in ("loss", "form", "draws", "samples")}, shared=True)
            if shared is None:
                continue
            told.append(
                f"{own['draws']}, K = {own['samples']}: {own['test']:.2f} % in {own['steps']:,} steps with own draws, "
                f"{shared['test']:.2f} % in {shared['steps']:,} with shared ones"
            )
        return f"{self.name}, {'; '.join(told)}" if told else ""

    def forms(self) -> str:
        """pairwise beside log-odds."""
        rows = [row for row in self.rows if row["form"] == "pairwise"]
        told = [f"{row['method'].removeprefix('LC ')} {row['test']:.2f} %" for row in rows]
        return f"{self.name}: {', '.join(told)}, where log-odds over all candidates has {self.all['test']:.2f} %"

    def rates(self) -> str:
        """The rates that dev chose."""
        counts: dict[float, int] = {}
        for row in self.sampled:
            counts[row["rate"]] = counts.get(row["rate"], 0) + 1
        told = ", ".join(f"{rate:g} for {count}" for rate, count in sorted(counts.items()))
        return f"{self.name}: {self.all['rate']:g} over all candidates, and of the {len(self.sampled)} sampled ways {told}"

    # ---- tables ----

    def section(self) -> str:
        """Everything that was measured of the set."""
        sizes = sorted({row["samples"] for row in self.shared})
        names = list(dict.fromkeys(row["draws"] for row in self.shared))
        pivot = [
            [
                name,
                *(_cell(self.row(loss="sampled", form="logodds", draws=name, samples=size, shared=True)) for size in sizes),
            ]
            for name in names
        ]
        others = sorted((row for row in self.rows if row not in self.shared), key=lambda row: row["test"])
        rest = [[row["method"], _cell(row), figure(row["rate"], "g")] for row in others]
        facts = {"oracle_error": "decoding with the true parameters errs at {:.2f} %",
                 "unary_error": "without transitions at {:.2f} %",
                 "tags_of_all_parts": "{:,} tags in all parts together",
                 "test_tokens_of_unknown_tags": "{} test tokens with a tag that training has not"}  # fmt: skip
        told = [text.format(self.found[key]) for key, text in facts.items() if key in self.found]
        return "\n\n".join(
            [
                f"### {self.name}",
                f"{self.seconds:g} s of training a run, {self.seeds} seeds; {', '.join(told)}. {source(self.record)}",
                table(["shared draws, log-odds", *(f"K = {size}" for size in sizes)], pivot),
                table(["everything else", "test error, %, and steps", "rate"], rest),
            ]
        )


def _cell(row: Row | None) -> str:
    if row is None:
        return "–"
    spread = "" if row["spread"] is None else f" ± {row['spread']:.2f}"
    return f"{row['test']:.2f}{spread}, {row['steps']:,} steps"


def _listed(names: list[str]) -> str:
    return ", ".join(f"*{name}*" for name in names)


def advice(cases: list[Case]) -> str:
    """What to take, each with what was measured of it."""
    items = [
        (_WHEN, [growth(), *(case.take() for case in cases)]),
        (_WHICH, [case.proposals() for case in cases]),
        (_MANY, [case.draws() for case in cases]),
        (_SHARED, [case.sharing() for case in cases]),
        (_FORM, [case.forms() for case in cases]),
        (_OPTIMISER, [case.rates() for case in cases]),
    ]
    parts = ["## What to take"]
    for text, lines in items:
        told = "\n".join(f"- {line}." for line in lines if line)
        parts += [text, told] if told else [text.removesuffix(":") + "." * text.endswith(":")]
    return "\n\n".join(parts)


def growth() -> str:
    """From how many tags on a sampled step is the shorter one, by the record of whole steps."""
    path = RESULTS / "sampled_cpu.json"
    if not path.is_file():
        return ""
    sizes = read_record(path)["results"]["growth"]
    rows = sorted((int(size), steps) for size, steps in sizes.items() if "LC all candidates, SGD" in steps)
    told = ", ".join(
        f"{size:,} tags: {steps['LC all candidates, SGD']['median_ms'] / steps['LC sampled, SGD']['median_ms']:.2f}"
        for size, steps in rows
    )
    return f"A step over all candidates ÷ a sampled one, one chain of 20 positions ([Measured](measured.md)): {told}"


def left_out(cases: list[Case]) -> str:
    """What did not work by the records, and what was not tried."""
    lines = []
    for case in cases:
        far = [row for row in case.rows if row["test"] - case.all["test"] > FAR]
        told = ", ".join(f"*{row['method']}* +{row['test'] - case.all['test']:.1f}" for row in far)
        lines.append(f"- {case.name}: {told}." if far else f"- {case.name}: nothing.")
    parts = ["## What did not work, and what was left out"]
    if cases:
        parts.append("\n".join([f"More than {FAR:g} points above log-odds over all candidates, in points:", "", *lines]))
    return "\n\n".join([*parts, _LEFT_OUT])


_HEAD = """# Sampling

With very many tags a training step can look at a few candidates instead of all. This page is for choosing them: what to
take when, how near that comes to looking at all, and what the gradients are worth. Every figure comes from a record
under `benchmarks/results/`, and so does every sentence with a figure in it; `python docs/write_measured.py` writes the
page."""

_WHEN = """**All candidates, or sampled?** Looking at all candidates has no bias, no variance and nothing to choose: take
it as long as its step is affordable, O(L·B·|Y|) in time and memory. A sampled step costs the same for any number of
tags, but it has a price of its own for drawing, looking up and sorting sparse gradients: it can only pay where the other
step is the longer one."""

_WHICH = """**Which proposal?** A few competitors make up most of the sum over all. A draw that misses them teaches next to
nothing, however unbiased it is; lists of hard competitors (`HardNegatives`), tags by frequency (`Unigram`) and the tags of
the batch itself (`InBatch`) are ways to look where they may be. `InBatch` needs nothing to be counted or listed
beforehand:"""

_MANY = """**How many draws?** With shared draws, K more candidates are K more columns of one product; they lessen bias
and variance, and lengthen the step. For the proposal that was best on dev:"""

_SHARED = """**Shared or own draws?** Shared ones (the default) are one product for the whole batch, and gradients of K rows;
draws of each site's own are N·K rows to look up and to sort. `HardNegatives` has lists of each site's own in any case, and
pays that price."""

_FORM = """**Which form?** A sampled `pairwise` is unbiased for its own sum, a sampled `logodds` is not for its own. What
either trains to:"""

_OPTIMISER = """**Which optimiser?** With `sparse=True` projection and chain have sparse gradients:
`linearcore.optim.SparseAdamW` (here without decay), torch.optim.SparseAdam or SGD. The network below has dense ones:
torch.optim.Adam as ever. Both take one rate; those of a grid that dev chose:"""

_CODE = """```python
import torch
from torch import nn

import linearcore as lc
from linearcore.optim import SparseAdamW
from linearcore.proposals import InBatch

num_tags = 3000
encoder, layer = nn.Linear(16, 32), nn.Linear(32, num_tags)  # any network, and its last layer
head = lc.LinearCoreChain(num_tags, batch_first=True, rank=16)
dense = torch.optim.Adam(encoder.parameters(), lr=3e-3)
sparse = SparseAdamW([*layer.parameters(), *head.parameters()], lr=3e-3, weight_decay=0.0)

proposal = InBatch()  # or Unigram(counts=…), with how often each tag is in the training data
for _ in range(3):
    inputs, tags = torch.randn(4, 10, 16), torch.randint(num_tags, (4, 10))
    loss = head.sampled_loss(encoder(inputs).relu(), layer, tags, proposal=proposal, num_samples=64, sparse=True)
    loss.backward()
    for optimizer in (dense, sparse):
        optimizer.step()
        optimizer.zero_grad()
```"""

_TABLES = """## Error after a fixed time

One thread a run, and every way has the same seconds; only training counts, lists of hard competitors included. The
learning rate falls to zero over that time. It is the one of a grid that erred least on dev with a seed of its own; a
cell is the mean test error of the other seeds, their standard deviation, and the steps that were made. "hard 16" are 16
listed competitors for every tag beside the K draws; "in batch" (`InBatch`) are the tags of the batch for sure beside K
uniform draws."""

_LEFT_OUT = """Left out, and why:

- `centered`: it needs the mean over all candidates, and `sampled` refuses it.
- `LogUniform`: it stands for frequencies where they are not known; here they are.
- Whole sequences and the CRF on real text: both make a full matrix of transitions, and generated chains show what they
  come to.
- Mixtures of `HardNegatives` with anything: its lists are there for sure, so that there is nothing to mix but the rest."""
