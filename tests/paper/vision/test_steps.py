import copy
import functools
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from linearcore.losses.baselines import EarlyLearning
from linearcore.runtime import GraphStepper
from linearcore_paper.vision import Recipe, Run, train_many
from linearcore_paper.vision._losses import SampleLoss
from linearcore_paper.vision._plan import epoch_plan, epoch_rates
from linearcore_paper.vision._result import new_network
from linearcore_paper.vision._steps import Stepper
from linearcore_paper.vision._views import Normal, as_pixels, crop
from tests.paper.vision.toy_images import LOSS, SHORT, toy

DATA = toy(70).to("cpu")
NORMAL = Normal.of(DATA.images)


def stepper_of(recipe, loss=LOSS):
    network = new_network(recipe, 3, 3)
    stepper = Stepper(network, SampleLoss(loss, "cpu"), DATA, NORMAL, recipe)
    stepper.load(epoch_plan(len(DATA), recipe, 0), epoch_rates(stepper.steps, recipe, 0))
    return stepper


RECIPES = [
    SHORT,
    replace(SHORT, weight_decay=0.3),
    replace(SHORT, momentum=0.0),
    replace(SHORT, nesterov=True),
    replace(SHORT, loss_scale=3.0),
    replace(SHORT, augment=False, warmup=0.3, schedule="linear"),
    replace(SHORT, network="resnet18", width=2),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=range(len(RECIPES)))
def test_steps_are_those_of_a_plain_loop(recipe):
    stepper = stepper_of(recipe)
    network = copy.deepcopy(stepper.network).to(memory_format=torch.contiguous_format).train()
    plan, rates = epoch_plan(len(DATA), recipe, 0), epoch_rates(stepper.steps, recipe, 0)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=1.0, momentum=recipe.momentum, nesterov=recipe.nesterov, weight_decay=recipe.weight_decay
    )
    total = 0.0
    for step in range(stepper.steps):
        stepper.step()
        index, down, right, flip = plan[:, step * 16 : step * 16 + 16]
        inputs = NORMAL(crop(as_pixels(DATA.images), index, down, right, flip)).contiguous()
        loss = F.cross_entropy(network(inputs), DATA.labels[index])
        optimizer.param_groups[0]["lr"] = float(rates[step])
        optimizer.zero_grad()
        (recipe.loss_scale * loss).backward()
        optimizer.step()
        total += float(loss.detach())
    assert int(stepper.counter) == stepper.steps == 4
    assert float(stepper.total) == pytest.approx(total, rel=1e-4)
    for found, expected in zip(stepper.network.state_dict().values(), network.state_dict().values(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=2e-5)


def test_weights_decay_where_the_loss_asks_for_nothing():
    recipe = Recipe("small", width=2, batch=16, lr=0.1, weight_decay=0.5, momentum=0.0, schedule="constant")
    stepper = stepper_of(recipe, lambda scores, labels: 0 * scores.sum(1))
    before = [parameter.detach().clone() for parameter in stepper.network.parameters()]
    stepper.step()
    for old, new in zip(before, stepper.network.parameters(), strict=True):
        torch.testing.assert_close(new.detach(), old * (1 - 0.1 * 0.5))


def test_a_state_put_back_gives_the_same_steps_again():
    stepper = stepper_of(SHORT, EarlyLearning(70, 3))
    stepper.step()
    saved = {name: value.clone() for name, value in stepper.state().items()}
    places = {name: value.data_ptr() for name, value in stepper.state().items()}
    for _ in range(2):
        stepper.step()
    after = {name: value.clone() for name, value in stepper.state().items()}
    assert not torch.equal(after["loss.history"], saved["loss.history"])
    stepper.restore({name: value.contiguous() for name, value in saved.items()})
    assert all(torch.equal(value, saved[name]) for name, value in stepper.state().items())
    for _ in range(2):
        stepper.step()
    assert all(torch.equal(value, after[name]) for name, value in stepper.state().items())
    # Graphs look for everything where it was.
    assert {name: value.data_ptr() for name, value in stepper.state().items()} == places


def test_strides_of_sides_of_length_one_are_made_to_agree():
    stepper = stepper_of(replace(SHORT, network="resnet18", width=2))
    parameter = next(one for one in stepper.network.parameters() if one.dim() == 4 and one.shape[2:] == (1, 1))
    gradient = torch.randn(parameter.shape)
    odd = gradient.as_strided(parameter.shape, (parameter.shape[1], 1, 77, 99))
    parameter.grad = odd
    stepper._align()
    assert parameter.grad.stride() == parameter.stride() and torch.equal(parameter.grad, odd)
    assert parameter.grad.data_ptr() == gradient.data_ptr()
    # And so in every step, before the update.
    parameter.register_hook(lambda grad: grad.contiguous().as_strided(grad.shape, (grad.shape[1], 1, 77, 99)))
    stepper.step()
    assert parameter.grad.stride() == parameter.stride()


def test_half_precision_is_for_the_network_and_not_for_the_loss():
    dtypes = []

    def loss(scores, labels):
        dtypes.append((scores.dtype, torch.is_autocast_enabled("cpu")))
        return F.cross_entropy(scores, labels)

    half, full = stepper_of(replace(SHORT, precision="bf16"), loss), stepper_of(SHORT, loss)
    half.step()
    full.step()
    assert dtypes == [(torch.float32, False)] * 2
    assert all(parameter.dtype == torch.float32 for parameter in half.network.parameters())
    assert float(half.total) == pytest.approx(float(full.total), rel=0.05) and float(half.total) != float(full.total)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="wants a GPU")
@pytest.mark.parametrize("loss", [LOSS, EarlyLearning(70, 3)])
def test_runs_of_captured_steps_are_runs_of_plain_steps(loss, monkeypatch):
    def runs(captured):
        with monkeypatch.context() as patch:
            if not captured:
                plain = functools.partial(GraphStepper, use_graphs=False)
                patch.setattr("linearcore_paper.vision._steps.GraphStepper", plain)
            return train_many([Run(toy(70), loss, replace(SHORT, seed=seed), device="cuda") for seed in (3, 4)])

    for one, other in zip(runs(True), runs(False), strict=True):
        losses = [[row["loss"] for row in found.history] for found in (one, other)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-2) and losses[0][-1] < losses[0][0]
    assert not torch.backends.cudnn.benchmark


@pytest.mark.skipif(not torch.cuda.is_available(), reason="wants a GPU")
def test_a_run_on_a_gpu_goes_on_where_it_was_saved(tmp_path):
    def run(**more):
        return Run(DATA, EarlyLearning(70, 3), SHORT, device="cuda", loss_name="elr", **more)

    first = run(out=tmp_path)
    first.epoch()
    first.start()
    first.step()
    first.save()
    first.close()  # Releases the folder.
    (found,), (whole,) = (train_many([one]) for one in (run(out=tmp_path), run()))
    assert found.resumed == (2, 1)
    assert [row["loss"] for row in found.history] == pytest.approx([row["loss"] for row in whole.history], rel=1e-2)
