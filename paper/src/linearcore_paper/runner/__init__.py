"""Experiments and their runner: runs the parts that are not finished yet, in one process or in several."""

from linearcore_paper.runner._experiment import (
    VERDICTS,
    After,
    Claim,
    Experiment,
    Outcome,
    Part,
    PartFunction,
    RecordedRun,
    Settings,
    Verdict,
    verdict,
)
from linearcore_paper.runner._job import Job, make_writable, prepare
from linearcore_paper.runner._records import ResultsFile, results_folder
from linearcore_paper.runner._run import RunStatus, run_experiment
from linearcore_paper.runner._workers import WorkerDiedError

__all__ = [
    "VERDICTS",
    "After",
    "Claim",
    "Experiment",
    "Job",
    "Outcome",
    "Part",
    "PartFunction",
    "RecordedRun",
    "ResultsFile",
    "RunStatus",
    "Settings",
    "Verdict",
    "WorkerDiedError",
    "make_writable",
    "prepare",
    "results_folder",
    "run_experiment",
    "verdict",
]
