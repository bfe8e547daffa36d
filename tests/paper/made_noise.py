"""Fake results of `noise` at paper scale, for tests of its conclusion."""

from linearcore_paper.experiments import noise
from linearcore_paper.experiments.noise.methods import METHODS
from linearcore_paper.experiments.noise.table import run_name, tune_names

#: Test accuracies at 0, 20, 30, 40, 50 and 60 %, and at 40 % of symmetric noise.
AS_IN_THE_PAPER = {
    "ce": (94, 83.2, 77.83, 72.88, 61.08, 37.5, 70),
    "ce-tuned": (94, 84, 78, 73, 62, 38, 71),
    "gce-tuned": (93.5, 83.23, 77.9, 72.93, 61.14, 37.57, 85),
    "gce-normed": (93.4, 84, 78, 73, 62, 38, 84),
    "lc": (94, 84.24, 80.52, 75.49, 63.57, 39.86, 75),
    "logodds": (94, 85, 81, 76, 64, 40, 76),
    "unhinged-tuned": (93, 86, 82, 77, 65, 41, 77),
    "robust": (93.6, 92, 91, 89.2, 70, 45, 88),
}
AREAS = {"ce": 0.7, "ce-tuned": 0.8, "robust": 0.97}


def made_up(accuracies=AS_IN_THE_PAPER, areas=AREAS, failed=()):
    """Returns results of all parts; the three seeds differ by 0.1."""
    results = {}
    columns = sorted(noise.COLUMNS["paper"], key=lambda column: (column.law, column.rate))
    for key, method in METHODS.items():
        for name in tune_names(key, METHODS):
            results[name] = {
                "noisy_validation_accuracy": 50.0 + (name[-1] == "5"),
                "noisy_labels": "…",
                "realised_rate": 0.4,
            }
        for column, value in zip(columns, accuracies[key], strict=True):
            area = areas.get(key, 0.75) if column.rate else None
            seeds = column.seeds_of(method)
            for seed in seeds:
                results[run_name(column, key, seed)] = {
                    "test_accuracy": value + (0.1 * (seed - 2) if len(seeds) > 1 else 0.0),
                    "best_accuracy": value + 1, "auc_margin": area, "auc_loss": area and area - 0.01,
                    "agreement": 60.0, "wrong_learned": area and 20.0,
                    "train_accuracy": 80.0, "realised_rate": column.rate, "curve": [[50, value]],
                    "noisy_labels": f"drawn with seed {seed}",
                }  # fmt: skip
    return results | {name: {"failed": "loss is not finite in epoch 3"} for name in failed}
