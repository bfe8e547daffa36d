"""What an experiment is, and how it is run: part by part, keeping what is finished, in one process or in several."""

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
from linearcore_paper.runner._run import Finished, run_experiment
from linearcore_paper.runner._workers import DeadWorkerError

__all__ = [
    "VERDICTS",
    "After",
    "Claim",
    "DeadWorkerError",
    "Experiment",
    "Finished",
    "Job",
    "Outcome",
    "Part",
    "PartFunction",
    "RecordedRun",
    "ResultsFile",
    "Settings",
    "Verdict",
    "make_writable",
    "prepare",
    "results_folder",
    "run_experiment",
    "verdict",
]
