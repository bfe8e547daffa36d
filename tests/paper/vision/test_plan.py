import math
from dataclasses import replace

import pytest
import torch

from linearcore_paper.vision import Recipe
from linearcore_paper.vision._plan import MAX_SHIFT, epoch_plan, epoch_rates

RECIPE = Recipe(batch=16, epochs=4, lr=1.0)


def rates(steps, recipe):
    return torch.cat([epoch_rates(steps, recipe, epoch) for epoch in range(recipe.epochs)]).tolist()


def test_an_epoch_sees_each_image_once_and_full_batches_only():
    plan = epoch_plan(50, RECIPE, epoch=0)
    assert plan.shape == (4, 48) and plan.dtype == torch.int64
    assert len(set(plan[0].tolist())) == 48 and 0 <= int(plan[0].min()) <= int(plan[0].max()) < 50


def test_moves_reach_every_place_alike_and_half_are_mirrored():
    _, down, right, flip = epoch_plan(90_000, replace(RECIPE, batch=1), epoch=0)
    for moved in (down, right):
        counts = torch.bincount(moved + MAX_SHIFT, minlength=9)
        assert len(counts) == 9 and counts.tolist() == pytest.approx([10_000] * 9, rel=0.05)
    assert flip.double().mean() == pytest.approx(0.5, abs=0.01) and set(flip.tolist()) == {0, 1}
    assert abs(float(torch.corrcoef(torch.stack([down, right, flip]).double())[0, 1])) < 0.02


def test_a_plan_depends_on_seed_and_epoch_alone():
    one = epoch_plan(50, RECIPE, epoch=3)
    assert torch.equal(one, epoch_plan(50, replace(RECIPE, lr=0.3, network="small", weight_decay=0.0), epoch=3))
    assert not torch.equal(one, epoch_plan(50, RECIPE, epoch=2))
    assert not torch.equal(one, epoch_plan(50, replace(RECIPE, seed=1), epoch=3))
    assert not torch.equal(epoch_plan(50, replace(RECIPE, seed=1), epoch=2), one)
    still = epoch_plan(50, replace(RECIPE, augment=False), epoch=3)
    assert torch.equal(still[0], one[0]) and not still[1:].any()


def test_a_plan_stays_what_it_is_from_version_to_version():
    assert epoch_plan(5, Recipe(batch=2), epoch=0).tolist() == [[1, 3, 2, 4], [-4, 2, 0, 3], [-4, -4, 1, -4], [1, 0, 0, 1]]


def test_the_cosine_falls_to_zero_step_by_step():
    found = rates(5, RECIPE)
    assert found == pytest.approx([(1 + math.cos(math.pi * step / 20)) / 2 for step in range(20)])
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    for rate in found:
        assert rate == pytest.approx(schedule.get_last_lr()[0], abs=1e-6)
        optimizer.step()
        schedule.step()


def test_the_rate_can_rise_first_fall_linearly_or_stay():
    rising = rates(5, replace(RECIPE, warmup=0.25))
    assert rising[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rising[5] == pytest.approx(1.0) and rising[-1] == pytest.approx((1 + math.cos(math.pi * 14 / 15)) / 2)
    assert rates(5, replace(RECIPE, schedule="linear")) == pytest.approx([1 - step / 20 for step in range(20)])
    assert rates(5, replace(RECIPE, schedule="constant", lr=0.25)) == [0.25] * 20
