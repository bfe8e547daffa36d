"""Certificates: theorems with their constants, refutations with their evidence, and the printed report."""

import json
import math

import pytest
import torch

from linearcore import Centered, ConvolutionalFenchelYoung, Hinge, LinearCore, Logistic
from linearcore.analysis import Certificate, Local, certify, counterexample, regret_ratio
from linearcore.structures import Hamming, Sequences

SITES = Sequences(2, 2)
THREE_TAGS = {"outputs": Sequences(3, 2), "cost": "hamming", "family": "unary"}
PROVEN = {
    "two classes": (LinearCore(tau=0.5, sides=2), "pairwise", 2, {}, 2.0),
    "two classes, half slope": (ConvolutionalFenchelYoung(), "logodds", 2, {}, 2.0),
    "centered": (LinearCore("gamma", tau=4), Centered(normalize=False), 5, {}, 0.25),
    "centered, mean": (LinearCore(), "centered", 5, {}, 4.0),
    "centered hinge": (Hinge(), Centered(normalize=False), 4, {}, 1.0),
    "structured, free": (LinearCore(tau=2), "structured-centered", None, {"outputs": SITES, "cost": "hamming"}, 0.5),
    "local, unary": (LinearCore(), "local-centered", None, {"outputs": SITES, "cost": "hamming", "family": "unary"}, 0.5),
    "local, unary, mean": (LinearCore(), "local-centered", None, THREE_TAGS, 1.0),
    "local, unary, sum": (LinearCore(), Local(Centered(normalize=False)), None, THREE_TAGS, 0.5),
}


@pytest.mark.parametrize(("surrogate", "form", "classes", "options", "constant"), PROVEN.values(), ids=PROVEN.keys())
def test_theorems(surrogate, form, classes, options, constant: float) -> None:
    found = certify(surrogate, form, classes, **options)
    assert (found.linear_bound.verdict, found.consistent.verdict) == ("proven", "proven")
    assert found.linear_bound.constant == found.worst_case.constant == constant


@pytest.mark.parametrize("name", [name for name in PROVEN if name != "two classes, half slope"])
def test_no_search_contradicts_a_theorem(name: str) -> None:
    """Random distributions never have a ratio below one over the constant."""
    surrogate, form, classes, options, constant = PROVEN[name]
    space = options.get("outputs") or Sequences(classes)
    stream = torch.Generator().manual_seed(1)
    for _ in range(10):
        p = torch.rand(space.size, generator=stream, dtype=torch.float64)
        p = p / p.sum()
        worst = int((p @ space.cost(options.get("cost", "zero-one"))).argmax())
        ratio = regret_ratio(surrogate, form, p, worst, **options).ratio
        assert ratio >= (1 - 1e-9) / constant


def test_refuted_with_evidence_that_can_be_checked_again() -> None:
    found = certify(LinearCore(), "pairwise", 3, starts=60)
    evidence = found.linear_bound.counterexample
    assert found.linear_bound.verdict == "refuted" and evidence is not None
    assert regret_ratio(LinearCore(), "pairwise", evidence.probabilities, evidence.prediction).ratio < 0.05
    assert found.consistent.verdict == "proven"
    worst = found.worst_case
    assert worst is not None and (worst.exponent, worst.source) == (0.5, "search")
    # The constant is attained: 0-1 regret 2δ and surrogate regret ratio · 2δ of the sequence.
    assert worst.constant == pytest.approx(max(evidence.regrets / (evidence.ratios * evidence.regrets) ** 0.5))


def test_curved_surrogates_have_no_linear_bound_for_two_classes_either() -> None:
    found = certify(Logistic(), "logodds", 2, starts=30)
    assert found.linear_bound.verdict == "refuted" and found.worst_case is not None
    # T(t) ≥ t²/2, tight as t → 0.
    assert (found.worst_case.exponent, found.worst_case.source) == (0.5, "computed")
    assert found.worst_case.constant == pytest.approx(math.sqrt(2), abs=1e-6)


def test_the_pairwise_hinge_is_refuted_altogether() -> None:
    found = certify(Hinge(), "pairwise", 3, starts=30)
    assert found.worst_case is None
    assert (found.consistent.verdict, found.linear_bound.verdict) == ("refuted", "refuted")


def test_local_forms_with_transitions_say_that_they_guarantee_nothing() -> None:
    """p(11) = .9, p(22) = .1 can have no local risk and decode 22: each site is right given a true neighbour."""
    found = certify(LinearCore(), "local-logodds", outputs=SITES, cost="hamming", family="chain", starts=60)
    assert found.linear_bound.verdict == "refuted" and found.consistent.verdict == "refuted"


@pytest.mark.parametrize("cost", (Hamming(), Hamming(torch.tensor([1.0, 3.0]))), ids=("hamming", "weighted"))
@pytest.mark.parametrize("form", ("structured-sum", "structured-centered"))
def test_structured_forms_are_consistent_with_every_cost(form: str, cost: Hamming) -> None:
    """The expected similarities, or costs, take the place of p, or 1 − p, in the proof; no search contradicts it."""
    found = certify(Logistic(), form, outputs=SITES, cost=cost, starts=10)
    assert found.consistent.verdict == "proven"
    assert found.linear_bound.counterexample is not None and found.linear_bound.counterexample.ratio > 1e-6


def test_local_forms_without_transitions_are_consistent_for_hamming_cost_only() -> None:
    options = {"outputs": SITES, "family": "unary", "starts": 10}
    assert certify(Logistic(), "local-logodds", cost="hamming", **options).consistent.verdict == "proven"
    weighted = Hamming(torch.tensor([1.0, 3.0]))
    assert certify(Logistic(), "local-logodds", cost=weighted, **options).consistent.verdict == "refuted"


def test_supported_says_how_hard_it_searched() -> None:
    """Nothing is proven of the sum loss of a quartic, and three classes do not refute its consistency."""
    found = certify(LinearCore("quartic"), "pairwise", 3, starts=40)
    assert found.consistent.verdict == "supported"
    assert "searched" in found.consistent.reason


def test_a_narrow_core_is_not_taken_for_none() -> None:
    """Two tags and unary scores are one binary problem a site: proven, however small τ is; and no search says otherwise."""
    options = {"outputs": SITES, "cost": "hamming", "family": "unary"}
    assert certify(LinearCore(tau=1e-5), "local-pairwise", **options).linear_bound.constant == pytest.approx(5e4)
    assert not counterexample(LinearCore(tau=1e-7), "local-pairwise", starts=30, **options).refutes


def test_a_slow_rate_is_seen() -> None:
    """C2 tails come to their rate slowly; the sequence must reach far enough down."""
    assert certify(LinearCore("quartic", sides=2), "centered", 3, starts=200).linear_bound.verdict == "refuted"


def test_an_endless_core_proves_nothing() -> None:
    """The unhinged loss 1 − u has no finite risk to bound anything with."""

    class Unhinged(Hinge):
        core = (-math.inf, math.inf)

    assert certify(Unhinged(), "logodds", 3).linear_bound.verdict == "unknown"


def test_what_no_solver_can_do_is_unknown() -> None:
    found = certify(Hinge(), "logodds", 3)
    assert found.convex and found.linear_bound.verdict == "unknown"


@pytest.mark.parametrize("options", ({}, {"num_classes": 3, "outputs": SITES}), ids=("neither", "both"))
def test_the_outputs_must_be_given_once(options: dict) -> None:
    with pytest.raises(ValueError, match="`num_classes` must be given, or else `outputs`"):
        counterexample(LinearCore(), "pairwise", **options)


def test_nothing_is_certified_of_a_loss_that_is_not_convex() -> None:
    found = certify(LinearCore("quartic"), "logodds", 3)
    assert not found.convex
    assert (found.consistent.verdict, found.linear_bound.verdict) == ("unknown", "unknown")
    with pytest.raises(ValueError, match="`surrogate` must be non-increasing for form='logodds'"):
        regret_ratio(LinearCore("quartic"), "logodds", [0.5, 0.3, 0.2], 1)


def test_with_one_competitor_log_odds_are_linear_and_any_surrogate_is_convex() -> None:
    assert certify(LinearCore("quartic"), "logodds", 2).convex


def test_the_report_can_be_read() -> None:
    text = str(certify(LinearCore(sides=2, base="exponential"), "centered", 3, starts=30))
    for words in ("form centered on 3 classes", "convex            yes", "smooth            C1", "Lipschitz of φ    inf"):
        assert words in text
    assert "linear bound      supported: no ratio below" in text
    assert "certified to" in text and "distributions solved" in text


def test_json_is_json_and_says_the_same() -> None:
    found = certify(LinearCore("quartic"), "pairwise", 3, starts=30)
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["lipschitz"] == "inf" and found.lipschitz == math.inf
    assert plain["linear_bound"]["verdict"] == found.linear_bound.verdict
    assert plain["outputs"] == {"num_tags": 3, "length": 1}
    assert isinstance(found, Certificate)


def test_what_is_printed_can_be_checked_again() -> None:
    """All digits are printed, so that the distribution still adds up to 1 when it is typed in."""
    import re

    certificate = certify(LinearCore(), "pairwise", 3, starts=40)
    found = re.search(r"p = \((.*)\), predicting output (\d)", str(certificate))
    assert found is not None and certificate.linear_bound.counterexample is not None
    p = [float(word) for word in found[1].split(",")]
    assert p == certificate.linear_bound.counterexample.probabilities.tolist()
    assert regret_ratio(LinearCore(), "pairwise", p, int(found[2])).ratio < 0.05


def test_a_number_of_classes_must_be_a_number_of_classes() -> None:
    with pytest.raises(ValueError, match=r"`num_classes` must be an integer of at least 2, got 1"):
        certify(LinearCore(), "pairwise", 1)
    with pytest.raises(ValueError, match=r"`num_classes` must be an integer of at least 2, got 3\.5"):
        certify(LinearCore(), "pairwise", 3.5)
