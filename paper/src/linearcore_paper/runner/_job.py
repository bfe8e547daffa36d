"""An experiment that was asked for, checked before the work and not after it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linearcore.runtime import complaint
from linearcore_paper.runner._experiment import Experiment, Part, Settings
from linearcore_paper.runner._selection import check_parts, matching


@dataclass(frozen=True)
class Job:
    """An experiment that is ready to run, made by `prepare`.

    Attributes:
        experiment: what to run.
        settings: with what.
        out: the folder of all experiments.
        parts: all parts of the experiment.
        chosen: names of those that were asked for.
    """

    experiment: Experiment
    settings: Settings
    out: Path
    parts: Mapping[str, Part]
    chosen: frozenset[str]

    @property
    def command(self) -> str:
        """What does the experiment, without the reader's own folders."""
        told = self.settings
        return f"linearcore reproduce {self.experiment.name} --scale {told.scale} --seed {told.seed}"

    @property
    def parts_folder(self) -> Path:
        """Where the files of its parts lie."""
        return self.out / self.experiment.name / "parts"

    def takes_days(self, fresh: bool) -> bool:
        """Whether there is work for a GPU to do, and none is asked for; with `fresh` there always is."""
        is_slow = self.experiment.wants_gpu and self.settings.is_paper and self.settings.device == "cpu"
        return is_slow and (fresh or not all((self.parts_folder / f"{name}.json").is_file() for name in self.chosen))


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
            parts cannot be done.
    """
    jobs = []
    for experiment in experiments:
        parts = _parts(experiment, settings)
        check_parts(parts)
        jobs.append(Job(experiment, settings, out, parts, frozenset(matching(parts, only))))
    names = [name for job in jobs for name in job.parts]
    for glob in only:
        if not matching(names, [glob]):
            advice = f"parts are {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"
            raise ValueError(complaint("--parts", "match a part", repr(glob), advice))
    for job in jobs:
        make_writable(job.parts_folder)
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
