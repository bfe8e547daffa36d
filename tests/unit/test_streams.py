"""Draws of one seed for two purposes have nothing to do with one another."""

import pytest
import torch

from linearcore import noise
from linearcore._streams import stream_for
from linearcore.cleaning import out_of_fold_scores
from linearcore_paper.vision import Images, Recipe, hold_out
from linearcore_paper.vision._plan import epoch_plan

SEEDS = (0, 1, 2)
COUNT = 4000


def wrong(seed: int) -> torch.Tensor:
    clean = torch.arange(COUNT) % 10
    return noise.symmetric(clean, 0.4, num_classes=10, seed=seed).labels != clean


def shares_of_wrong(seed: int) -> dict[str, float]:
    """Per cent of labels made wrong with a seed, among those that other things of the same seed pick."""
    is_wrong = wrong(seed)
    images = Images(torch.zeros(COUNT, 1, 1, 1, dtype=torch.uint8), torch.arange(COUNT), tuple(map(str, range(COUNT))))
    first = epoch_plan(COUNT, Recipe(batch=COUNT // 10, seed=seed), 0)[0][: COUNT // 10]
    torch.manual_seed(seed)
    drawn = torch.rand(COUNT, dtype=torch.float64).argsort()[: COUNT // 10]
    return {
        "held out": float(is_wrong[hold_out(images, COUNT // 10, seed)[1].labels].double().mean()),
        "first batch": float(is_wrong[first].double().mean()),
        "torch's own": float(is_wrong[drawn].double().mean()),
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_labels_are_spread_over_what_the_same_seed_picks(seed: int) -> None:
    # Four standard deviations of 400 draws.
    assert all(abs(share - 0.4) < 0.1 for share in shares_of_wrong(seed).values()), shares_of_wrong(seed)


def test_wrong_labels_are_spread_over_folds() -> None:
    clean = torch.arange(600) % 3
    noisy = noise.symmetric(clean, 0.4, num_classes=3, seed=0).labels
    found = out_of_fold_scores(torch.zeros(600, 1), noisy, num_classes=3, folds=3, epochs=1, seed=0)
    for number in range(3):
        assert abs(float((noisy != clean)[found.fold == number].double().mean()) - 0.4) < 0.14


@pytest.mark.parametrize("seed", (None, 1.0, True, "1"))
def test_a_seed_is_an_integer(seed: object) -> None:
    with pytest.raises(TypeError, match="`seed` must be an integer"):
        stream_for("labels", seed)  # type: ignore[arg-type]


def test_what_a_seed_picks_stays_what_it_is_from_version_to_version() -> None:
    images = Images(torch.zeros(20, 1, 1, 1, dtype=torch.uint8), torch.arange(20), tuple(map(str, range(20))))
    assert hold_out(images, 6, seed=0)[1].labels.tolist() == [0, 1, 2, 4, 6, 18]
    fold = out_of_fold_scores(torch.zeros(6, 1), torch.arange(6) % 2, num_classes=2, folds=3, epochs=1, seed=0).fold
    assert fold.tolist() == [2, 0, 1, 1, 0, 2]


def test_a_purpose_and_a_seed_give_the_same_stream_everywhere() -> None:
    assert torch.randint(2**30, (2,), generator=stream_for("labels", 7)).tolist() == [842555002, 398758744]
