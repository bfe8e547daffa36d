"""Fake results of `tagging` at paper scale, for tests of its conclusion."""

import math
from typing import Any

from linearcore_paper.experiments import tagging
from linearcore_paper.experiments.tagging.methods import METHODS
from linearcore_paper.experiments.tagging.training import ENCODINGS
from linearcore_paper.runner import Outcome, Settings

SETTINGS = Settings(scale="paper", device="cuda")
STEPS_AN_EPOCH = 100
#: Seconds per step, steps to the target, final accuracy, seconds per eager step, sequences in 16, 40 and 140 GB.
FACTS: dict[str, tuple[float, int, float, float, tuple[int, int, int]]] = {
    "broadcast": (0.5, 0, 0.0, 0.5, (1, 4, 15)),
    "crf": (0.04, 60, 90.0, 0.04, (20, 50, 180)),
    "ssvm": (0.3, 40, 90.2, 0.3, (0, 0, 0)),
    "ce": (0.004, 80, 89.0, 0.005, (400, 1000, 3500)),
    "lc": (0.0048, 60, 90.1, 0.006, (380, 950, 3300)),
    "lc-rank": (0.005, 50, 90.4, 0.007, (360, 900, 3200)),
    "lc-sampled": (0.006, 60, 89.5, 0.0075, (0, 0, 0)),
}


def made_results(with_bert: bool = True) -> dict[str, Any]:
    """Returns a result for each part, which the caller may modify."""
    found: dict[str, Any] = {}
    english = ["bilstm-adam", "bilstm-sgd", *(["bert"] if with_bert else [])]
    pairs = [*((source, encoding) for source in ("ptb", "ewt") for encoding in english), ("latin", "bilstm-adam")]
    for source, encoding in pairs:
        where = f"{source}_{encoding}"
        methods = [*tagging.TRAINED, *(["ssvm"] if (source, encoding) == ("ptb", "bilstm-adam") else [])]
        for method in methods:
            for place, rate in enumerate(ENCODINGS[encoding].rates):
                # The second learning rate is the best.
                found[f"tune_{where}_{method}_{rate:g}"] = made_run(method, 0, worse=abs(place - 1))
            for seed in tagging.SEEDS["paper"]:
                found[f"run_{where}_{method}_seed{seed}"] = made_run(method, seed)
        for method in (*methods, "broadcast"):
            seconds, _, _, plain, _ = FACTS[method]
            tags = 3499 if source == "latin" else 4000
            ways = {"plain": {"seconds": plain}, "compiled": {"seconds": seconds}}
            found[f"pace_{where}_{method}"] = {"seconds": seconds, "ways": ways, "tags": tags, "words_a_step": 850.0}
    for method in tagging.BATCH_METHODS:
        sequences = dict(zip(("16", "40", "140"), FACTS[method][4], strict=True))
        found[f"memory_{method}"] = {"sequences": sequences, "words": 128, "tags": 4000, "held_gb": 150}
    for place, method in enumerate(METHODS):
        found[f"peak_{method}"] = {"peak_gb": 1.5 + place, "held_gb": 0.25, "sequences": 8, "words": 128, "tags": 4000}
    return found


def made_run(method: str, seed: int, worse: float = 0.0) -> dict[str, Any]:
    """Returns a run whose curve rises to the accuracy of its method; seeds differ by a tenth of a point."""
    _, reached, accuracy, _, _ = FACTS[method]
    final = accuracy + 0.1 * seed - worse
    pace = -math.log(1 - 83 / final) / reached
    steps = [*range(20, reached + 1, 20), *range(max(100, reached), 801, 50)]
    return {
        "curve": [[step, round(final * (1 - math.exp(-pace * step)), 2)] for step in dict.fromkeys(steps)],
        "reached": reached,
        "steps": 8 * STEPS_AN_EPOCH,
        "steps_an_epoch": STEPS_AN_EPOCH,
        "dev_accuracy": final + 1.0,
        "test_accuracy": final,
    }


def concluded(results: dict[str, Any], with_bert: bool = True) -> Outcome:
    """Returns the conclusion, independent of the installed packages."""
    before = tagging.has_bert
    tagging.has_bert = lambda: with_bert
    try:
        return tagging.conclude(results, SETTINGS)
    finally:
        tagging.has_bert = before
