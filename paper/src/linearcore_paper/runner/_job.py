"""Prepares experiments: checks parts, data and folders before anything runs."""

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
        experiment: the experiment.
        settings: its settings.
        out: folder of all experiments.
        file: results file of this experiment.
        parts: all parts of the experiment.
        selected: names of the parts to run.
    """

    experiment: Experiment
    settings: Settings
    out: Path
    file: ResultsFile
    parts: Mapping[str, Part]
    selected: frozenset[str]

    @property
    def command(self) -> str:
        """The command that runs the experiment, without folders."""
        return f"linearcore reproduce {self.experiment.name} --scale {self.settings.scale} --seed {self.settings.seed}"

    def takes_days(self, fresh: bool) -> bool:
        """Whether parts that need a GPU would run on the CPU; `fresh` runs finished parts again."""
        is_slow = self.experiment.needs_gpu and self.settings.is_paper and self.settings.device == "cpu"
        return is_slow and (fresh or not self.selected <= self.file.parts.keys())


def prepare(experiments: Sequence[Experiment], settings: Settings, out: Path, only: Sequence[str] = ()) -> list[Job]:
    """Creates the folders and parts of experiments and checks them before anything runs.

    Args:
        experiments: the experiments to run.
        settings: their settings.
        out: folder for the results, created if needed.
        only: globs of the parts to run; empty means all.

    Raises:
        OSError: if a folder cannot be created or written to.
        ValueError: if a glob matches no part, an experiment cannot read its data, its parts are invalid, or its results
            file is damaged.
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
    """Creates the folder and writes a test file, so that an unusable folder raises before the run.

    Raises:
        OSError: if the folder cannot be created or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / ".linearcore-probe"
    probe.touch()
    probe.unlink()


def _parts(experiment: Experiment, settings: Settings) -> Mapping[str, Part]:
    try:
        return experiment.parts(settings)
    except OSError as error:
        # A ValueError, because OSError means that the output folder cannot be written to.
        reason = f"{error.filename}: {error.strerror}" if error.filename else f"its data: {error}"
        raise ValueError(f"{experiment.name} cannot read {reason}; pass the folder of its data with --data") from error


def check_parts(parts: Mapping[str, Part]) -> None:
    """Checks the names and dependencies of parts.

    Raises:
        ValueError: if a name has other characters than `--parts` can match, or dependencies are circular or unknown.
    """
    for name in parts:
        if not _NAME.fullmatch(name):
            must = "be letters, digits, `.`, `-` and `_`, and not begin with `.`"
            raise ValueError(complaint("part", must, repr(name), "rename it"))
    finished: set[str] = set()
    while len(finished) < len(parts):
        ready = [name for name in parts if name not in finished and finished.issuperset(dependencies(parts[name]))]
        if not ready:
            blocked = {name: list(dependencies(part)) for name, part in parts.items() if name not in finished}
            raise ValueError(complaint("needs", "name parts that can run before", blocked, "correct the experiment"))
        finished.update(ready)


def matching(parts: Iterable[str], globs: Sequence[str]) -> set[str]:
    """Returns the names that match one of the globs, or all names if there are no globs."""
    return {name for name in parts if not globs or any(fnmatchcase(name, glob) for glob in globs)}


def with_dependencies(parts: Mapping[str, Part], names: Iterable[str]) -> set[str]:
    """Returns the names and those of all parts that they depend on."""
    required: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in required:
            required.add(name)
            queue.extend(dependencies(parts[name]))
    return required


def dependencies(part: Part) -> tuple[str, ...]:
    """Returns the names of the parts whose results a part uses."""
    return part.needs if isinstance(part, After) else ()
