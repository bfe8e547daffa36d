"""`ngram`: does training, or decoding, for a metric of whole outputs beat Hamming cost on that metric?

Three tasks: noun phrases of the Penn Treebank sample by span F1, feature strings of Turkish words by edit distance, and
generated spans by span F1 and aligned pairs of tags. All methods of a task have the same network, batches and learning rate.
The weight of the second term of a loss is chosen on dev with a seed of its own, the temperature of minimum-risk decoding on
dev in each run. `sentences` has numbers for the other sentences of the appendix.
"""

from functools import partial
from typing import Any

from linearcore_paper.experiments.ngram.chunks import ARCHIVE, check_data, data_hash
from linearcore_paper.experiments.ngram.claims import judge_claims
from linearcore_paper.experiments.ngram.figure import draw
from linearcore_paper.experiments.ngram.sentences import additivity, expectations, linear_rate, step_times, variances
from linearcore_paper.experiments.ngram.strings import FILES, treebank_hash
from linearcore_paper.experiments.ngram.table import rows_of
from linearcore_paper.experiments.ngram.training import GENERATED_TASKS, METHODS, METRICS, TEMPERATURES, Plan, train_run
from linearcore_paper.runner import After, Experiment, Outcome, Part, RecordedRun, Settings

TASKS = {
    "chunks": "noun phrases, Penn Treebank sample",
    "strings": "feature strings, Turkish Web Treebank",
    "generated": "generated spans",
}
#: Metrics of each task.
MEASURED = {"chunks": ("span-f1",), "strings": ("edit",), "generated": ("span-f1", "ngram")}
HASHES = {"chunks": data_hash, "strings": treebank_hash}
#: Seeds of the final runs; tuning runs use 0.
SEEDS = {"smoke": (1, 2), "paper": (1, 2, 3, 4, 5)}
WEIGHTS = {"smoke": (5.0,), "paper": (5.0, 20.0)}
STEPS = {"chunks": (400, 800), "strings": (400, 800), "generated": (200,)}
#: Methods that have runs with more than the fewest steps; all if the task is not here.
LONGER = {"strings": ("lc",)}
#: Steps and sentences at smoke scale.
SMALL_STEPS, SMALL_SENTENCES = 10, 24


def parts(settings: Settings) -> dict[str, Part]:
    """Returns the numbers for single sentences, the tuning runs and the final runs; treebanks are for scale paper only."""
    if settings.is_paper:
        check_data(settings.data, (ARCHIVE, *FILES))
    repeats = 30 if settings.is_paper else 3
    found: dict[str, Part] = {
        "additivity": additivity,
        "rate": linear_rate,
        "expectation": partial(expectations, 17 if settings.is_paper else 7),
        "variance": partial(variances, 17 if settings.is_paper else 7),
        "times": partial(step_times, repeats),
    }
    for task in _tasks(settings):
        for steps in _steps(task, settings):
            for method, metrics in trained(task, steps):
                found |= _runs(task, method, metrics, steps, settings)
    return found


def _tasks(settings: Settings) -> tuple[str, ...]:
    return tuple(TASKS) if settings.is_paper else tuple(GENERATED_TASKS)


def _steps(task: str, settings: Settings) -> tuple[int, ...]:
    return STEPS[task] if settings.is_paper else (SMALL_STEPS,)


def trained(task: str, steps: int) -> list[tuple[str, tuple[str, ...]]]:
    """Returns methods with the metrics that one run measures: one metric if the method trains for it, else all."""
    methods = LONGER.get(task, tuple(METHODS)) if steps > STEPS[task][0] else tuple(METHODS)
    return [
        (key, metrics)
        for key, method in METHODS.items()
        if key in methods
        for metrics in ([(metric,) for metric in MEASURED[task]] if method.uses_metric else [MEASURED[task]])
    ]


def run_name(task: str, method: str, metrics: tuple[str, ...], steps: int, seed: int) -> str:
    """Returns the name of a final run."""
    longer = "" if steps <= STEPS[task][0] else f"_{steps}-steps"
    return f"run_{task}_{method}_{'.'.join(metrics)}_seed{seed}{longer}"


def _runs(task: str, method: str, metrics: tuple[str, ...], steps: int, settings: Settings) -> dict[str, Part]:
    """Returns the tuning runs, if there is a weight to choose, which have the fewest steps, and the final runs."""
    least = _steps(task, settings)[0]
    weights = WEIGHTS[settings.scale] if METHODS[method].has_weight else (0.0,)
    names = {weight: f"tune_{task}_{method}_{'.'.join(metrics)}_{weight:g}" for weight in weights if len(weights) > 1}
    runs: dict[str, Part] = {
        name: _run(_plan(task, method, metrics, least, 0, weight, settings), settings, "dev")
        for weight, name in names.items()
    }

    def make(seed: int, results: dict[str, Any]) -> RecordedRun:
        best = max(weights, key=lambda weight: results[names[weight]]["metrics"][metrics[0]]["viterbi"] if names else 0)
        return _run(_plan(task, method, metrics, steps, seed, best, settings), settings, "test")

    for seed in SEEDS[settings.scale]:
        name = run_name(task, method, metrics, steps, seed)
        runs[name] = After(tuple(names.values()), partial(make, seed)) if names else make(seed, {})
    return runs


def _plan(
    task: str, method: str, metrics: tuple[str, ...], steps: int, seed: int, weight: float, settings: Settings
) -> Plan:
    sentences = 400 if settings.is_paper else SMALL_SENTENCES
    return Plan(task, method, metrics, settings.seed + seed, steps, weight, sentences)


def _run(plan: Plan, settings: Settings, part: str) -> RecordedRun:
    folder = settings.data if settings.is_paper else None
    compute = partial(train_run, plan, folder, part)
    data = HASHES[plan.task](folder) if folder is not None and plan.task in HASHES else None
    return RecordedRun(settings=plan.to_json() | {"part": part, "data": data}, seed=plan.seed, compute=compute)


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Builds the table and judges the sentences of the appendix."""
    rows = [
        row
        for task in _tasks(settings)
        for steps in _steps(task, settings)
        for method, metrics in trained(task, steps)
        for row in rows_of(
            task, method, steps, [results[run_name(task, method, metrics, steps, s)] for s in SEEDS[settings.scale]]
        )
    ]
    data = {
        "labels": {key: method.label for key, method in METHODS.items()},
        "metrics": {key: metric.label for key, metric in METRICS.items()},
        "tasks": TASKS,
        "rows": rows,
        "temperatures": list(TEMPERATURES),
        "weights": list(WEIGHTS[settings.scale]),
        "additivity": results["additivity"],
        "rate": results["rate"],
        "expectation": results["expectation"],
        "variance": results["variance"],
        "times": results["times"],
    }
    return Outcome(judge_claims(data, is_paper=settings.is_paper), data, _alt(rows))


def _alt(rows: list[dict[str, Any]]) -> str:
    texts = [f"{row['label']} {row['viterbi']['mean']:.1f} and {row['risk']['mean']:.1f}" for row in rows]
    return (
        "One panel for each task and metric: the score on test sentences of each way to train, with 95 % intervals, decoded "
        f"by Viterbi (filled) and for the metric (open). Viterbi and minimum risk: {'; '.join(texts)}."
    )


EXPERIMENT = Experiment(
    name="ngram",
    title="Train and decode for a metric",
    question="Does training, or decoding, for a metric beat Hamming cost on that metric?",
    shows="span F1, edit distance and n-gram overlap of taggers trained and decoded for them, against CRFs and Hamming cost",
    paper="Appendix K",
    needs="at paper scale --data with tagging/ptb_sample.zip and the Turkish Web Treebank",
    cost={"smoke": "6 s", "paper": "40 min"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
