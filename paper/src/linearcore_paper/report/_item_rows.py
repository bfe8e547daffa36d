"""The rows of the table of all items: verdicts and numbers from the records of the experiments."""

from collections.abc import Iterable
from dataclasses import dataclass

from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.report._results import Experiment, Tally, tally
from linearcore_paper.report.items import ITEMS, Item
from linearcore_paper.runner import Claim


@dataclass(frozen=True)
class ItemRow:
    """A row of the table.

    Attributes:
        item: the item.
        tally: verdicts of its claims; empty if no experiment for it exists yet.
        number: our result for the first claim.
        command: the command that computes it; "" if no experiment exists yet.
        section: id of the section with more.
        corrections: letters of corrections.
        is_small: whether a verdict comes from a run at smoke scale.
    """

    item: Item
    tally: Tally
    number: str
    command: str
    section: str
    corrections: tuple[str, ...]
    is_small: bool


def item_rows(experiments: Iterable[Experiment]) -> tuple[ItemRow, ...]:
    """Returns a row for each item, in the order of the paper."""
    by_name = {experiment.entry.name: experiment for experiment in experiments}
    return tuple(_row(item, by_name) for item in ITEMS)


def _row(item: Item, by_name: dict[str, Experiment]) -> ItemRow:
    used = [by_name[name] for name in dict.fromkeys(name for name, _ in item.checks)]
    claims = [claim for name, fragment in item.checks for claim in matching(by_name[name], fragment)]
    letters = {*item.corrections, *(claim.correction for claim in claims if claim.correction)}
    names = [experiment.entry.name for experiment in used if experiment.entry.name in EXPERIMENTS]
    scale = "smoke" if any(experiment.scale == "smoke" for experiment in used) else "paper"
    return ItemRow(
        item,
        tally(claims) if claims or not names else (("not run", 1),),
        claims[0].ours if claims else "",
        f"linearcore reproduce {' '.join(names)} --scale {scale}" if names else "",
        used[0].entry.name,
        tuple(sorted(letters)),
        scale == "smoke",
    )


def matching(experiment: Experiment, fragment: str) -> list[Claim]:
    """Returns the claims of the paper whose text contains `fragment`."""
    return [claim for claim in experiment.claims_of(ours=False) if fragment in claim.claim]
