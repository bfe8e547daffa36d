"""The parts of `benchmarks/which_loss.py`: networks in a stack, ranks, measures, and a record that can be continued."""

import importlib
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from scipy.stats import chi2
from torch import nn

from linearcore import LinearCore, NormedScores, multiclass_loss
from linearcore.losses.baselines import EarlyLearning
from linearcore.runtime import read_record
from tests.cases import each

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def imported(name: str) -> ModuleType:
        return importlib.import_module(name)

    return imported


def network_alone(module, sizes, seed, is_normed):
    """One network with the initial weights of a stack."""
    start = module("_network_stack")._initial_weights(sizes, seed)
    layers: list[nn.Module] = []
    for place in range(len(sizes) - 1):
        is_last = place == len(sizes) - 2
        linear = nn.Linear(sizes[place], sizes[place + 1], bias=not (is_last and is_normed), dtype=torch.float64)
        linear.weight.data = start[2 * place].T.clone().double()
        if linear.bias is not None:
            linear.bias.data = start[2 * place + 1][0].clone().double()
        layers += [linear] if is_last else [linear, nn.ReLU()]
    return nn.Sequential(*layers, *([NormedScores(sizes[-1]).double()] if is_normed else []))


def trained_alone(module, network, inputs, labels, rows, criterion, steps, place, seed):
    """Trains with torch's own optimiser and schedule."""
    parameters = list(network.parameters())
    if steps.optimizer == "adam":
        optimizer = torch.optim.Adam(parameters, steps.lrs[place])
    else:
        optimizer = torch.optim.SGD(parameters, steps.lrs[place], momentum=steps.momentum, weight_decay=steps.decay)
    per_epoch = len(rows) // steps.batch
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps.epochs * per_epoch)
    shuffler = torch.Generator().manual_seed(2000 + seed)
    for _ in range(steps.epochs):
        for index in torch.randperm(len(rows), generator=shuffler)[: per_epoch * steps.batch].split(steps.batch):
            optimizer.zero_grad()
            chosen = rows[index]
            (steps.scales[place] * criterion(network(inputs[chosen]), labels[chosen], index)).backward()
            optimizer.step()
            schedule.step()
    return network.eval()(inputs)


@each(
    "case",
    {
        "adam, hidden layer, normed": ("adam", (5, 7, 4), True, "lc"),
        "sgd, linear": ("sgd", (5, 4), False, "ce"),
        "adam, linear, history": ("adam", (5, 4), False, "elr"),
        "sgd, linear, normed": ("sgd", (5, 4), True, "wide"),
        "sgd, hidden layer, history": ("sgd", (5, 7, 4), False, "elr"),
    },
    ("adam, hidden layer, normed", "sgd, linear", "adam, linear, history"),
)
def test_networks_in_a_stack_are_trained_as_if_alone(case, module):
    optimizer, sizes, is_normed, name = case
    stack, loss = module("_network_stack"), module("_loss_trials").LOSSES[name]
    stream = torch.Generator().manual_seed(0)
    inputs = torch.randn(60, 5, generator=stream, dtype=torch.float64)
    seeds, labels = (3, 4), torch.randint(4, (2, 60), generator=stream)
    rows = torch.stack([torch.randperm(60, generator=stream)[:50] for _ in seeds])
    steps = stack.Steps(optimizer, lrs=(0.01, 0.05), scales=(1.0, 3.0), epochs=3, batch=8)
    networks = stack.NetworkStack(sizes, seeds, 2, is_normed=is_normed)
    networks.parameters = [parameter.detach().double().requires_grad_() for parameter in networks.parameters]
    if networks.norm is not None:
        networks.norm.double()
    stack.train(networks, inputs, labels, rows, loss.make(4 * 50, 4), steps, seeds)
    together = networks.evaluate(inputs, torch.arange(60).expand(2, -1))
    for at, seed in enumerate(seeds):
        for place in range(2):
            row_losses = EarlyLearning(50, 4) if name == "elr" else loss.make(50, 4)

            def criterion(scores, target, index, row_losses=row_losses):
                return row_losses(scores, target, index).mean()

            network = network_alone(module, sizes, seed, is_normed)
            alone = trained_alone(module, network, inputs, labels[at], rows[at], criterion, steps, place, seed)
            # Learning rates and the history of early learning are in single precision.
            torch.testing.assert_close(together[2 * at + place], alone, rtol=0, atol=1e-6)


def test_ranks_and_their_tests(module):
    ranks = module("_rank_tests")
    table = [[90.0, 80.0, 70.0], [60.0, 65.0, 50.0], [9.0, 8.0, 7.0], [55.0, 55.0, 40.0]]
    found = ranks.rank_methods(table)
    assert found.average == pytest.approx([1.375, 1.625, 3.0])
    # Without the tied row, Friedman's formula: 12 N / (k (k + 1)) · (Σ R² − k (k + 1)² / 4).
    averages = [4 / 3, 5 / 3, 3.0]
    statistic = 12 * 3 / (3 * 4) * (sum(rank**2 for rank in averages) - 3 * 4**2 / 4)
    assert ranks.rank_methods(table[:3]).p_value == pytest.approx(float(chi2.sf(statistic, 2)))
    assert ranks.rank_methods(table[:1]).p_value is None


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_critical_differences_are_those_of_the_table(methods, q, module):
    # Demšar, JMLR 2006, table 5 (a); his example has 4 methods and 14 data sets.
    found = module("_rank_tests").critical_difference(methods, 14)
    assert found == pytest.approx(q * math.sqrt(methods * (methods + 1) / (6 * 14)), abs=1e-3)


def test_measures_of_a_small_example(module):
    trials = module("_loss_trials")
    # Three rows of class 0, of which two are found, and one of class 1; class 2 does not occur.
    probabilities = torch.tensor([[[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.2, 0.8, 0.0], [0.3, 0.7, 0.0]]]).double()
    labels = torch.tensor([[0, 0, 0, 1]])
    found = trials.test_measures(probabilities.log().clamp(min=-50), labels, trials.softmax)
    assert found["test"].item() == 0.75
    assert found["balanced"].item() == pytest.approx((2 / 3 + 1) / 2)
    assert found["nll"].item() == pytest.approx(-sum(map(math.log, (0.9, 0.6, 0.2, 0.7))) / 4)
    # Each confidence is in a bin of its own.
    assert found["ece"].item() == pytest.approx((0.1 + 0.4 + 0.8 + 0.3) / 4)
    assert trials.hits(torch.tensor([[[math.inf, 0.0]]]), torch.tensor([[0]])).item() is False


def test_a_class_conditional_law_has_the_wanted_rate_and_keeps_most_labels(module):
    for classes in (2, 26):
        matrix = module("_loss_trials").confusions(classes, 0.4, seed=1)
        assert matrix.sum(1) == pytest.approx(torch.ones(classes))
        assert float((1 - matrix.diagonal()).mean()) == pytest.approx(0.4)
        assert float(matrix.diagonal().min()) >= 0.52 - 1e-9


def test_an_interrupted_run_is_continued_and_another_plan_refused(module, tmp_path, monkeypatch, capsys):
    which_loss = module("which_loss")
    out = tmp_path / "record.jsonl"
    words = ["--quick", "--sets", "digits,a9a", "--losses", "ce,robust", "--noises", "clean", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["which_loss.py", *words])
    assert which_loss.main() == 0
    whole = out.read_text("utf-8").splitlines(keepends=True)
    # Two sets without the robust loss for two classes; SGD is not run on these sets.
    assert len(whole) == 3
    out.write_text(whole[0] + whole[1][:100], "utf-8")
    assert which_loss.main() == 0
    again = out.read_text("utf-8").splitlines(keepends=True)
    assert again[0] == whole[0] and len(again) == 3
    assert "1 of 3 cells" in capsys.readouterr().err
    results = [[json.loads(line)["results"] for line in text] for text in (whole, again)]
    assert results[0] == results[1]
    monkeypatch.setattr(which_loss, "COMPARISON", replace(which_loss.COMPARISON, seeds=(1, 2)))
    assert which_loss.main() == 2
    assert "another --out" in capsys.readouterr().err


def test_the_summary_uses_complete_cases_only(module):
    summary = module("_loss_summary")
    results = {"test": [[50.0, 70.0], [60.0, 40.0]], "chosen": [1, 0], "balanced": [0.5, 0.7]}
    cells = [{"data": "digits", "noise": "clean", "optimizer": "adam", "loss": loss} for loss in summary.GROUPS["many"]]
    lines = [{"cell": cell, "results": results} for cell in cells]
    found = summary.summarize(lines)
    assert found["cases"][0]["losses"]["ce"] == {"test": 65.0, "sd": 7.071, "balanced": 60.0}
    assert {row["rank"] for row in found["groups"][0]["losses"].values()} == {5.5}
    assert summary.summarize(lines[:-1])["groups"] == []


def test_a_temperature_changes_the_competitors_only(module):
    heated = module("_default_search").heated_loss
    scores = 3 * torch.randn(20, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.arange(20) % 5
    rest = scores.masked_fill(torch.nn.functional.one_hot(labels, 5).bool(), -math.inf)
    for t in (0.5, 2.0):
        margin = scores.gather(1, labels[:, None]).squeeze(1) - t * (rest / t).logsumexp(1)
        expected = LinearCore().value(margin)
        torch.testing.assert_close(heated(scores, labels, temperature=t, reduction="none"), expected)
    same = multiclass_loss(scores, labels, reduction="none")
    torch.testing.assert_close(heated(scores, labels, temperature=1.0, reduction="none"), same)


def test_a_search_uses_other_rows_and_no_test_labels(module, tmp_path, monkeypatch):
    which_loss, out = module("which_loss"), tmp_path / "search.jsonl"
    words = ["--quick", "--search", "--sets", "letter", "--losses", "default,τ = 2", "--noises", "clean", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["which_loss.py", *words])
    assert which_loss.main() == 0
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [line["results"].keys() for line in lines] == [{"validation", "chosen"}] * 2
    rows = module("_default_search").search_table(lines)
    assert [row["candidate"] for row in rows] == ["default", "τ = 2"] and rows[0]["gain"] == 0
    sets = module("_label_sets")
    features, labels = torch.arange(20000.0).view(-1, 1).numpy(), [0, 1] * 10000
    parts = [set(sets.subset(features, labels, part=part).features.flatten().tolist()) for part in (0, 1)]
    assert len(parts[0]) == len(parts[1]) == 8000 and not parts[0] & parts[1]
    with pytest.raises(sets.DataError, match="leave it out"):
        sets.subset(features[:9000], labels[:9000], part=1)


def test_committed_summaries_are_those_of_their_lines(module):
    lines_of, results = module("_cell_record").lines, BENCHMARKS / "results"
    summary, found = module("_loss_summary"), list(lines_of(results / "which_loss.jsonl"))
    tables = summary.summarize(found) | {"starts": summary.starts(found)}
    record = read_record(results / "which_loss.json")
    assert record["results"] == json.loads(json.dumps(tables))
    assert record["settings"]["cells"][0] == len(found)
    searched = module("_default_search").search_table(lines_of(results / "which_loss_search.jsonl"))
    assert read_record(results / "which_loss_search.json")["results"] == searched
