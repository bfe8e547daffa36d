"""The experiments by name, in the order in which the paper tells them. A new one is one file and one line here."""

from linearcore_paper.experiments import (
    convergence,
    counterexample,
    gradient_histogram,
    gradients,
    noise,
    optimization,
    rates,
    scalability,
    surfaces,
    surrogates,
    tagging,
    thresholds,
    vanishing_core,
    variance,
)
from linearcore_paper.runner import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        surrogates,
        rates,
        thresholds,
        vanishing_core,
        surfaces,
        gradients,
        counterexample,
        noise,
        gradient_histogram,
        optimization,
        convergence,
        scalability,
        tagging,
        variance,
    )
}

__all__ = ["EXPERIMENTS"]
