"""`docs/reading-the-paper-with-care.md`: its letters, and (p) to (w) by other means than those that made its numbers."""

import math
import re
import string
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from linearcore import ConvolutionalFenchelYoung, Exponential, Hinge, LinearCore, LinearCoreChain, Logistic, SquaredHinge
from linearcore.analysis import minimizability_gap, regret_ratio, transform, zero_one_gap
from linearcore.runtime import has_uncommitted_changes, read_record
from linearcore.structures import Cost, Sequences
from linearcore.surrogates import BASES
from linearcore_paper.report._evidence import LIVE
from linearcore_paper.report.corrections import CORRECTIONS
from linearcore_paper.runner import ResultsFile

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reading-the-paper-with-care.md").read_text("utf-8")
EXPERIMENTS = ROOT / "paper" / "src" / "linearcore_paper" / "experiments"
CORES = {f"{base}-{sides}": LinearCore(base, sides=sides) for base in BASES for sides in (1, 2)}


@pytest.fixture(scope="module")
def record() -> dict:
    return read_record(ROOT / "docs" / "results" / "corrections.json")


def data_of(experiment: str) -> dict:
    conclusion = ResultsFile(EXPERIMENTS, experiment).conclusion
    assert conclusion is not None and not has_uncommitted_changes(conclusion["environment"])
    return conclusion["results"]["data"]


# ---- letters ----


def test_page_report_and_table_have_the_same_letters():
    letters = list(string.ascii_lowercase[: len(CORRECTIONS)])
    assert [correction.letter for correction in CORRECTIONS] == letters
    assert re.findall(r'^<a id="(\w)"></a>$', PAGE, re.MULTILINE) == letters
    assert re.findall(r"^## \((\w)\)", PAGE, re.MULTILINE) == letters
    assert re.findall(r"^\| \[\((\w)\)\]\(#\1\)", PAGE, re.MULTILINE) == letters


def test_every_section_has_the_same_order():
    for section in re.split(r"^## \(", PAGE, flags=re.MULTILINE)[1:]:
        heads = re.findall(r"^\*\*(The paper|Why|Evidence|What we do)", section, re.MULTILINE)
        assert heads == ["The paper", "Why", "Evidence", "What we do"], section[:60]


def test_the_record_was_made_from_a_commit(record):
    assert not has_uncommitted_changes(record["environment"])


# ---- (p) records of two experiments ----


def test_p_algorithm_1_is_worse_than_decoding_without_transitions(record):
    data = data_of("convergence")
    final = {(run["setting"], run["method"]): run["curve"]["error"][-1] for run in data["runs"]}
    for setting in ("one", "suited"):
        assert final[setting, "sequences"] > 2 * data["errors"]["unary"] > 2 * final[setting, "sampled-logodds"]
    assert final["one", "sampled-logodds"] > data["target"] >= final["one", "ssvm"]
    # A smaller task, with y'' a neighbour of y' as well.
    found = record["results"]["p"]
    errors = {method: row["test_errors"] for method, row in found["rows"].items()}
    for method in errors.keys() - {"ssvm", "tags_at_single_positions"}:
        assert min(errors[method]) > found["decoding"]["without_transitions"] > max(errors["ssvm"])


def test_p_a_sampled_step_is_not_23_times_as_fast():
    size = next(size for size in data_of("scalability")["sizes"] if size["tags"] == 400)
    factors = [row["times"]["ssvm"]["median"] / row["times"]["sampled"]["median"] for row in size["batches"]]
    assert [f"{factor:.1f}" for factor in factors] == ["2.5", "6.7"]


# ---- (q) to (w) ----


def test_q_the_sampled_gradient_of_the_hinge_is_unbiased():
    emissions = torch.randn(3, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    tags, stream = torch.tensor([[0], [1], [1]]), torch.Generator().manual_seed(0)
    head = LinearCoreChain(2, surrogate=Hinge()).double()
    sampled = torch.stack(
        [
            torch.autograd.grad(head.structured(emissions, tags, num_samples=4000, generator=stream), emissions)[0].flatten()
            for _ in range(200)
        ]
    )
    space = Sequences(2, 3)
    outputs = space.outputs
    chain = head.chain(emissions)
    total = chain.start[outputs[:, 0]] + chain.end[outputs[:, -1]] + emissions[torch.arange(3), 0, outputs].sum(-1)
    total = total + chain.transitions[outputs[:, :-1], outputs[:, 1:]].sum(-1)
    truth = int((outputs == tags.t()).all(-1).nonzero())
    similarity = (1 - space.cost("hamming")[:, truth]).unsqueeze(1)
    losses = similarity * Hinge().value(total.unsqueeze(1) - total) * (1 - torch.eye(space.size))
    (exact,) = torch.autograd.grad(losses.sum() / (similarity.sum() * (space.size - 1)), emissions)
    error = sampled.std(0) / math.sqrt(len(sampled))
    assert ((sampled.mean(0) - exact.flatten()).abs() < 4.5 * error).all()
    # A bias of a tenth would be seen.
    assert 0.1 * exact.abs().max() > 6 * error.max()


@pytest.mark.parametrize("name", CORES)
def test_r_descent_with_a_fixed_step_needs_a_finite_curvature(name):
    phi, coin = CORES[name], 0.7

    def risk(w):
        return coin * phi.value(w) + (1 - coin) * phi.value(-w)

    def step(w, size):
        return w - size * (coin * phi.derivative(w) - (1 - coin) * phi.derivative(-w))

    grid = np.linspace(-15, 15, 3001)
    if math.isfinite(phi.smoothness):
        assert (risk(step(grid, 1 / phi.smoothness)) <= risk(grid) + 1e-12).all()
    else:
        assert phi.is_c1 and name in ("exponential-2", "quartic-1", "quartic-2")
        far = {"exponential-2": -14.0, "quartic-1": 150.0, "quartic-2": -150.0}[name]
        for size in (1.0, 0.1, 0.01):
            assert risk(step(far, size)) > risk(far)


def test_s_a_cost_above_one_makes_the_loss_unbounded_below():
    # Two outputs, ℓ = 2 for the wrong one: weights 1 and −1 of φ(u) and φ(−u).
    losses = [float(LinearCore().value(u) - LinearCore().value(-u)) for u in (0.0, 10.0, 100.0, 1000.0)]
    assert losses[0] == 0 and all(later < earlier - 9 for earlier, later in pairwise(losses)) and losses[-1] < -1000


def test_u_slope_and_curvature_at_zero():
    t = 1e-4
    for phi in (Logistic(), Exponential(), SquaredHinge()):
        slope, curvature = float(phi.derivative(0.0)), float(phi.curvature(0.0))
        assert slope < 0 < curvature
        assert float(transform(phi, t)) / t**2 == pytest.approx(slope**2 / (2 * curvature), rel=1e-3)
    for phi in (Hinge(), ConvolutionalFenchelYoung(), *CORES.values()):
        slope = float(phi.derivative(0.0))
        assert slope < 0 and float(phi.curvature(0.0)) == 0
        assert float(transform(phi, t)) / t >= -slope - 1e-9


@pytest.mark.parametrize("bound", (0.1, 0.5, 0.9))
def test_v_bounded_scores_have_the_constant_of_their_bound(bound):
    # Inside the core the risk is φ(0) − t·u, so that the best admissible score is the bound.
    phi, t, u = LinearCore(), 0.3, np.linspace(-bound, bound, 2001)
    risk = (1 - t) / 2 * phi.value(-u) + (1 + t) / 2 * phi.value(u)
    assert float(phi.value(0.0)) - risk.min() == pytest.approx(bound * t) and bound * t < t


def test_v_the_best_linear_surrogate_is_not_the_best_linear_classifier():
    x, y = np.array([1.0, 1, 1, 10, 10]), np.array([1, 1, 1, -1, -1])
    weights = np.linspace(-2, 2, 4001)
    risks = LinearCore().value(np.outer(weights, x * y)).mean(1)
    best = weights[risks.argmin()]
    assert (best * x * y <= 0).mean() == 0.6
    assert zero_one_gap(x[:, None], y, intercept=False).best_in_class == pytest.approx(0.4)
    assert minimizability_gap(LinearCore(), "pairwise", x[:, None], y, intercept=False).gap == pytest.approx(
        risks.min(), abs=1e-3
    )


@pytest.mark.parametrize("length", range(3, 9))
def test_w_no_sum_over_windows_is_f1_or_bleu(length):
    # The truth has only 1s. A sum over windows that do not contain both ends would give equal sums.
    one = [1] * (length - 2)
    both, first, last, none = ((a, *one, b) for a, b in ((1, 1), (1, 0), (0, 1), (0, 0)))

    def f1(y):
        return 2 * sum(y) / (sum(y) + length)

    def bleu(y):
        pairs = (Counter(pairwise(y)) & Counter(pairwise(both))).total() / (length - 1)
        return math.sqrt(sum(y) / length * pairs)

    for metric in (f1, bleu):
        assert abs(metric(both) + metric(none) - metric(first) - metric(last)) > 1e-6


def test_w_the_sum_loss_has_no_linear_rate_for_f1():
    class F1(Cost):
        name = "f1"

        def between(self, prediction, target, mask=None, *, dtype=torch.float32):
            hits, total = (prediction * target).sum(-1), (prediction + target).sum(-1)
            return torch.where(total > 0, 1 - 2 * hits / total.clamp(min=1), 0).to(dtype)

    # 10 and 11 have the same expected F1 at δ = 0.
    ratios = [
        regret_ratio(
            LinearCore(), "structured-sum", [0.3, 0.1, 0.4 - d, 0.2 + d], 2, outputs=Sequences(2, 2), cost=F1()
        ).ratio
        for d in (0.02, 0.01, 0.005)
    ]
    assert ratios[0] < 0.1
    assert ratios[0] / ratios[1] == pytest.approx(2, rel=0.02) and ratios[1] / ratios[2] == pytest.approx(2, rel=0.02)


# ---- the report and the record agree ----


def test_the_report_computes_the_numbers_of_the_record(record):
    results = record["results"]
    rows = {row[0]: row[1:] for row in LIVE["u"]().rows}
    assert float(rows["linear core, gamma"][2]) == pytest.approx(results["u"]["rows"]["gamma_1_sided"]["T_over_t"], abs=1e-4)
    for bound, ratio, _ in LIVE["v"]().rows:
        assert float(ratio) == pytest.approx(results["v"]["T_over_t_with_scores_up_to"][bound], abs=1e-4)
    metrics = {"F1 of tag 1": "f1", "BLEU, 1- and 2-grams": "bleu", "aligned pairs of tags": "aligned_bigrams"}
    for label, *cells in LIVE["w"]().rows:
        found = [row["mixed_difference"] for row in results["w"]["additivity"] if row["metric"] == metrics[label]]
        assert [float(cell) for cell in cells] == pytest.approx(found, abs=5e-4)
    losses = [float(row[1].replace("−", "-")) for row in LIVE["s"]().rows]
    assert losses == pytest.approx(results["s"]["loss"]["number_of_wrong_tags"], rel=1e-3)


def test_q_report_and_record_have_both_surrogates_below_the_bound(record):
    for row in record["results"]["q"]["rows"].values():
        assert row["largest_deviation_in_standard_errors"] < 4
        scaled = list(row["variance_times_K"].values())
        assert max(scaled) < 1.02 * min(scaled)
        assert max(scaled) < record["results"]["q"]["bound_4_R_squared"]
    assert all(float(row[1].replace("−", "-")) < 1e-12 and float(row[2]) < float(row[3]) for row in LIVE["q"]().rows)


def test_t_the_closed_form_is_the_solvers_and_decodes_by_argmax(record):
    for row in record["results"]["t"]["rows"]:
        assert row["share_with_the_same_argmax"] == 1
        assert max(value for key, value in row.items() if key.startswith("greatest")) < 1e-11
    assert all(row[2] == "100%" for row in LIVE["t"]().rows)
