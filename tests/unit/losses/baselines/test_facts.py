"""What the registry declares of each baseline is so; and every baseline has the same signature."""

import inspect
import math
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from linearcore import multiclass_loss
from linearcore.losses import baselines
from linearcore.losses.baselines import BASELINES, Baseline, generalized_cross_entropy, symmetric_cross_entropy

every_baseline = pytest.mark.parametrize("baseline", BASELINES.values(), ids=BASELINES.keys())
SCORES = torch.randn(200, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * torch.logspace(
    -1, 2, 200, dtype=torch.float64
).unsqueeze(1)


def over_all_labels(loss: object, **options: object) -> Tensor:
    """(200,): Σ_y ℓ(s, y)."""
    columns = [loss(SCORES, torch.full((200,), y), reduction="none", **options) for y in range(6)]
    return torch.stack(columns).sum(0)


@every_baseline
def test_symmetric_means_that_the_sum_over_labels_is_constant(baseline: Baseline) -> None:
    sums = over_all_labels(baseline)
    assert bool(((sums - sums[0]).abs() <= 1e-9 * sums[0].abs()).all()) == baseline.is_symmetric


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("mean_absolute_error", 10.0),
        ("normalized_cross_entropy", 1.0),
        ("reverse_cross_entropy", 20.0),
        ("active_passive_cross_entropy", 21.0),
        ("unhinged", 6.0),
    ],
)
def test_the_constants_of_the_docstrings(name: str, constant: float) -> None:
    options = {"log_zero": -4.0} if "log_zero" in BASELINES[name].options else {}
    sums = over_all_labels(BASELINES[name], **options)
    torch.testing.assert_close(sums, torch.full((200,), constant, dtype=torch.float64))


def test_ends_of_the_families_are_symmetric() -> None:
    for loss, options in ((generalized_cross_entropy, {"q": 1.0}), (symmetric_cross_entropy, {"alpha": 0.0})):
        sums = over_all_labels(loss, **options)
        torch.testing.assert_close(sums, sums[:1].expand(200))


@every_baseline
def test_convex_means_below_its_chords(baseline: Baseline) -> None:
    """Rows are ends of chords, to be crossed in the middle; a baseline that is not convex rises above one of them."""
    left, right, target = SCORES[:100], SCORES[100:], torch.arange(100) % 6
    ends = (baseline(left, target, reduction="none") + baseline(right, target, reduction="none")) / 2
    middle = baseline((left + right) / 2, target, reduction="none")
    assert bool((middle <= ends + 1e-9).all()) == baseline.is_convex


@every_baseline
def test_bounded_means_that_far_scores_cost_no_more(baseline: Baseline) -> None:
    far = torch.tensor([[0.0, 1e6, -1e6], [1e6, 0.0, 3.0], [0.0, 0.0, 1e6]], dtype=torch.float64)
    worst = max(baseline(far, torch.full((3,), y), reduction="none").abs().amax() for y in range(3))
    assert bool(worst <= 100) == baseline.is_bounded


@every_baseline
def test_a_minimum_means_that_no_scores_have_a_loss_far_below_zero(baseline: Baseline) -> None:
    far = torch.tensor([[1e6, 0.0, -1e6]], dtype=torch.float64)
    assert bool(baseline(far, torch.tensor([0])) >= 0) == baseline.has_minimum


@every_baseline
def test_signature_is_multiclass_loss_s(baseline: Baseline) -> None:
    ours = inspect.signature(baseline).parameters
    shared = [name for name in inspect.signature(multiclass_loss).parameters if name in ours and name != "normalize"]
    assert [name for name in ours if name not in baseline.options] == shared
    assert len(shared) == 8
    theirs = inspect.signature(multiclass_loss).parameters
    assert all(ours[name].default == theirs[name].default for name in shared)
    keywords = [name for name, parameter in ours.items() if parameter.kind is parameter.KEYWORD_ONLY]
    assert keywords == list(ours)[2:] and list(ours)[2 : 2 + len(baseline.options)] == list(baseline.options)
    assert all(default is not inspect.Parameter.empty for default in baseline.options.values())


def test_registry_and_index() -> None:
    assert all(name == baseline.name and getattr(baselines, name) is baseline for name, baseline in BASELINES.items())
    others = {"BASELINES", "Baseline", "BaselineLoss", "EarlyLearning", "LabelledRows", "Range", "baseline"}
    assert set(baselines.__all__) == set(BASELINES) | others | {"early_learning_loss"}
    with pytest.raises(TypeError):
        BASELINES["mine"] = BASELINES["cross_entropy"]
    with pytest.raises(AttributeError):
        BASELINES["cross_entropy"].title = "XE"
    assert BASELINES["generalized_cross_entropy"].options == {"q": 0.7, "truncation": 0.0}
    assert len({baseline.title for baseline in BASELINES.values()}) == len(BASELINES)


def test_the_page_says_what_the_registry_says() -> None:
    page = (Path(__file__).parents[4] / "docs" / "wrong-labels.md").read_text("utf-8")
    page = page.partition("\n## Baselines\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")]
    assert sorted(row[0].strip("`") for row in rows) == list(BASELINES)
    for name, title, _, options, *facts, _ in rows:
        baseline = BASELINES[name.strip("`")]
        assert title == baseline.title
        assert [fact == "yes" for fact in facts] == [baseline.is_symmetric, baseline.is_convex, baseline.is_bounded]
        said = dict(re.findall(r"(\w+) = (log 10⁻⁴|[\w.]+)", options))
        known = {option: "log 10⁻⁴" if value == math.log(1e-4) else str(value) for option, value in baseline.options.items()}
        assert said == known
