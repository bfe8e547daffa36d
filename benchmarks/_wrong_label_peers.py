"""cleanlab's and Datalab's rankings and counts from the same probabilities, for `wrong_labels.py`."""

import contextlib
import io
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

#: What cleanlab and Datalab need.
PACKAGES = ("cleanlab", "datasets", "pandas")


def missing() -> list[str]:
    """Returns the packages that are not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


def versions() -> dict[str, str]:
    """Returns the versions of cleanlab and datasets."""
    from importlib.metadata import version

    return {name: version(name) for name in ("cleanlab", "datasets")}


def rankings(given: npt.NDArray[np.int64], probabilities: Array) -> dict[str, Array]:
    """Returns suspicion (N,), larger is more suspicious, of each score of cleanlab, with its default among them."""
    from cleanlab.rank import get_label_quality_scores

    methods = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
    found = {f"cleanlab {name}": -get_label_quality_scores(given, probabilities, method=name) for name in methods}
    for name in methods[:2]:
        scores = get_label_quality_scores(given, probabilities, method=name, adjust_pred_probs=True)
        found[f"cleanlab {name}, adjusted"] = -scores
    return found


def counts(given: npt.NDArray[np.int64], probabilities: Array) -> dict[str, int]:
    """Returns cleanlab's estimated numbers of wrong labels."""
    from cleanlab.count import num_label_issues
    from cleanlab.filter import find_label_issues

    found: dict[str, Any] = {"cleanlab num_label_issues": num_label_issues(given, probabilities)}
    calibrated = num_label_issues(given, probabilities, estimation_method="off_diagonal_calibrated")
    found["cleanlab num_label_issues, calibrated"] = calibrated
    for name in ("prune_by_noise_rate", "both"):
        found[f"cleanlab find_label_issues, {name}"] = find_label_issues(
            given, probabilities, filter_by=name, n_jobs=1
        ).sum()
    return {name: int(number) for name, number in found.items()}


def datalab(given: npt.NDArray[np.int64], probabilities: Array) -> tuple[Array, int]:
    """Returns Datalab's suspicion (N,) and its number of label issues."""
    from cleanlab import Datalab

    # One job: its own processes fail inside a process of the benchmark.
    settings = {"label": {"clean_learning_kwargs": {"find_label_issues_kwargs": {"n_jobs": 1}}}}
    with contextlib.redirect_stdout(io.StringIO()):
        lab = Datalab(data={"label": given.tolist()}, label_name="label", verbosity=0)
        lab.find_issues(pred_probs=probabilities, issue_types=settings)
        issues = lab.get_issues("label")
    return -issues["label_score"].to_numpy(), int(issues["is_label_issue"].sum())
