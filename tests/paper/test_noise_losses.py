"""What the runs of `noise` are made of: losses, choices, wrong labels, and what training scores say."""

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from linearcore.surrogates import LinearCore
from linearcore_paper.experiments import noise
from linearcore_paper.experiments.gradient_histogram.gradients import (
    BINS,
    histogram,
    last_bin_fraction,
    magnitudes,
    magnitudes_of_two,
    summarize,
)
from linearcore_paper.experiments.noise.images import LAWS, draw_labels, read_images
from linearcore_paper.experiments.noise.losses import LOSSES, NORMED_CORE, name_of
from linearcore_paper.experiments.noise.methods import METHODS, SMALL_METHODS, Config, best_of
from linearcore_paper.experiments.noise.training import label_metrics
from linearcore_paper.runner import ResultsFile
from linearcore_paper.vision import Images

EXPERIMENTS = Path(noise.__file__).parents[1]
SCORES = 3 * torch.randn(64, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.arange(64) % 10
OWN = SCORES.gather(1, LABELS[:, None])
#: (64, 9): margins over all competitors.
MARGINS = (OWN - SCORES)[F.one_hot(LABELS, 10) == 0].reshape(64, 9)


def test_losses_are_what_their_names_say():
    p = SCORES.softmax(1).gather(1, LABELS[:, None]).squeeze(1)
    centred = SCORES - SCORES.mean(1, keepdim=True)
    on_sphere = centred / centred.norm(dim=1, keepdim=True)
    odds = p.logit()
    expected = {
        "ce": -p.log(),
        "gce": (1 - p**0.7) / 0.7,
        "gce-normed": (1 - p**0.7) / 0.7,
        # One-sided, logistic, τ = 1, mean over competitors.
        "lc": torch.where(MARGINS <= 1, 1 - MARGINS + 2 * math.log(2), 2 * F.softplus(1 - MARGINS)).mean(1),
        "lc-sum": LinearCore(tau=1.0).value(MARGINS).sum(1),
        "lc-normed": LinearCore(tau=1.0).value(MARGINS).mean(1),
        "lc-wide": NORMED_CORE.value(MARGINS).mean(1),
        "logodds": torch.where(odds <= 1, 1 - odds + 2 * math.log(2), 2 * F.softplus(1 - odds)),
        "unhinged": 1 - MARGINS.mean(1),
        # All of a sphere lies in the core.
        "robust": 2 + 2 * math.log(2) - 10 / 9 * on_sphere.gather(1, LABELS[:, None]).squeeze(1),
    }  # fmt: skip
    assert list(expected) == list(LOSSES)
    for key, values in expected.items():
        loss = LOSSES[key].make({"q": 0.7} if key.startswith("gce") else {})
        torch.testing.assert_close(loss(SCORES, LABELS), values)


def test_names_of_losses_tell_everything_that_decides():
    assert name_of(LOSSES["gce"].make({"q": 0.5})) == "generalized_cross_entropy(q=0.5, reduction='none')"
    told = {
        "lc": ("tau=1", "sides=1", "'pairwise'", "normalize=True"),
        "robust": ("tau=2", "radius=1.0"),
    }
    for key, words in told.items():
        name = name_of(LOSSES[key].make({}))
        assert all(word in name for word in words), name


@pytest.mark.parametrize("key", LOSSES)
def test_committed_runs_are_found_by_the_names_of_today(key):
    recorded = {record["settings"]["loss"] for record in ResultsFile(EXPERIMENTS, "noise").parts.values()}
    assert name_of(LOSSES[key].make({"q": 0.5} if key.startswith("gce") else {})) in recorded


@pytest.mark.parametrize("key", METHODS)
def test_every_configuration_can_be_used_and_differs(key):
    configs = METHODS[key].configs
    assert len({config.words for config in configs}) == len(configs)
    for config in configs:
        assert LOSSES[METHODS[key].loss].make(config.options)(SCORES, LABELS).shape == (64,)
    assert METHODS[key].is_tuned == (key not in ("ce", "lc"))
    if not METHODS[key].is_tuned:
        assert configs == (Config(scale=1.0, decay=5e-4),)
    assert set(SMALL_METHODS) == {"ce", "lc", "robust"}


def test_choice_is_the_first_of_the_best_that_did_not_fail():
    best = {"noisy_validation_accuracy": 60.0}
    assert best_of([{"noisy_validation_accuracy": 55.0}, best, best]) == 1
    assert best_of([{"failed": "…"}, {"noisy_validation_accuracy": 0.0}]) == 1
    assert best_of([{"failed": "…"}, {"failed": "…"}]) == 0


def test_words_of_a_configuration():
    assert Config(0.02, 2e-3, {"q": 0.7}).words == "scale 0.02, decay 0.002, q 0.7"


def test_wrong_labels_are_drawn_by_their_law():
    clean = read_images("made-up", None).train
    symmetric = draw_labels("made-up", None, "symmetric", 0.4, 1)
    assert symmetric.law == LAWS["symmetric"].to_json() == {"generator": "symmetric"}
    assert symmetric.realised_rate == pytest.approx(0.4, abs=0.08)
    instance = draw_labels("made-up", None, "instance", 0.4, 1)
    assert instance.law == LAWS["instance"].to_json()
    assert instance.hash not in (symmetric.hash, draw_labels("made-up", None, "instance", 0.4, 2).hash)
    assert torch.equal(draw_labels("made-up", None, "instance", 0.0, 1).labels, clean.labels)


def test_images_are_made_the_same_every_time_and_classes_can_be_told_apart():
    sets = read_images("made-up", None)
    assert (len(sets.train), len(sets.test)) == (480, 240)
    assert sets.train.digest == "e412780608750f6b"
    for data in (sets.train, sets.test):
        colours = data.images.double().mean((2, 3))
        centres = torch.stack([colours[data.labels == label].mean(0) for label in range(4)])
        assert torch.equal(torch.cdist(colours, centres).argmin(1), data.labels)
    assert not torch.equal(sets.train.images[:240], sets.test.images)


def test_images_without_a_folder():
    with pytest.raises(ValueError, match="`data` must be a folder with CIFAR-10, got none; pass --data DIR"):
        read_images("cifar10", None)


def test_magnitudes_of_both_losses_of_the_paper():
    p = SCORES.softmax(1).gather(1, LABELS[:, None]).squeeze(1)
    torch.testing.assert_close(magnitudes(LOSSES["ce"].make({}), SCORES, LABELS), 1 - p)
    slopes = LinearCore(tau=1.0).derivative(MARGINS).abs().mean(1)
    found = magnitudes(LOSSES["lc"].make({}), SCORES, LABELS)
    torch.testing.assert_close(found, slopes)
    assert 0 <= found.min() < 0.5 and found.max() == 1
    with pytest.raises(ValueError, match=r"lie in \[0, 1\], got 1.11111"):
        magnitudes(lambda s, y: 10 / 9 * LOSSES["lc"].make({})(s, y), SCORES, LABELS)


def test_magnitudes_against_the_strongest_competitor_alone():
    closest = MARGINS.amin(1)
    torch.testing.assert_close(magnitudes_of_two(LOSSES["ce"].make({}), SCORES, LABELS), torch.sigmoid(-closest))
    found = magnitudes_of_two(LOSSES["lc"].make({}), SCORES, LABELS)
    torch.testing.assert_close(found, LinearCore(tau=1.0).derivative(closest).abs())
    assert found.min() < 0.5 and torch.equal(found[closest <= 1], torch.ones_like(found[closest <= 1]))


def test_histogram_has_both_ends():
    counts = histogram(torch.tensor([0.0, 0.0199, 0.02, 0.98, 1.0, 1.0], dtype=torch.float64))
    assert len(counts) == BINS == 50 and sum(counts) == 6
    assert (counts[0], counts[1], counts[48], counts[49]) == (2, 1, 0, 3)
    assert last_bin_fraction(counts) == 0.5


def test_description_of_pushes():
    values = torch.tensor([0.2, 0.4, 0.6, 1.0], dtype=torch.float64)
    found = summarize(values, torch.tensor([False, False, True, True]))
    assert (found["right"]["mean"], found["wrong"]["mean"]) == (0.3, 0.8)
    assert (found["right"]["share_high"], found["wrong"]["share_high"]) == (0.0, 1.0)
    assert (found["right"]["share_of_push"], found["wrong"]["share_of_push"]) == (0.2727, 0.7273)
    nothing = summarize(torch.zeros(4, dtype=torch.float64), torch.tensor([False, False, True, True]))
    assert nothing["wrong"]["share_of_push"] == 0.0


def test_what_training_scores_say():
    clean = torch.tensor([0, 1, 2, 0])
    given = torch.tensor([0, 1, 0, 1])
    # Follows the first wrong label, and is wrong about the second image in its own way.
    scores = torch.tensor([[3.0, 0, 0], [0, 2.0, 0], [4.0, 0, 1.0], [0, 0, 5.0]])
    data = Images(torch.zeros(4, 1, 2, 2, dtype=torch.uint8), given, ("a", "b", "c"))
    found = label_metrics(scores, data, clean, LOSSES["ce"].make({}))
    assert (found["agreement"], found["train_accuracy"], found["wrong_learned"]) == (75.0, 50.0, 50.0)
    # Suspicions by margin −3, −2, −3, 5: one tie and one pair in the wrong order.
    assert found["auc_margin"] == 0.625
    losses = F.cross_entropy(scores, given, reduction="none")
    assert losses[2] < losses[0] < losses[1] < losses[3] and found["auc_loss"] == 0.5
    # Any loss will do: its own numbers rank.
    assert label_metrics(scores, data, clean, lambda *_: torch.arange(4.0))["auc_loss"] == 1.0
    right = label_metrics(scores, data.with_labels(clean), clean, LOSSES["ce"].make({}))
    assert (right["wrong_learned"], right["auc_margin"], right["auc_loss"]) == (None, None, None)
