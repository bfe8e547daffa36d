"""`gradient-histogram`: gradient magnitudes of right and wrong labels, late in training with 40 % wrong labels."""

from functools import partial
from pathlib import Path
from typing import Any

from linearcore.cleaning import flagging_auc
from linearcore_paper.experiments.gradient_histogram.figure import draw
from linearcore_paper.experiments.gradient_histogram.gradients import (
    BINS,
    HIGH,
    last_bin_fraction,
    magnitudes,
    magnitudes_of_two,
    summarize,
)
from linearcore_paper.experiments.noise.images import LAWS, SOURCES, check_data, draw_labels, read_images
from linearcore_paper.experiments.noise.losses import LOSSES
from linearcore_paper.experiments.noise.methods import METHODS
from linearcore_paper.experiments.noise.training import Plan, label_facts
from linearcore_paper.runner import Claim, Experiment, Outcome, Part, RecordedRun, Settings, Verdict, verdict
from linearcore_paper.vision import Run

#: The paper's two losses; the runs are the first epochs of those of `noise`.
LOSS_KEYS = ("ce", "lc")
RATE, SEED = 0.4, 1
#: Epoch after which gradients are measured.
EPOCH = {"cifar10": 40, "made-up": 2}
#: Two definitions of the magnitude: with all classes, as in training, and with the two strongest only.
ALL, ALONE = "against all competitors", "against the strongest alone"
READINGS = (ALL, ALONE)
#: The letter of the correction about constant gradients.
CONSTANT = "o"


def parts(settings: Settings) -> dict[str, Part]:
    """Returns one part for each loss."""
    source = "cifar10" if settings.is_paper else "made-up"
    check_data(source, settings.data)
    runs: dict[str, Part] = {}
    for key in LOSS_KEYS:
        plan = Plan(source, key, METHODS[key].configs[0], "instance", RATE, settings.seed + SEED)
        run_settings = plan.to_json(settings.data) | {
            "bins": BINS,
            "epoch": EPOCH[source],
            "magnitude": "|∂ℓ/∂s_y|, of all classes and of two",
        }
        compute = partial(measure, plan, settings.data, settings.device)
        runs[f"run_{key}_seed{SEED}"] = RecordedRun(settings=run_settings, seed=plan.seed, compute=compute)
    return runs


def measure(plan: Plan, folder: Path | None, device: str) -> dict[str, Any]:
    """Trains as in `noise`, stops late in training, and measures the gradient magnitude of every training image."""
    noisy = draw_labels(plan.source, folder, plan.law, plan.rate, plan.seed)
    sets = read_images(plan.source, folder)
    data, loss = sets.train.with_labels(noisy.labels), plan.make_loss()
    # The learning rate follows the full schedule, although the last epochs are not run.
    run = Run(data, loss, plan.recipe(device), device=device, evaluate_every=plan.recipe(device).epochs)
    for _ in range(EPOCH[plan.source]):
        if run.epoch() is None:
            return label_facts(noisy) | {"failed": run.result().failed}
    scores = run.scores(data.images).cpu()
    is_wrong = data.labels != sets.train.labels
    values = magnitudes(loss, scores, data.labels)
    alone = magnitudes_of_two(loss, scores, data.labels)
    prediction = scores.argmax(1)
    return label_facts(noisy) | {
        "readings": {ALL: summarize(values, is_wrong), ALONE: summarize(alone, is_wrong)},
        "auc": round(flagging_auc(values, is_wrong), 4),
        "train_accuracy": round(100 * float((prediction == sets.train.labels).double().mean()), 3),
        "wrong_learned": round(100 * float((prediction == data.labels)[is_wrong].double().mean()), 3),
    }


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Compares the histograms with the paper's."""
    runs = {key: results[f"run_{key}_seed{SEED}"] for key in LOSS_KEYS}
    data = {
        "bins": BINS,
        "epoch": EPOCH["cifar10" if settings.is_paper else "made-up"],
        "labels": {key: METHODS[key].label for key in LOSS_KEYS},
        "law": LAWS["instance"].to_json() | {"rate": RATE},
        "magnitude": "|∂ℓ/∂s_y|, y the noisy label: 1 − p_y for CE, the mean of |φ'(s_y − s_v)| over v ≠ y for LC; and with "
        "the strongest competing class only, at margin u over it, 1 − σ(u) and |φ'(u)|",
        "readings": READINGS,
        "runs": runs,
        "source": SOURCES["cifar10" if settings.is_paper else "made-up"],
    }
    failed = [key for key, run in runs.items() if "failed" in run]
    if failed:
        failures = "; ".join(f"{LOSSES[key].label}: {runs[key]['failed']}" for key in failed)
        claims = [
            Claim("Late in training the gradients of wrong labels are as in the paper", "Figure 5", failures, "not judged")
        ]
        return Outcome(claims, data, f"Nothing to draw, since training failed. {failures}")
    claims = [judge(runs[key], reading, settings) for key, judge in (("ce", _broad), ("lc", _peak)) for reading in READINGS]
    return Outcome([*claims, _learned(runs, settings)], data, _alt(data))


def _judged(holds: bool, settings: Settings) -> Verdict:
    return verdict(holds) if settings.is_paper else "not judged"


def _broad(run: dict[str, Any], reading: str, settings: Settings) -> Claim:
    """Checks that most wrong labels have large magnitudes, which are not concentrated in one bin."""
    wrong = run["readings"][reading]["wrong"]
    high = wrong["share_high"]
    fullest = max(wrong["counts"][round(HIGH * BINS) :]) / max(1, sum(wrong["counts"]))
    return Claim(
        claim=f"Cross-entropy's gradient magnitudes of wrong labels are spread over 0.6 to 1, {reading}",
        paper="0.6 to 1.0 (figure)",
        ours=f"{_percent(high)} of the wrong labels have magnitude {HIGH:g} or above, {_percent(fullest)} are in the "
        f"fullest bin (width {1 / BINS:g}) of that range; mean {wrong['mean']:.3f} ± {wrong['deviation']:.3f}",
        verdict=_judged(high >= 0.5 and fullest <= high / 2, settings),
    )


def _peak(run: dict[str, Any], reading: str, settings: Settings) -> Claim:
    """Checks that most wrong labels are in the last bin."""
    groups = run["readings"][reading]
    wrong, right = (last_bin_fraction(groups[name]["counts"]) for name in ("wrong", "right"))
    return Claim(
        claim=f"The linear core's magnitudes of wrong labels have a sharp peak at 1, {reading}",
        paper="Dirac-like peak at 1.0 (figure)",
        ours=f"{_percent(wrong)} of the wrong labels are above {1 - 1 / BINS:g}, and {_percent(right)} of the right ones; "
        f"mean {groups['wrong']['mean']:.3f} ± {groups['wrong']['deviation']:.3f}",
        verdict=_judged(wrong >= 0.5, settings),
    )


def _learned(runs: dict[str, Any], settings: Settings) -> Claim:
    """Checks whether fewer wrong labels are learned. This does not show that the constant gradient is the cause."""
    texts = [
        f"{LOSSES[key].label} learns {run['wrong_learned']:.1f} % of the wrong labels; mean magnitude "
        f"{groups['wrong']['mean']:.3f} for wrong and {groups['right']['mean']:.3f} for right labels; wrong "
        f"labels, {_percent(run['realised_rate'])} of all, have {_percent(groups['wrong']['share_of_push'])} of the sum"
        for key, run, groups in ((key, run, run["readings"][ALL]) for key, run in runs.items())
    ]
    holds = runs["lc"]["wrong_learned"] < runs["ce"]["wrong_learned"]
    return Claim(
        claim="The linear core's constant gradient prevents wrong labels from being learned",
        paper="“effectively ignores the degree of wrongness”, and so keeps the boundary from moving",
        ours=f"{'. '.join(texts)}. This does not show that the constant gradient is the cause",
        verdict=verdict(holds, CONSTANT) if settings.is_paper else "not judged",
        correction=CONSTANT if settings.is_paper else None,
    )


def _alt(data: dict[str, Any]) -> str:
    texts = [
        f"{data['labels'][key]}, {reading}: {_percent(last_bin_fraction(groups['wrong']['counts']))} of the wrong and "
        f"{_percent(last_bin_fraction(groups['right']['counts']))} of the right labels in the last bin, means "
        f"{groups['wrong']['mean']:.2f} and {groups['right']['mean']:.2f}."
        for key, run in data["runs"].items()
        for reading, groups in run["readings"].items()
    ]
    return (
        f"Histograms of the gradient magnitude at the noisy label after epoch {data['epoch']}, from 0 to 1, for right and "
        f"wrong labels, a panel for each loss and definition of the magnitude. {' '.join(texts)}"
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


EXPERIMENT = Experiment(
    name="gradient-histogram",
    title="Gradients of right and wrong labels",
    question="How large are the gradients of wrong labels late in training?",
    shows="gradient magnitudes of right and wrong labels late in training, with cross-entropy and with a linear core",
    paper="Figure 5, section 4.3",
    needs="at paper scale --data with CIFAR-10, and a GPU",
    cost={"smoke": "2 s", "paper": "4 min on an H200 with --workers 2, next to four other runs"},
    parts=parts,
    conclude=conclude,
    draw=draw,
    needs_gpu=True,
)
