"""An experiment that was asked for, checked before the work and not after it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from linearcore.runtime import complaint
from linearcore_paper.runner._experiment import After, Experiment, Part, Settings
from linearcore_paper.runner._records import ResultsFile

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Job:
    """An experiment that is ready to run, made by `prepare`.

    Attributes:
        experiment: what to run.
        settings: with what.
        out: the folder of all experiments.
        file: what is finished of this one.
        parts: all parts of the experiment.
        chosen: names of those that were asked for.
    """

    experiment: Experiment
    settings: Settings
    out: Path
    file: ResultsFile
    parts: Mapping[str, Part]
    chosen: frozenset[str]

    @property
    def command(self) -> str:
        """What does the experiment, without the reader's own folders."""
        told = self.settings
        return f"linearcore reproduce {self.experiment.name} --scale {told.scale} --seed {told.seed}"

    def takes_days(self, fresh: bool) -> bool:
        """Whether there is work for a GPU to do, and none is asked for; with `fresh` there always is."""
        is_slow = self.experiment.wants_gpu and self.settings.is_paper and self.settings.device == "cpu"
        return is_slow and (fresh or not self.chosen <= self.file.parts.keys())


def prepare(experiments: Sequence[Experiment], settings: Settings, out: Path, only: Sequence[str] = ()) -> list[Job]:
    """Makes the experiments' folders and parts, and finds out before the work whether something is wrong with them.

    Args:
        experiments: what to run.
        settings: with what.
        out: a folder, made if it is not there.
        only: globs of the parts to do; none means all.

    Raises:
        OSError: if a folder cannot be made or written to.
        ValueError: if a glob matches no part of any of the experiments, or an experiment cannot read its data, or its
            parts cannot be done, or its results file is damaged.
    """
    jobs = []
    for experiment in experiments:
        parts = _parts(experiment, settings)
        check_parts(parts)
        file = ResultsFile(out, experiment.name)
        jobs.append(Job(experiment, settings, out, file, parts, frozenset(matching(parts, only))))
    names = [name for job in jobs for name in job.parts]
    for glob in only:
        if not matching(names, [glob]):
            advice = f"parts are {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"
            raise ValueError(complaint("--parts", "match a part", repr(glob), advice))
    for job in jobs:
        make_writable(job.file.path.parent)
        job.file.convert_old_files()
    return jobs


def make_writable(folder: Path) -> None:
    """Makes the folder and writes to it, so that a bad one is found before the work and not after it.

    Raises:
        OSError: if it cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / ".linearcore-probe"
    probe.touch()
    probe.unlink()


def _parts(experiment: Experiment, settings: Settings) -> Mapping[str, Part]:
    try:
        return experiment.parts(settings)
    except OSError as error:
        # Not to be mistaken for a folder that cannot be written to.
        what = f"{error.filename}: {error.strerror}" if error.filename else f"its data: {error}"
        raise ValueError(f"{experiment.name} cannot read {what}; name the folder of its data with --data") from error


def check_parts(parts: Mapping[str, Part]) -> None:
    """Finds what would stop an experiment halfway: a name that `--parts` cannot match, parts that wait for each other.

    Raises:
        ValueError: if there is such a part.
    """
    for name in parts:
        if not _NAME.fullmatch(name):
            must = "be letters, digits, `.`, `-` and `_`, and not begin with `.`"
            raise ValueError(complaint("part", must, repr(name), "rename it"))
    there: set[str] = set()
    while len(there) < len(parts):
        next_ones = [name for name in parts if name not in there and there.issuperset(needs_of(parts[name]))]
        if not next_ones:
            waiting = {name: list(needs_of(part)) for name, part in parts.items() if name not in there}
            raise ValueError(complaint("needs", "name parts that can be done before", waiting, "mend the experiment"))
        there.update(next_ones)


def matching(parts: Iterable[str], globs: Sequence[str]) -> set[str]:
    """The names that match one of the globs; without globs all."""
    return {name for name in parts if not globs or any(fnmatchcase(name, glob) for glob in globs)}


def with_needs(parts: Mapping[str, Part], names: Iterable[str]) -> set[str]:
    """The names, and those of all parts that they need."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(needs_of(parts[name]))
    return found


def needs_of(part: Part) -> tuple[str, ...]:
    """Names of the parts whose results a part looks at."""
    return part.needs if isinstance(part, After) else ()
