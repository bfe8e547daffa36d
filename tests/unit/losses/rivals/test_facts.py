"""What the registry declares of each rival is so; and every rival has the same signature."""

import inspect
import math
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from linearcore import multiclass_loss
from linearcore.losses import rivals
from linearcore.losses.rivals import RIVALS, Rival, generalized_cross_entropy, symmetric_cross_entropy

every_rival = pytest.mark.parametrize("rival", RIVALS.values(), ids=RIVALS.keys())
SCORES = torch.randn(200, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * torch.logspace(
    -1, 2, 200, dtype=torch.float64
).unsqueeze(1)


def over_all_labels(loss: object, **options: object) -> Tensor:
    """(200,): Σ_y ℓ(s, y)."""
    columns = [loss(SCORES, torch.full((200,), y), reduction="none", **options) for y in range(6)]
    return torch.stack(columns).sum(0)


@every_rival
def test_symmetric_means_that_the_sum_over_labels_is_constant(rival: Rival) -> None:
    sums = over_all_labels(rival)
    assert bool(((sums - sums[0]).abs() <= 1e-9 * sums[0].abs()).all()) == rival.is_symmetric


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
    options = {"log_zero": -4.0} if "log_zero" in RIVALS[name].options else {}
    torch.testing.assert_close(over_all_labels(RIVALS[name], **options), torch.full((200,), constant, dtype=torch.float64))


def test_ends_of_the_families_are_symmetric() -> None:
    for loss, options in ((generalized_cross_entropy, {"q": 1.0}), (symmetric_cross_entropy, {"alpha": 0.0})):
        sums = over_all_labels(loss, **options)
        torch.testing.assert_close(sums, sums[:1].expand(200))


@every_rival
def test_convex_means_below_its_chords(rival: Rival) -> None:
    """Rows are ends of chords, to be crossed in the middle; a rival that is not convex rises above one of them."""
    left, right, target = SCORES[:100], SCORES[100:], torch.arange(100) % 6
    ends = (rival(left, target, reduction="none") + rival(right, target, reduction="none")) / 2
    middle = rival((left + right) / 2, target, reduction="none")
    assert bool((middle <= ends + 1e-9).all()) == rival.is_convex


@every_rival
def test_bounded_means_that_far_scores_cost_no_more(rival: Rival) -> None:
    far = torch.tensor([[0.0, 1e6, -1e6], [1e6, 0.0, 3.0], [0.0, 0.0, 1e6]], dtype=torch.float64)
    worst = max(rival(far, torch.full((3,), y), reduction="none").abs().amax() for y in range(3))
    assert bool(worst <= 100) == rival.is_bounded


@every_rival
def test_signature_is_multiclass_loss_s(rival: Rival) -> None:
    ours = inspect.signature(rival.function).parameters
    shared = [name for name in inspect.signature(multiclass_loss).parameters if name in ours and name != "normalize"]
    assert [name for name in ours if name not in rival.options] == shared
    assert len(shared) == 8
    theirs = inspect.signature(multiclass_loss).parameters
    assert all(ours[name].default == theirs[name].default for name in shared)
    keywords = [name for name, parameter in ours.items() if parameter.kind is parameter.KEYWORD_ONLY]
    assert keywords == list(ours)[2:] and list(ours)[2 : 2 + len(rival.options)] == list(rival.options)
    assert all(default is not inspect.Parameter.empty for default in rival.options.values())


def test_registry_and_index() -> None:
    assert all(name == rival.name and getattr(rivals, name) is rival.function for name, rival in RIVALS.items())
    apart = {"RIVALS", "Rival", "RivalLoss", "EarlyLearning", "early_learning_loss"}
    assert set(rivals.__all__) == set(RIVALS) | apart
    with pytest.raises(TypeError):
        RIVALS["mine"] = RIVALS["cross_entropy"]
    with pytest.raises(AttributeError):
        RIVALS["cross_entropy"].title = "XE"
    assert RIVALS["generalized_cross_entropy"].options == {"q": 0.7, "truncation": 0.0}
    assert len({rival.title for rival in RIVALS.values()}) == len(RIVALS)


def test_the_page_says_what_the_registry_says() -> None:
    page = (Path(__file__).parents[4] / "docs" / "rivals.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")]
    assert [row[0].strip("`") for row in rows] == list(RIVALS)
    for name, title, _, options, *facts, _ in rows:
        rival = RIVALS[name.strip("`")]
        assert title == rival.title
        assert [fact == "yes" for fact in facts] == [rival.is_symmetric, rival.is_convex, rival.is_bounded]
        said = dict(re.findall(r"(\w+) = (log 10⁻⁴|[\w.]+)", options))
        known = {option: "log 10⁻⁴" if value == math.log(1e-4) else str(value) for option, value in rival.options.items()}
        assert said == known
