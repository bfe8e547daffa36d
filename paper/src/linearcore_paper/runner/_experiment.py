"""What an experiment is: parts that can be done one by one, and a conclusion that weighs the paper's claims.

An experiment computes and judges; it neither prints nor writes. What it computes is plain JSON values, so that its figure
or a page can be made years later from the file alone.
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

#: A piece of work and its result as JSON values.
PartFunction = Callable[[], Any]


@dataclass(frozen=True)
class RecordedRun:
    """A part that is worth committing: hours of a GPU, kept as a record with settings, seed and environment.

    It is found again whenever settings and seed are equal, whatever has become of the source or of torch since: no one
    should need a GPU because a docstring has changed, and the record says what made it. What decides the result must
    therefore stand in `settings`, and `linearcore reproduce --fresh` does it anew. A plain function suits what takes
    minutes: it is done again after any change of source.

    Args:
        settings: everything that decides the result, as JSON values: sizes, rates, the hash of the data, and the number of
            a recipe if its code changes what comes out. Not where files lie, since the record is for everyone.
        seed: of all that it draws.
        compute: does it and gives the result as JSON values. It may run in another process, where it is built again.
        alone: whether nothing else may run beside it, as for a timing.

    Raises:
        TypeError: if something in the settings is no JSON value.
        ValueError: if a number in them is not finite.
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
    """A run whose settings depend on the results of others, as on the learning rate that was tuned.

    Args:
        needs: names of the parts whose results it looks at.
        make: results of those parts by name ↦ the run. Quick, since it is done every time, and in every process.
    """

    needs: tuple[str, ...]
    make: Callable[[dict[str, Any]], RecordedRun]


#: What an experiment consists of.
Part = PartFunction | RecordedRun | After


@dataclass(frozen=True)
class Settings:
    """What decides an experiment's numbers.

    Args:
        scale: "smoke", large enough to see every effect, or "paper", the paper's own size.
        seed: the first seed; 0 ≤ seed < 2**31.
        device: where experiments that train do so, in torch's words.
        data: folder with the data sets, for experiments that need one.

    Raises:
        ValueError: if one of them is out of range.
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
        """Whether the paper's own size is asked for."""
        return self.scale == "paper"


@dataclass(frozen=True)
class Claim:
    """One statement of the paper beside what was found.

    Args:
        claim: what the paper says, in our words.
        paper: its number or word.
        ours: our number or word.
        verdict: one of `VERDICTS`.
        correction: the letter of `docs/reading-the-paper-with-care.md` that explains a difference, or None.
    """

    claim: str
    paper: str
    ours: str
    verdict: Verdict
    correction: str | None = None

    def __post_init__(self) -> None:
        one_of("verdict", self.verdict, VERDICTS)


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Args:
        claims: the verdicts.
        data: everything that its figure and its table show, as JSON values.
        alt: the figure in words, for readers who do not see it.
    """

    claims: list[Claim]
    data: dict[str, Any]
    alt: str

    def as_json(self) -> dict[str, Any]:
        """JSON values for a record."""
        return {"alt": self.alt, "claims": [asdict(claim) for claim in self.claims], "data": self.data}


@dataclass(frozen=True)
class Experiment:
    """An experiment, known to the command line by its name.

    Args:
        name: lower case, words joined by hyphens; its folder is `experiments/<name with underscores>`.
        title: its heading on the page.
        question: what it asks, in a sentence.
        shows: one line on what it shows.
        paper: where in the paper it belongs, for example "Figure 2, section 3.4".
        needs: what it needs beyond linearcore-paper; "nothing" if that is all.
        cost: for each scale, how long it takes on two cores.
        parts: Settings ↦ named pieces of work, in order. A finished piece is kept and not done again, so a piece should be
            as large as one would mind losing. The name is also that of its file: letters, digits, `.`, `-` and `_`. A
            function of a module, not a lambda, since other processes look it up there.
        conclude: results of all parts by name, and Settings ↦ Outcome. Quick, since it is done every time.
        draw: `Outcome.data` ↦ the figure; it computes nothing.
        wants_gpu: whether the paper's size takes days without one.
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
    wants_gpu: bool = False


def verdict(holds: bool, correction: str | None = None) -> Verdict:
    """The verdict on a claim that was checked: with a correction, what holds is the corrected claim."""
    if not holds:
        return "does not hold"
    return "holds" if correction is None else "holds with a correction"
