"""All experiments by name, in the order of the paper. To add one, add its folder and one line here."""

from importlib import import_module

from linearcore_paper.runner import Experiment

_FOLDERS = (
    "surrogates",
    "statements",
    "rates",
    "thresholds",
    "vanishing_core",
    "noise_conditions",
    "surfaces",
    "gradients",
    "counterexample",
    "noise",
    "gradient_histogram",
    "optimization",
    "optimization_rates",
    "convergence",
    "scalability",
    "tagging",
    "variance",
    "ngram",
)

_EXPERIMENTS: tuple[Experiment, ...] = tuple(import_module(f"{__name__}.{folder}").EXPERIMENT for folder in _FOLDERS)
EXPERIMENTS = {experiment.name: experiment for experiment in _EXPERIMENTS}

__all__ = ["EXPERIMENTS"]
