"""Benchmarks that take a GPU: what they keep, and what they hand to training."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from linearcore import NormedScores
from linearcore.losses.baselines import unhinged
from linearcore_paper.experiments.noise.images import draw_labels, read_images
from linearcore_paper.vision import hold_out

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """A name ↦ the module of a benchmark."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str):
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load


def test_only_what_depends_on_the_same_is_found_again(script, tmp_path):
    work = script("_work")
    assert work.kept(tmp_path, {"rate": 0.1}) is None
    work.keep(tmp_path, {"rate": 0.1}, {"dev": 3.0})
    assert work.kept(tmp_path, {"rate": 0.1}) == {"dev": 3.0} and work.kept(tmp_path, {"rate": 0.2}) is None
    # A file with the right name and another content is somebody else's.
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps({"run": {"rate": 0.3}, "found": {"dev": 4.0}}), encoding="utf-8")
    assert work.kept(tmp_path, {"rate": 0.1}) is None


def test_everything_that_decides_a_variant_of_chains_is_told(script):
    variants = script("chain_variants")
    usual = {"name": "rank 64", "source": "made", "rate": 0.01, "seed": 0, "data": None}
    told = variants._depends(**usual)
    for other in ({"name": "rank 64, unary ½"}, {"rate": 0.02}, {"seed": 1}, {"name": "token cross-entropy"}):
        assert variants._depends(**usual | other) != told, other
    assert told["epochs"] == 4 and told["hidden"] == 16 and told["batch"] == 8


def test_only_losses_that_say_so_have_normed_scores_on_letters(script):
    letters = script("noisy_letters")
    inputs, labels = torch.randn(256, 16, generator=torch.Generator().manual_seed(0)), torch.arange(256) % 26
    for name in letters.LOSSES:
        network = letters._trained(inputs, labels, name, 1.0, 0, letters.QUICK)
        behind = network[-1]
        assert isinstance(behind, NormedScores) == ("normed" in name)
    assert "unhinged, normed scores" in letters.LOSSES and "unhinged" not in letters.LOSSES


def test_sweep_trains_and_judges_with_wrong_labels_and_every_scale(script, monkeypatch):
    search = script("robust_search")
    made = []

    def spy(runs, progress):
        made.extend(runs)
        history = [{"validation_accuracy": 50.0}]
        return [SimpleNamespace(failed=None, history=history) for _ in runs]

    monkeypatch.setattr(search, "train_many", spy)
    monkeypatch.setattr(
        search, "Run", lambda data, loss, recipe, **options: SimpleNamespace(data=data, recipe=recipe, **options)
    )
    args = SimpleNamespace(seed=3, quick=True, device="cpu", epochs=1, beside=2, scales=[1.0, 0.1])
    rows, settings = search.search("made-up", None, ["CE", "pairwise"], args)
    assert [(row["loss"], row["scale"]) for row in rows] == [
        (name, scale) for name in ("CE", "pairwise") for scale in (1.0, 0.1)
    ]
    clean = read_images("made-up", None).train
    noisy = draw_labels("made-up", None, "instance", 0.4, 3)
    rest, held = hold_out(clean.with_labels(noisy.labels), 80, 3)
    assert not torch.equal(rest.labels, hold_out(clean, 80, 3)[0].labels)
    for run, row in zip(made, rows, strict=True):
        assert torch.equal(run.data.labels, rest.labels) and torch.equal(run.validation.labels, held.labels)
        assert run.recipe.loss_scale == row["scale"] and run.recipe.seed == 3
    assert settings["noise"]["labels"] == noisy.hash and settings["held_out"] == 80
    # Only a loss without a minimum has another network.
    made.clear()
    search.search("made-up", None, list(search.CANDIDATES), args)
    networks = {run.name: run.recipe.network for run in made}
    assert len(networks) == 2 * len(search.CANDIDATES)
    for name, network in networks.items():
        assert network == ("small-normed" if "unhinged" in name else "small")


def test_widths_differ_in_core_alone_and_count_wrong_labels_that_are_given_back(script, monkeypatch):
    widths = script("core_width")
    made = []

    class Spy:
        is_done = True

        def __init__(self, data, loss, recipe, **options):
            self.data, self.loss, self.recipe, self.test = data, loss, recipe, options["test"]
            made.append(self)

        def result(self):
            """It knows the labels of every third image by heart, and the truth about the others."""
            true = widths.images_of(widths.QUICK, None, 0.4, 3)[2]
            guess = torch.where(torch.arange(len(true)) % 3 == 0, self.data.labels, true)
            scores = torch.nn.functional.one_hot(guess, 4)
            return SimpleNamespace(failed=None, history=[{"test_accuracy": 50.0}], scores=lambda images: scores)

    monkeypatch.setattr(widths, "Run", Spy)
    rows = [widths.one_run(widths.QUICK, None, row, 0.4, 3) for row in widths.ROWS]
    names = ["core up to 0.1", "core up to 0.5", "core up to 1", "no tail"]
    assert [row["row"] for row in rows] == names
    train, test, true, _ = widths.images_of(widths.QUICK, None, 0.4, 3)
    clean = read_images("made-up", None)
    wrong = (train.labels != true).nonzero().squeeze(1)
    assert 20 < len(wrong) < 80
    assert {row["learned"] for row in rows} == {round(100 * float((wrong % 3 == 0).double().mean()), 3)}
    assert torch.equal(test.labels, clean.test.labels[:60])
    for run in made:
        assert run.data is train and run.test is test and run.recipe.seed == 3 and run.recipe.network == "small-normed"
    # Without a tail it is the unhinged loss, up to a factor and a constant.
    scores, labels = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 4
    z = NormedScores(4)(scores)
    ours, theirs = made[3].loss(z, labels), unhinged(z, labels, reduction="none")
    slope = (ours - ours.mean()).norm() / (theirs - theirs.mean()).norm()
    torch.testing.assert_close(ours - ours.mean(), slope * (theirs - theirs.mean()), atol=1e-3, rtol=0)
    bent = made[1].loss(z, labels)
    assert (bent - bent.mean() - slope * (theirs - theirs.mean())).abs().max() > 0.05


def test_learners_that_know_the_law_of_wrong_labels(script):
    favourites = script("favourites")
    # Three classes of two inputs. Of class 0 all become 1; of 1 one becomes 0 and one 2; of 2 all become 1.
    clean, wrong = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([1, 1, 0, 2, 1, 1])
    by_pixels = favourites.label_probabilities("pixels", clean, wrong, 0.6, 3)
    assert torch.equal(by_pixels[3], torch.tensor([0.0, 0.4, 0.6], dtype=torch.float64))
    by_class = favourites.label_probabilities("class", clean, wrong, 0.6, 3)
    torch.testing.assert_close(by_class[2:4], torch.tensor([[0.3, 0.4, 0.3]] * 2, dtype=torch.float64))
    share = favourites.accuracy_of
    assert share(by_pixels, clean, "likeliest") == 0 and share(by_class, clean, "likeliest") == pytest.approx(100 / 3)
    # By hand: means 7/30, 8/15, 7/30; class 0 has more of 0 than others, though 1 is likelier, and so has 2 of 2.
    assert share(by_class, clean, "normed") == pytest.approx(200 / 3)
    assert share(torch.full((6, 3), 1 / 3), clean, "likeliest") == pytest.approx(100 / 3)
    # Its own standard deviation decides: the first is 0.2 and 0.07 above the means, which is 1.2 and 1.4 deviations.
    table = torch.tensor([[0.50, 0.40, 0.10], [0.30, 0.29, 0.41], [0.10, 0.30, 0.60]])
    assert share(table, torch.tensor([1, 2, 2]), "normed") == pytest.approx(100)


def test_wrong_labels_are_the_same_at_every_rate(script):
    favourites = script("favourites")
    data = read_images("made-up", None).train
    becomes = favourites.wrong_labels(data, 2).labels
    assert (becomes != data.labels).all()
    for rate in (0.2, 0.6):
        noisy = draw_labels("made-up", None, "instance", rate, 2).labels
        assert torch.equal(noisy, torch.where(noisy == data.labels, data.labels, becomes))
        assert (noisy != data.labels).any()
