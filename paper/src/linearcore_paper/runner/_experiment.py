"""The interface of an experiment: parts that run separately, and a conclusion that checks the paper's claims.

An experiment neither prints nor writes files. Its results are JSON values, so its figure and the report can be made from the
results file alone.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from linearcore.runtime import complaint, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["holds", "holds with a correction", "does not hold", "not judged", "not run"]
VERDICTS: tuple[Verdict, ...] = ("holds", "holds with a correction", "does not hold", "not judged", "not run")
SCALES = ("smoke", "paper")
#: Values of `Claim.paper` for claims that the paper does not make.
NOT_IN_PAPER = ("not in the paper", "not timed")

#: Function that runs a part and returns its result as JSON values.
PartFunction = Callable[[], Any]


@dataclass(frozen=True)
class RecordedRun:
    """A part whose record can be committed, for example hours of training on a GPU.

    A finished part is reused if settings and seed are equal, even if the source or torch has changed since. `settings` must
    therefore contain everything that determines the result; `linearcore reproduce --fresh` runs the part again. For parts
    that take minutes use a plain function, which runs again after any change of the source.

    Args:
        settings: everything that determines the result, as JSON values: sizes, rates, the data hash, and a version number
            to increment if the code changes the result. No file paths, because they depend on the machine.
        seed: random seed.
        compute: function that runs the part and returns JSON values. It may run in a worker process, which makes it again.
        alone: run no other part at the same time, for example for timing.

    Raises:
        TypeError: if a setting is not a JSON value.
        ValueError: if a number in `settings` is not finite.
    """

    settings: dict[str, Any]
    seed: int
    compute: PartFunction
    alone: bool = False

    def __post_init__(self) -> None:
        try:
            json.dumps(self.settings, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise type(error)(complaint("settings", "be JSON values", error, "convert them, and leave out NaN")) from None


@dataclass(frozen=True)
class After:
    """A run whose settings depend on the results of other parts, for example on a tuned learning rate.

    Args:
        needs: names of the parts whose results `make` uses.
        make: function from the results of those parts, by name, to the run. It must be fast: every process calls it.
    """

    needs: tuple[str, ...]
    make: Callable[[dict[str, Any]], RecordedRun]


#: A part of an experiment.
Part = PartFunction | RecordedRun | After


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Args:
        scale: "smoke" (small but shows every effect) or "paper" (the size in the paper).
        seed: the first seed; 0 ≤ seed < 2**31.
        device: torch device for training.
        data: folder with the datasets, for experiments that need one.

    Raises:
        ValueError: if `scale` is unknown or `seed` is out of range.
    """

    scale: str = "smoke"
    seed: int = 0
    device: str = "cpu"
    data: Path | None = None

    def __post_init__(self) -> None:
        one_of("scale", self.scale, SCALES)
        if not 0 <= self.seed < 2**31:
            raise ValueError(complaint("seed", "be a non-negative integer below 2**31", self.seed, "pass 0, for example"))

    @property
    def is_paper(self) -> bool:
        """Whether `scale` is "paper"."""
        return self.scale == "paper"


@dataclass(frozen=True)
class Claim:
    """One claim with our result.

    Args:
        claim: the claim in our words.
        paper: the paper's result; one of `NOT_IN_PAPER` for a claim of our own.
        ours: our result.
        verdict: one of `VERDICTS`.
        correction: letter in `docs/reading-the-paper-with-care.md` that explains a difference, or None.
    """

    claim: str
    paper: str
    ours: str
    verdict: Verdict
    correction: str | None = None

    def __post_init__(self) -> None:
        one_of("verdict", self.verdict, VERDICTS)

    @property
    def is_ours(self) -> bool:
        """Whether the claim is our own: the paper says nothing about it."""
        return self.paper in NOT_IN_PAPER


@dataclass(frozen=True)
class Outcome:
    """The conclusion of an experiment.

    Args:
        claims: the checked claims.
        data: all numbers of the figure and the table, as JSON values.
        alt: alternative text of the figure.
    """

    claims: list[Claim]
    data: dict[str, Any]
    alt: str

    def as_json(self) -> dict[str, Any]:
        """Returns the conclusion as JSON values."""
        return {"alt": self.alt, "claims": [asdict(claim) for claim in self.claims], "data": self.data}


@dataclass(frozen=True)
class Experiment:
    """An experiment of `linearcore reproduce`.

    Args:
        name: name in the command line, lower case with hyphens; its folder is `experiments/<name with underscores>`.
        title: heading in the report.
        question: the question that it answers, as a sentence.
        shows: one-line summary.
        paper: place in the paper, for example "Figure 2, section 3.4".
        needs: requirements other than linearcore-paper; "nothing" if there are none.
        cost: run time on two cores, for each scale.
        parts: function from Settings to the parts by name, in order. An interrupted run loses the part that was running, so
            make parts small. Names have letters, digits, `.`, `-` and `_`. Use a module-level function, not a lambda,
            because worker processes import it.
        conclude: function from the results of all parts by name, and Settings, to an Outcome. It must be fast.
        draw: function from `Outcome.data` to the figure; it computes nothing.
        needs_gpu: whether scale "paper" takes days on a CPU.
    """

    name: str
    title: str
    question: str
    shows: str
    paper: str
    needs: str
    cost: Mapping[str, str]
    parts: Callable[[Settings], Mapping[str, Part]]
    conclude: Callable[[dict[str, Any], Settings], Outcome]
    draw: "Callable[[dict[str, Any]], Figure]"
    needs_gpu: bool = False


def verdict(holds: bool, correction: str | None = None) -> Verdict:
    """Returns the verdict on a checked claim; with a correction, `holds` refers to the corrected claim."""
    if not holds:
        return "does not hold"
    return "holds" if correction is None else "holds with a correction"
