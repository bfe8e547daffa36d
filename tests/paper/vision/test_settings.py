import json

import pytest

from linearcore_paper.vision import Recipe


def test_the_defaults_are_the_papers():
    recipe = Recipe()
    assert (recipe.network, recipe.width, recipe.epochs, recipe.batch) == ("resnet18", 64, 50, 128)
    assert (recipe.lr, recipe.momentum, recipe.nesterov, recipe.weight_decay) == (0.1, 0.9, False, 5e-4)
    assert (recipe.schedule, recipe.warmup, recipe.augment, recipe.loss_scale) == ("cosine", 0.0, True, 1.0)


def test_it_survives_json():
    recipe = Recipe("small", epochs=7, nesterov=True)
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


@pytest.mark.parametrize(
    "change, message",
    [
        ({"network": "vgg"}, "`network` must be one of 'resnet18', 'small', 'resnet18-normed', 'small-normed', "),
        ({"schedule": "steps"}, "`schedule` must be one of"),
        ({"precision": "fp16"}, "`precision` must be one of"),
        ({"epochs": 0}, "`epochs` must be a positive integer, got 0"),
        ({"batch": 1.5}, "`batch` must be a positive integer, got 1.5"),
        ({"width": True}, "`width` must be a positive integer, got True"),
        ({"lr": -0.1}, "`lr` must be a positive number, got -0.1"),
        ({"loss_scale": 0}, "`loss_scale` must be a positive number, got 0"),
        ({"weight_decay": -1}, "`weight_decay` must be a number in"),
        ({"momentum": 1.0}, "`momentum` must be below 1"),
        ({"warmup": 1.2}, "`warmup` must be a number in"),
        ({"seed": -1}, "`seed` must be an integer in"),
        ({"nesterov": True, "momentum": 0.0}, "`nesterov` must have a momentum, got 0"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**change)
