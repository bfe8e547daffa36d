"""The report's table of all items of the paper, and its choice between runs and shipped records."""

import re

import pytest

from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.report import _results, write_report
from linearcore_paper.report._item_rows import item_rows, matching
from linearcore_paper.report._results import read_experiments, tally
from linearcore_paper.report.items import ITEMS
from tests.paper.outcomes import COMMITTED, conclusion, outcome
from tests.paper.test_report import CLAIMS, fake_results

#: Labels of all numbered statements, figures, tables, algorithms and equations in the paper's source, in its order, with
#: their printed numbers; and its definitions without a number, by section. Written down from the source.
PAPER = """
tab:loss_comparison Table 1
- Section 2
fig:extensions Figure 1
eq:Phi Eq. (1)
eq:Phi_one Eq. (2)
prop:properties Proposition 3.1
thm:T-binary Theorem 3.2
lemma:lin-binary Lemma 3.3
thm:bound-binary Theorem 3.4
lemma:lin-binary-one Lemma 3.5
cor:bound-binary-one Corollary 3.6
fig:rates Figure 2
eq:sum_loss Eq. (3)
fig:multi_surfaces Figure 3
thm:bound-multi Theorem 4.1
fig:gradient_invariance Figure 4
tab:noise_robustness Table 2
fig:gradient_invariance_hist Figure 5
- Section 5
thm:bound-struct Theorem 5.1
- Remark 5.2
- Section 5.3
fig:optimization_trajectories Figure 6
alg:struct_sgd Algorithm 1
thm:variance_bound Theorem 5.3
fig:scalability Figure 7
fig:efficiency Figure 8
eq:generalized_phi Eq. (4)
fig:stability_thresholds Figure 9
fig:vanishing_core Figure 10
- Appendix D
fig:struct_efficiency Figure 11
fig:scalability_full Figure 12
- Appendix F
lemma:explicit_assumption_01 Lemma H.1
lem:restricted-interval-optimizer Lemma H.2
lemma:explicit_assumption_01-struct Lemma I.1
app:rational_kernels Appendix K
- Appendix K, additivity
- Appendix K, F1 and BLEU
- Appendix K, estimator
- Appendix K, sampling
- Appendix K, rate
- Appendix K, step
"""
#: Experiments whose claims are judged at every scale, with a shipped record of the same claims.
CHEAP = [
    "surrogates",
    "statements",
    "rates",
    "thresholds",
    "vanishing-core",
    "surfaces",
    "gradients",
    "counterexample",
    "optimization",
    "optimization-rates",
]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    return read_experiments(tmp_path_factory.mktemp("empty"))


def test_every_item_of_the_paper_has_a_row():
    expected = [tuple(line.split(" ", 1)) for line in PAPER.strip().splitlines()]
    assert [(item.label or "-", item.name) for item in ITEMS] == expected


def test_every_row_has_verdict_number_and_command(shipped):
    for row in item_rows(shipped):
        if all(name not in EXPERIMENTS for name, _ in row.item.checks):
            assert (row.tally, row.command) == ((), "")
            continue
        assert row.tally and not {"not run", "not judged"} & {verdict for verdict, _ in row.tally}, row.item.name
        assert re.search(r"\d", row.number), row.item.name
        assert row.command.endswith(" --scale paper") and not row.is_small


def test_every_check_finds_its_claims(shipped):
    by_name = {experiment.entry.name: experiment for experiment in shipped}
    for item in ITEMS:
        for name, fragment in item.checks:
            assert name not in EXPERIMENTS or matching(by_name[name], fragment), (item.name, fragment)


@pytest.mark.parametrize("name", CHEAP)
def test_small_runs_have_the_verdicts_of_the_shipped_records(name):
    claims = conclusion(COMMITTED, name)["results"]["claims"]
    found = [(claim.claim, claim.verdict, claim.correction) for claim in outcome(name).claims]
    assert found == [(claim["claim"], claim["verdict"], claim["correction"]) for claim in claims]


def test_shipped_records_replace_missing_and_small_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(_results, "SHIPPED", fake_results(tmp_path / "shipped"))
    out = fake_results(tmp_path / "out", ("rates",), scale="smoke")
    by_name = {experiment.entry.name: experiment for experiment in read_experiments(out)}
    assert by_name["rates"].is_shipped and by_name["rates"].scale == "paper" and by_name["rates"].small.scale == "smoke"
    assert by_name["thresholds"].is_shipped and by_name["thresholds"].small is None
    assert not by_name["surfaces"].was_run
    page = write_report(out).read_text("utf-8")
    # Of the five claims four are judged.
    assert "4 of 4 verdicts are the same, 1 claims need scale paper" in page
    fake_results(out, ("rates",))
    rates = next(item for item in read_experiments(out) if item.entry.name == "rates")
    assert not rates.is_shipped and rates.small is None


def test_a_small_run_is_shown_where_nothing_is_shipped(tmp_path, monkeypatch):
    (tmp_path / "shipped").mkdir()
    monkeypatch.setattr(_results, "SHIPPED", tmp_path / "shipped")
    experiments = read_experiments(fake_results(tmp_path / "out", ("rates",), scale="smoke"))
    row = next(row for row in item_rows(experiments) if row.item.name == "Figure 2")
    assert row.is_small and row.command == "linearcore reproduce rates --scale smoke"
    assert row.tally == (("holds", 1), ("holds with a correction", 1), ("does not hold", 1), ("not judged", 1))
    not_run = next(row for row in item_rows(experiments) if row.item.name == "Figure 3")
    assert not_run.tally == (("not run", 1),) and not_run.command == "linearcore reproduce surfaces --scale paper"


def test_our_own_claims_are_counted_apart(tmp_path):
    experiment = next(item for item in read_experiments(fake_results(tmp_path)) if item.entry.name == "rates")
    assert len(experiment.claims) == len(CLAIMS)
    assert [claim.claim for claim in experiment.claims_of(ours=True)] == [CLAIMS[-1]["claim"]]
    assert sum(count for _, count in tally(experiment.claims_of(ours=False))) == len(CLAIMS) - 1
