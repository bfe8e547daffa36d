"""`gradient-histogram`: when it looks, and what it concludes from histograms that are made up."""

import pytest
import torch

from linearcore_paper.experiments import gradient_histogram
from linearcore_paper.experiments.noise.methods import Config
from linearcore_paper.experiments.noise.training import Plan
from linearcore_paper.runner import Settings
from linearcore_paper.vision import Run

PAPER = Settings(scale="paper")


def summarize(wrong, right, alone=None):
    """The result of a run with all labels in a few bins; {bin: count}. `alone`: both in the other reading."""
    found = {"noisy_labels": "…", "realised_rate": 0.4, "auc": 0.8, "train_accuracy": 80.0, "wrong_learned": 20.0}
    readings = {gradient_histogram.ALL: groups(wrong, right), gradient_histogram.ALONE: groups(*(alone or (wrong, right)))}
    return found | {"readings": readings}


def groups(wrong, right):
    values = {
        name: torch.cat([torch.full((count,), (place + 0.5) / 50, dtype=torch.float64) for place, count in group.items()])
        for name, group in (("wrong", wrong), ("right", right))
    }
    is_wrong = torch.cat([torch.full((len(values[name]),), name == "wrong") for name in ("wrong", "right")])
    everything = torch.cat([values["wrong"], values["right"]])
    return gradient_histogram.summarize(everything, is_wrong)


def histogram_verdicts(ce, lc):
    found = gradient_histogram.conclude({"run_ce_seed1": ce, "run_lc_seed1": lc}, PAPER)
    assert gradient_histogram.EXPERIMENT.draw(found.data).axes
    return [claim.verdict for claim in found.claims]


BROAD = summarize({32: 20, 36: 20, 40: 20, 44: 20, 49: 20, 5: 10}, {0: 100, 10: 50})
PEAK = summarize({49: 100, 20: 10}, {0: 100, 10: 50})
SMALL = summarize({5: 100}, {49: 100})


def test_histograms_as_the_paper_has_them():
    assert histogram_verdicts(BROAD, PEAK)[:4] == ["holds"] * 4


def test_other_histograms():
    assert histogram_verdicts(PEAK, BROAD)[:4] == ["does not hold"] * 4
    assert histogram_verdicts(SMALL, SMALL)[:4] == ["does not hold"] * 4


def test_what_is_learned_decides_and_no_histogram():
    for ce, lc in ((BROAD, PEAK), (PEAK, BROAD), (SMALL, SMALL)):
        assert histogram_verdicts(ce, lc | {"wrong_learned": 12.8})[4] == "holds with a correction"
        assert histogram_verdicts(ce, lc | {"wrong_learned": 20.0})[4] == "does not hold"


#: A wrong label loses to one of nine competitors: a ninth of the push against all, and all of it against that one.
NINTH = summarize({5: 100}, {0: 150}, alone=({49: 100}, {10: 150}))


def test_every_reading_is_judged_for_itself():
    assert histogram_verdicts(BROAD, NINTH)[:4] == ["holds", "holds", "does not hold", "holds"]
    spread = {32: 20, 36: 20, 40: 20, 44: 20, 49: 20}
    other = summarize({5: 100}, {0: 150}, alone=(spread, {0: 150}))
    assert histogram_verdicts(other, SMALL)[:4] == ["does not hold", "holds", "does not hold", "does not hold"]


def test_figure_and_words_have_both_readings():
    found = gradient_histogram.conclude({"run_ce_seed1": BROAD, "run_lc_seed1": NINTH}, PAPER)
    panels = gradient_histogram.EXPERIMENT.draw(found.data).axes
    titles = ["CE as in the paper", "LC as in the paper"]
    assert [panel.get_title() for panel in panels] == [
        f"{title}, {reading}" for reading in gradient_histogram.READINGS for title in titles
    ]
    tallest = [[int(patch.get_data().values.argmax()) for patch in panel.patches] for panel in panels]
    # Right labels first.
    assert tallest[1] == [0, 5] and tallest[3] == [10, 49]
    assert "LC as in the paper, against all competitors: 0.0 % of the wrong" in found.alt
    assert "LC as in the paper, against the strongest alone: 100.0 % of the wrong" in found.alt


def test_words_of_the_histogram():
    found = gradient_histogram.conclude({"run_ce_seed1": BROAD, "run_lc_seed1": PEAK}, PAPER)
    assert "90.9 %" in found.claims[2].ours and "0.0 %" in found.claims[2].ours
    readings = [claim.claim.rpartition(", ")[2] for claim in found.claims[:4]]
    assert readings == [*gradient_histogram.READINGS, *gradient_histogram.READINGS]
    assert "20.0 %" in found.claims[4].ours and found.claims[4].correction == "o"
    assert "40.0 %" in found.claims[4].ours and "90.0 %" in found.claims[4].ours
    assert "90.9 % of the wrong" in found.alt and "after epoch 40" in found.alt


def test_failed_training_leaves_nothing_to_judge():
    failed = {"failed": "loss is not finite in epoch 3", "noisy_labels": "…", "realised_rate": 0.4}
    assert histogram_verdicts(failed, PEAK) == ["not judged"]


def test_histogram_is_taken_before_the_end_of_the_same_schedule(monkeypatch):
    made = []

    class Spy(Run):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            made.append(self)

    monkeypatch.setattr(gradient_histogram, "Run", Spy)
    found = gradient_histogram.measure(Plan("made-up", "lc", Config(), "instance", 0.4, 1), None, "cpu")
    [run] = made
    assert (run.state.epoch, run.recipe.epochs) == (2, 3)
    for groups in found["readings"].values():
        counts = [sum(groups[name]["counts"]) for name in ("right", "wrong")]
        assert sum(counts) == 480 and counts[1] / 480 == pytest.approx(found["realised_rate"])
    # Cross-entropy pushes less where it sees one competitor only.
    other = gradient_histogram.measure(Plan("made-up", "ce", Config(), "instance", 0.4, 1), None, "cpu")
    pushes = [other["readings"][reading]["wrong"]["mean"] for reading in gradient_histogram.READINGS]
    assert pushes[1] < pushes[0]
    assert gradient_histogram.EPOCH["cifar10"] == 40
    with monkeypatch.context() as patch:
        patch.setattr(Spy, "epoch", lambda self: None)
        patch.setattr(Spy, "result", lambda self: type("Failed", (), {"failed": "no"}))
        assert gradient_histogram.measure(Plan("made-up", "lc", Config(), "instance", 0.4, 1), None, "cpu")["failed"] == "no"
