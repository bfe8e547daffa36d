"""Out-of-fold scores: no row is scored by a network that saw it, draws repeat, and wrong labels are found."""

import pytest
import torch
import torch.nn.functional as F

from linearcore import NormedScores
from linearcore.cleaning import LOSSES, _folds, flagging_auc, out_of_fold_scores, suspects
from linearcore.cleaning._networks import FoldNetworks, train_epochs
from linearcore.losses import FORMS
from linearcore.losses.baselines import BASELINES
from linearcore.noise import symmetric


def blobs(rows=300, classes=3, seed=0):
    stream = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % classes
    centres = 3 * torch.eye(classes, 4)
    return centres[labels] + torch.randn(rows, 4, generator=stream), labels


def found(features, labels, **options):
    options = {"num_classes": 3, "epochs": 6, "hidden": 16, "learning_rate": 0.01} | options
    return out_of_fold_scores(features, labels, **options)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_finds_wrong_labels(loss):
    features, clean = blobs()
    noisy = symmetric(clean, 0.2, num_classes=3, seed=1)
    scores = found(features, noisy.labels, loss=loss, epochs=20).scores
    assert flagging_auc(suspects(scores, noisy.labels).suspicion, noisy.labels != clean) > 0.9


def test_networks_that_norm_their_scores_are_each_as_alone():
    inputs = torch.randn(3, 20, 4, generator=torch.Generator().manual_seed(0))
    networks = FoldNetworks(3, (4, 8, 3), torch.Generator().manual_seed(1), True)
    layers = [NormedScores(3) for _ in range(3)]
    with torch.no_grad():
        raw = []
        for place, own in enumerate(inputs):
            first, first_bias, second, second_bias = (parameter[place] for parameter in networks.parameters)
            raw.append((own @ first + first_bias).relu() @ second + second_bias)
        expected = torch.stack([layer(scores) for layer, scores in zip(layers, raw, strict=True)])
        torch.testing.assert_close(networks.scores(inputs), expected, rtol=1e-4, atol=1e-4)
        for place, (layer, scores) in enumerate(zip(layers, raw, strict=True)):
            scores -= networks.parameters[3][place]  # No bias there: a norm would take it away.
            layer.norm.running_mean -= 0.1 * networks.parameters[3][place, 0]
            torch.testing.assert_close(networks.scores_of(place, inputs[place]), layer.eval()(scores), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_that_want_it_have_normed_scores(loss, monkeypatch):
    made = []

    def spy(*args):
        made.append(FoldNetworks(*args))
        return made[-1]

    monkeypatch.setattr(_folds, "FoldNetworks", spy)
    features, labels = blobs(30)
    found(features, labels, loss=loss, epochs=1)
    found(features, labels, loss=LOSSES[loss], epochs=1)
    found(features, labels, loss=LOSSES[loss].function, epochs=1)  # A function is taken as it is.
    *norms, without = [network.norm for network in made]
    assert without is None
    for norm in norms:
        assert (norm is not None) == (loss == "unhinged")


def test_every_form_and_every_baseline_has_a_name():
    assert {f"lc-{form}" for form in FORMS} < set(LOSSES) and len(LOSSES) == 2 + len(FORMS) + len(BASELINES)
    assert {"ce", "gce", "nce+rce", "weston-watkins"} < set(LOSSES) and all(name.isascii() for name in LOSSES)


@pytest.mark.parametrize(("rows", "folds"), [(300, 5), (47, 4), (10, 10), (9, 2)])
def test_parts_are_of_equal_size_and_share_every_class(rows, folds):
    labels = torch.arange(rows) % 3
    fold = _folds._split(labels, folds, torch.Generator().manual_seed(0))
    for of in (fold, *(fold[labels == label] for label in range(3))):
        sizes = of.bincount(minlength=folds)
        assert int(sizes.max() - sizes.min()) <= 1
    assert not torch.equal(fold, _folds._split(labels, folds, torch.Generator().manual_seed(1)))


def test_a_label_does_not_touch_the_scores_of_its_own_row():
    # What a network is told of a row must not reach its score: change one label, in the same parts, and look at that row.
    features, labels = blobs(60)
    changed = labels.clone()
    changed[7] = (labels[7] + 1) % 3
    fold = torch.arange(60) % 5
    scores = []
    for given in (labels, changed):
        stream = torch.Generator().manual_seed(0)
        networks = FoldNetworks(5, (4, 8, 3), stream)
        others = [(fold != number).nonzero().squeeze(1) for number in range(5)]
        how = {"learning_rate": 0.01, "epochs": 2, "batch_size": 16, "generator": stream}
        for _ in train_epochs(networks, features, given, others, LOSSES["ce"], **how):
            pass
        scores.append(_folds._held_out(networks, features, fold))
    own = fold == fold[7]
    torch.testing.assert_close(scores[0][own], scores[1][own], rtol=0, atol=0)
    assert (scores[0][~own] != scores[1][~own]).any(1).all()


def test_no_network_is_trained_on_the_rows_that_it_scores(monkeypatch):
    told = []

    def spy(networks, inputs, labels, parts, *rest, **options):
        told.extend(parts)
        return train_epochs(networks, inputs, labels, parts, *rest, **options)

    monkeypatch.setattr(_folds, "train_epochs", spy)
    fold = found(*blobs(50), epochs=1, folds=4).fold
    assert len(told) == 4
    for number, rows in enumerate(told):
        assert sorted(rows.tolist()) == [row for row in range(50) if fold[row] != number]


def test_networks_side_by_side_are_trained_as_one_by_one():
    features, labels = blobs(50)
    parts = [torch.arange(0, 30), torch.arange(20, 50)]
    networks = FoldNetworks(2, (4, 8, 3), torch.Generator().manual_seed(0))
    alone = [FoldNetworks(1, (4, 8, 3), torch.Generator()) for _ in parts]
    for number, network in enumerate(alone):
        for mine, ours in zip(network.parameters, networks.parameters, strict=True):
            mine.data = ours.data[number : number + 1].clone()
    # One batch an epoch: then the order, which the networks draw in turn, makes no difference.
    how = {"learning_rate": 0.01, "epochs": 3, "batch_size": 100}
    for network, own in ((networks, parts), (alone[0], parts[:1]), (alone[1], parts[1:])):
        for _ in train_epochs(network, features, labels, own, LOSSES["lc"], generator=torch.Generator(), **how):
            pass
    for number, network in enumerate(alone):
        torch.testing.assert_close(network.scores_of(0, features), networks.scores_of(number, features))
    together = networks.scores(torch.stack([features, features]))
    torch.testing.assert_close(together[1], networks.scores_of(1, features))


def test_the_epoch_with_the_greatest_agreement_is_kept():
    features, clean = blobs(150)
    noisy = symmetric(clean, 0.4, num_classes=3, seed=0)
    options = {"learning_rate": 0.05, "hidden": 64, "loss": "ce"}
    whole = found(features, noisy.labels, epochs=25, **options)
    assert len(whole.agreement) == 25 and whole.epoch < 25
    assert whole.agreement[whole.epoch - 1] == max(whole.agreement)
    assert whole.agreement.index(max(whole.agreement)) == whole.epoch - 1
    assert float((whole.scores.argmax(1) == noisy.labels).double().mean()) == max(whole.agreement)
    # Stopped there, it is the same.
    torch.testing.assert_close(found(features, noisy.labels, epochs=whole.epoch, **options).scores, whole.scores)


def test_of_equal_epochs_the_earliest_is_kept():
    labels = torch.arange(60) % 3
    features = 20 * torch.eye(3)[labels] + torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    whole = found(features, labels, epochs=30)
    assert whole.agreement.count(max(whole.agreement)) > 1
    torch.testing.assert_close(found(features, labels, epochs=whole.epoch).scores, whole.scores)


def test_one_core_is_enough():
    used, before = set(), torch.get_num_threads()

    def loss(scores, labels):
        used.add(torch.get_num_threads())
        return LOSSES["ce"](scores, labels)

    torch.set_num_threads(2)
    try:
        found(*blobs(30), epochs=1, loss=loss)
        assert used == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_seed_names_the_result_and_global_streams_are_left_alone():
    features, labels = blobs()
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first, again, other = (found(features, labels, epochs=2, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first.scores, again.scores) and torch.equal(first.fold, again.fold)
    assert not torch.equal(first.fold, other.fold)
    assert torch.equal(before, torch.get_rng_state()) and torch.get_num_threads() == threads


def test_scale_and_kind_of_features_do_not_matter():
    features, labels = blobs()
    constant = torch.full((300, 1), 7.0)
    plain = found(torch.cat([features, constant], 1), labels, epochs=2).scores
    scaled = found(torch.cat([1000 * features + 5, constant], 1).double().numpy(), labels.numpy(), epochs=2).scores
    torch.testing.assert_close(plain, scaled, rtol=1e-3, atol=1e-3)


def test_a_loss_of_ones_own():
    features, labels = blobs()
    own = found(features, labels, loss=lambda s, y: F.cross_entropy(s, y, reduction="none"))
    torch.testing.assert_close(own.scores, found(features, labels, loss="ce").scores)


def test_a_class_with_one_row_is_suspicious():
    features, labels = blobs()
    labels[11] = 3
    ranked = suspects(found(features, labels, num_classes=4, epochs=15).scores, labels)
    assert 11 in ranked.order[:5] and ranked.suggested[11] != 3


def test_groups_stay_together_and_classes_are_shared():
    labels = torch.arange(60) % 3
    group = torch.arange(60) // 6 * 10 + labels  # 30 groups of two rows
    fold = _folds.stratified_folds(labels, 5, torch.Generator().manual_seed(0), group.numpy())
    assert all(len(set(fold[group == name].tolist())) == 1 for name in group.unique())
    assert (fold.bincount() == 12).all() and all((fold[labels == kind].bincount() == 4).all() for kind in range(3))
    with pytest.raises(ValueError, match="`folds` must be an integer from 2 to the number of different rows, 3, got 4"):
        _folds.stratified_folds(labels, 4, torch.Generator(), labels)


FEATURES, LABELS = torch.zeros(6, 2), [0, 1, 2, 0, 1, 2]
BAD = {
    "folds": ({"folds": 7}, "`folds` must be an integer from 2 to the number of rows, 6, got 7"),
    "one fold": ({"folds": 1}, "`folds` must be"),
    "float folds": ({"folds": 2.0}, "`folds` must be"),
    "epochs": ({"epochs": 0}, "`epochs` must be an integer of at least 1, got 0"),
    "hidden": ({"hidden": 0}, "`hidden` must be"),
    "batch": ({"batch_size": 0}, "`batch_size` must be"),
    "rate": ({"learning_rate": 0}, "`learning_rate` must be a positive number"),
    "seed": ({"seed": -1}, "`seed` must be"),
    "loss": ({"loss": "mse"}, "`loss` must be one of 'lc'"),
    "robust": (
        {"loss": "robust", "num_classes": 2},
        "`loss` must support 2 classes, got 'robust'",
    ),
    "mean loss": (
        {"loss": F.cross_entropy},
        r"`loss` must return one number per row, got shape \(\); pass a loss with reduction",
    ),
    "classes": ({"num_classes": 2}, r"`labels` must lie in 0\.\.1"),
    "diverged": ({"learning_rate": 1e30, "features": torch.eye(6)}, "`scores` must stay finite .* lower the learning rate"),
    "rows": ({"features": torch.zeros(5, 2)}, r"`labels` must have shape \(5,\)"),
    "nan": ({"features": torch.full((6, 2), torch.nan)}, "`features` must be finite"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD.keys())
def test_messages(options, message):
    options = {"features": FEATURES, "folds": 3} | options
    with pytest.raises(ValueError, match=message):
        found(options.pop("features"), LABELS, **options)
