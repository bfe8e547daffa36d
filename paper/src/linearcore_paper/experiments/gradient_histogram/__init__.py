"""`gradient-histogram`: late in training with 40 % of wrong labels, how hard right and wrong labels push."""

from functools import partial
from pathlib import Path
from typing import Any

from linearcore.cleaning import flagging_auc
from linearcore_paper.experiments.gradient_histogram.figure import draw
from linearcore_paper.experiments.gradient_histogram.gradients import (
    BINS,
    HIGH,
    described,
    magnitudes,
    magnitudes_alone,
    share_at_one,
)
from linearcore_paper.experiments.noise.images import LAWS, SOURCES, check_data, draw_labels, read_images
from linearcore_paper.experiments.noise.losses import LOSSES
from linearcore_paper.experiments.noise.methods import METHODS
from linearcore_paper.experiments.noise.training import Plan, draw_name
from linearcore_paper.runner import Claim, Experiment, Outcome, Part, RecordedRun, Settings, Verdict, verdict
from linearcore_paper.vision import Run

#: As in the paper; the same runs as those of `noise`, which go on to the end.
SHOWN = ("ce", "lc")
RATE, SEED = 0.4, 1
#: After which epoch is looked at.
EPOCH = {"cifar10": 40, "made-up": 2}
#: Of what a magnitude is: of what the network gets, and of what it would get of two classes.
ALL, ALONE = "against all competitors", "against the strongest alone"
READINGS = (ALL, ALONE)
#: The letter of the correction on what a constant push means.
CONSTANT = "o"


def parts(settings: Settings) -> dict[str, Part]:
    """A part for each loss."""
    source = "cifar10" if settings.is_paper else "made-up"
    check_data(source, settings.data)
    found: dict[str, Part] = {}
    for key in SHOWN:
        plan = Plan(source, key, METHODS[key].configs[0], "instance", RATE, settings.seed + SEED)
        told = plan.to_json(settings.data) | {
            "bins": BINS,
            "epoch": EPOCH[source],
            "magnitude": "|∂ℓ/∂s_y|, of all classes and of two",
        }
        compute = partial(look, plan, settings.data, settings.device)
        found[f"run_{key}_seed{SEED}"] = RecordedRun(settings=told, seed=plan.seed, compute=compute)
    return found


def look(plan: Plan, folder: Path | None, device: str) -> dict[str, Any]:
    """Trains as `noise` does, stops late, and looks at the push of every training image."""
    noisy = draw_labels(plan.source, folder, plan.law, plan.rate, plan.seed)
    sets = read_images(plan.source, folder)
    data, loss = sets.train.with_labels(noisy.labels), plan.make_loss()
    # The rate follows the whole schedule, though the last epochs are not done.
    run = Run(data, loss, plan.recipe(device), device=device, evaluate_every=plan.recipe(device).epochs)
    for _ in range(EPOCH[plan.source]):
        if run.epoch() is None:
            return draw_name(noisy) | {"failed": run.result().failed}
    scores = run.scores(data.images).cpu()
    is_wrong = data.labels != sets.train.labels
    values = magnitudes(loss, scores, data.labels)
    alone = magnitudes_alone(loss, scores, data.labels)
    guess = scores.argmax(1)
    return draw_name(noisy) | {
        "readings": {ALL: described(values, is_wrong), ALONE: described(alone, is_wrong)},
        "auc": round(flagging_auc(values, is_wrong), 4),
        "train_accuracy": round(100 * float((guess == sets.train.labels).double().mean()), 3),
        "wrong_learned": round(100 * float((guess == data.labels)[is_wrong].double().mean()), 3),
    }


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Histograms, and whether they are as the paper has them."""
    runs = {key: results[f"run_{key}_seed{SEED}"] for key in SHOWN}
    data = {
        "bins": BINS,
        "epoch": EPOCH["cifar10" if settings.is_paper else "made-up"],
        "labels": {key: METHODS[key].label for key in SHOWN},
        "law": LAWS["instance"].to_json() | {"rate": RATE},
        "magnitude": "|∂ℓ/∂s_y|, y the given label: 1 − p_y for CE, the mean of |φ'(s_y − s_v)| over v ≠ y for LC; and, as "
        "if the strongest competitor were the only one and u the margin over it, 1 − σ(u) and |φ'(u)|",
        "readings": READINGS,
        "runs": runs,
        "source": SOURCES["cifar10" if settings.is_paper else "made-up"],
    }
    failed = [key for key, run in runs.items() if "failed" in run]
    if failed:
        told = "; ".join(f"{LOSSES[key].label}: {runs[key]['failed']}" for key in failed)
        claims = [Claim("Late in training wrong labels push as the paper draws it", "Figure 5", told, "not judged")]
        return Outcome(claims, data, f"Nothing to draw, since training failed. {told}")
    claims = [judge(runs[key], reading, settings) for key, judge in (("ce", _broad), ("lc", _peak)) for reading in READINGS]
    return Outcome([*claims, _learned(runs, settings)], data, _alt(data))


def _judged(holds: bool, settings: Settings) -> Verdict:
    return verdict(holds) if settings.is_paper else "not judged"


def _broad(run: dict[str, Any], reading: str, settings: Settings) -> Claim:
    """Most wrong labels lie in the upper part, and no bin holds most of these."""
    wrong = run["readings"][reading]["wrong"]
    high = wrong["share_high"]
    fullest = max(wrong["counts"][round(HIGH * BINS) :]) / max(1, sum(wrong["counts"]))
    return Claim(
        claim=f"Cross-entropy pushes wrong labels with a broad range of magnitudes from 0.6 to 1, {reading}",
        paper="0.6 to 1.0 (figure)",
        ours=f"{_percent(high)} of the wrong labels are at {HIGH:g} or above, {_percent(fullest)} of them all in the "
        f"fullest bin of {1 / BINS:g} there; mean {wrong['mean']:.3f} ± {wrong['deviation']:.3f}",
        verdict=_judged(high >= 0.5 and fullest <= high / 2, settings),
    )


def _peak(run: dict[str, Any], reading: str, settings: Settings) -> Claim:
    """Most wrong labels lie in the last bin."""
    groups = run["readings"][reading]
    wrong, right = (share_at_one(groups[name]["counts"]) for name in ("wrong", "right"))
    return Claim(
        claim=f"The linear core's magnitudes of wrong labels have a sharp peak at 1, {reading}",
        paper="Dirac-like peak at 1.0 (figure)",
        ours=f"{_percent(wrong)} of the wrong labels are above {1 - 1 / BINS:g}, and {_percent(right)} of the right ones; "
        f"mean {groups['wrong']['mean']:.3f} ± {groups['wrong']['deviation']:.3f}",
        verdict=_judged(wrong >= 0.5, settings),
    )


def _learned(runs: dict[str, Any], settings: Settings) -> Claim:
    """Whether wrong labels are learned less; that a constant push is why is another matter."""
    told = [
        f"{LOSSES[key].label} learns {run['wrong_learned']:.1f} % of the wrong labels, of which one pushes with "
        f"{groups['wrong']['mean']:.3f}, a right one with {groups['right']['mean']:.3f}; wrong ones, "
        f"{_percent(run['realised_rate'])} of all, make {_percent(groups['wrong']['share_of_push'])} of the push"
        for key, run, groups in ((key, run, run["readings"][ALL]) for key, run in runs.items())
    ]
    holds = runs["lc"]["wrong_learned"] < runs["ce"]["wrong_learned"]
    return Claim(
        claim="The linear core's constant gradient keeps wrong labels from being learned",
        paper="“effectively ignores the degree of wrongness”, and so keeps the boundary from moving",
        ours=f"{'. '.join(told)}. That the constant gradient is why does not follow",
        verdict=verdict(holds, CONSTANT) if settings.is_paper else "not judged",
        correction=CONSTANT if settings.is_paper else None,
    )


def _alt(data: dict[str, Any]) -> str:
    told = [
        f"{data['labels'][key]}, {reading}: {_percent(share_at_one(groups['wrong']['counts']))} of the wrong and "
        f"{_percent(share_at_one(groups['right']['counts']))} of the right labels in the last bin, means "
        f"{groups['wrong']['mean']:.2f} and {groups['right']['mean']:.2f}."
        for key, run in data["runs"].items()
        for reading, groups in run["readings"].items()
    ]
    return (
        f"Histograms of the gradient's size at the given label after epoch {data['epoch']}, from 0 to 1, for right and for "
        f"wrong labels, a panel for each loss and reading. {' '.join(told)}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


EXPERIMENT = Experiment(
    name="gradient-histogram",
    title="Gradients of clean and wrong labels",
    question="Late in training, how hard do wrong labels still push?",
    shows="how hard right and wrong labels push late in training, with cross-entropy and with a linear core",
    paper="Figure 5, section 4.3",
    needs="for the paper's scale --data with CIFAR-10, and a GPU",
    cost={"smoke": "2 s", "paper": "4 min on an H200 with --workers 2, beside four other runs"},
    parts=parts,
    conclude=conclude,
    draw=draw,
    needs_gpu=True,
)
