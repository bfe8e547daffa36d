"""Consistency analysis: computes and certifies the guarantees of a loss.

All functions take the arguments (surrogate, form, …) in this order. The name of a form means its default instance, so
"pairwise" and "centered" are means over competitors. The paper's bounds are for sums: `Pairwise(normalize=False)`.
"""

from linearcore.analysis._certificate import Certificate, Finding
from linearcore.analysis._certify import certify
from linearcore.analysis._counterexample import Counterexample, counterexample
from linearcore.analysis._fenchel_young import FenchelYoungPoint, fenchel_young_loss, fenchel_young_point
from linearcore.analysis._fenchel_young_regret import fenchel_young_regret_ratio
from linearcore.analysis._gaps import MinimizabilityGap, minimizability_gap, zero_one_gap
from linearcore.analysis._minimum import Minimum, NotSolvedError, conditional_risk, minimal_risk
from linearcore.analysis._noise_condition import NoiseCondition
from linearcore.analysis._problem import STRUCTURED_FORMS, Local, Problem, named_form
from linearcore.analysis._rate import Rate, rate
from linearcore.analysis._regret import RegretRatio, regret_ratio
from linearcore.analysis._sample_bound import sample_bound
from linearcore.analysis._sample_report import Interval, SampleBound
from linearcore.analysis._transform import transform
from linearcore.analysis._worst_case import WorstCase

__all__ = [
    "STRUCTURED_FORMS",
    "Certificate",
    "Counterexample",
    "FenchelYoungPoint",
    "Finding",
    "Interval",
    "Local",
    "MinimizabilityGap",
    "Minimum",
    "NoiseCondition",
    "NotSolvedError",
    "Problem",
    "Rate",
    "RegretRatio",
    "SampleBound",
    "WorstCase",
    "certify",
    "conditional_risk",
    "counterexample",
    "fenchel_young_loss",
    "fenchel_young_point",
    "fenchel_young_regret_ratio",
    "minimal_risk",
    "minimizability_gap",
    "named_form",
    "rate",
    "regret_ratio",
    "sample_bound",
    "transform",
    "zero_one_gap",
]
