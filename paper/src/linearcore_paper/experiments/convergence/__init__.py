"""`convergence`: test error of a linear sequence tagger against seconds of training, for SSVM, CRF and linear cores.

The paper's setting: 1,000 training sequences of 20 positions, 200 tags, 20 inputs, one sequence per step. All methods start
from zero and use SGD without momentum. Each uses the learning rate of one grid with the lowest validation error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.convergence.data import NOISE, Task
from linearcore_paper.experiments.convergence.figure import draw
from linearcore_paper.experiments.convergence.training import (
    METHODS,
    SAMPLES,
    chosen,
    find_route,
    marks_until,
    reached,
    train,
    tune,
)
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, Verdict, verdict

#: Learning rates, including the paper's.
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
BATCHES = (1, 8, 32)
#: The two settings of a method: the paper's batch size, and the one of `BATCHES` with the lowest error after equal time.
ONE, SUITED = "one", "suited"
ALL, SAMPLED = ("logodds", "pairwise"), ("sampled-logodds", "sampled-pairwise")
#: The paper's target error, and its seconds for the sampled linear core and for the SSVM.
PAPER_ERROR, PAPER_SAMPLED, PAPER_SEARCH = 0.35, 10, 250
#: The target is the SSVM's final error plus `NEAR`; the linear core should reach it `FACTOR` times faster.
NEAR, FACTOR = 0.005, 10
#: Transitions matter if the oracle's error is below this fraction of the error of decoding without transitions.
CLEARLY = 0.5
#: The correction about Algorithm 1 and the speed of sampled steps.
TRAINING = "p"
#: A method fails if its error is more than this many times the lowest error of the other methods.
FAILS = 2.0


@dataclass(frozen=True)
class Size:
    """Sizes of a scale."""

    tags: int
    length: int
    inputs: int
    noise: float
    chains: tuple[int, int, int]
    steps: int
    tuning: int
    marks: int
    rates: tuple[float, ...]
    batches: tuple[int, ...]
    compiled: bool

    def draw(self, seed: int) -> Task:
        """Draws the data."""
        return Task.draw(self.tags, self.length, self.inputs, self.noise, self.chains, seed)


SIZES = {
    # With fewer inputs the embeddings are closer together, so less noise gives equally difficult tags.
    "smoke": Size(40, 8, 10, 1.0, (200, 40, 60), 400, 50, 8, (0.001, 0.01, 0.1), (1, 8), False),
    "paper": Size(200, 20, 20, NOISE, (1000, 300, 300), 20_000, 4_000, 24, RATES, BATCHES, True),
}


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns the oracle, and one part for each method and setting."""
    work: dict[str, PartFunction] = {"oracle": partial(_oracle, settings)}
    for setting in (ONE, SUITED):
        work |= {f"{key}-{setting}": partial(_curve, key, setting, settings) for key in METHODS}
    return work


@cache
def _task(size: Size, seed: int, device: str) -> Task:
    task = size.draw(seed)
    return Task(task.model, *(chains.to(device) for chains in (task.train, task.validation, task.test)))


def _oracle(settings: Settings) -> dict[str, Any]:
    """Computes the error of decoding with the true parameters, and without transitions."""
    task = SIZES[settings.scale].draw(settings.seed)
    return {
        "oracle": round_values(task.model.oracle_error(task.test), 5),
        "unary": round_values(task.model.unary_error(task.test, task.train), 5),
    }


def _curve(key: str, setting: str, settings: Settings) -> dict[str, Any]:
    """Tunes a method on validation data, then measures its error curve on test data."""
    size, method = SIZES[settings.scale], METHODS[key]
    task = _task(size, settings.seed, settings.device)
    sizes = (1,) if setting == ONE else size.batches
    routes = [find_route(method, task, batch, compiled=size.compiled) for batch in sizes]
    # Steps that cannot be compiled are slow; such a method is tuned with the largest batch size only.
    tuned = routes if method.explicit is not None else routes[-1:]
    rows = tune(tuned, task, size.rates, size.tuning * routes[0].pace, settings.seed + 1)
    best = chosen(rows)
    route = next(route for route in routes if route.batch == best["batch"])
    # Train for the time that all steps take with the paper's batch size.
    last = max(size.marks, round(size.steps * routes[0].pace / route.pace))
    curve = train(route, task, best["rate"], marks_until(last, size.marks), settings.seed + 1, task.test)
    run = {"method": key, "label": method.label, "setting": setting, "batch": best["batch"], "rate": best["rate"]}
    return run | {
        "routes": [{"batch": route.batch, **route.to_json()} for route in routes],
        "tuning": rows,
        "curve": curve,
        "threads": torch.get_num_threads(),
    }


@dataclass(frozen=True)
class Runs:
    """All curves of one setting, by method, and the target error."""

    setting: str
    by_method: dict[str, dict[str, Any]]
    target: float

    def last(self, key: str) -> float:
        """Returns the final error."""
        return float(self.by_method[key]["curve"]["error"][-1])

    def until(self, key: str, target: float | None = None) -> float | None:
        """Returns the seconds until a target error (default: that of the setting)."""
        return reached(self.by_method[key]["curve"], self.target if target is None else target)

    def times(self, key: str, target: float | None = None) -> float | None:
        """Returns the SSVM's time to a target divided by that of a method."""
        ours, search = self.until(key, target), self.until("ssvm", target)
        return None if ours is None or search is None else search / max(ours, 1e-9)

    def pace(self, key: str) -> dict[str, Any]:
        """Returns the path used and the seconds per step of all paths, for the chosen batch size."""
        run = self.by_method[key]
        route_data: dict[str, Any] = next(route for route in run["routes"] if route["batch"] == run["batch"])
        return route_data


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Compares the time that each method needs to reach the SSVM's final error."""
    size, errors = SIZES[settings.scale], results["oracle"]
    goal = results[f"ssvm-{ONE}"]["curve"]["error"][-1] + NEAR
    one, suited = (Runs(name, {key: results[f"{key}-{name}"] for key in METHODS}, goal) for name in (ONE, SUITED))
    claims = [
        _paper_claim(one, settings),
        *(_factor_claim(runs, ALL, "over all tags", size, settings) for runs in (one, suited)),
        *(_factor_claim(runs, SAMPLED, f"with {SAMPLES} sampled tags", size, settings) for runs in (one, suited)),
        _oracle_claim(errors),
        _sequences_claim(one, suited, errors),
    ]
    data = {
        "tags": size.tags,
        "length": size.length,
        "inputs": size.inputs,
        "noise": size.noise,
        "chains": dict(zip(("train", "validation", "test"), size.chains, strict=True)),
        "steps": size.steps,
        "samples": SAMPLES,
        "rates": list(size.rates),
        "target": round_values(goal, 5),
        "errors": errors,
        "clock": "seconds of training on the machine under `environment`, without decoding and without compiling, which "
        "took `compile_seconds` (nearly 0 for steps that the run had compiled before). Other machines give other times and, "
        "with larger batches, other numbers of steps. Errors are measured after each increase of the steps by a quarter",
        "runs": [run for runs in (one, suited) for run in runs.by_method.values()],
    }
    return Outcome(claims, data, _alt(one, suited, errors))


def _judged(holds: bool, settings: Settings) -> Verdict:
    """Returns a verdict at paper scale only, since times at smoke scale are not comparable."""
    return verdict(holds) if settings.is_paper else "not judged"


def _paper_claim(one: Runs, settings: Settings) -> Claim:
    best = _best(one, SAMPLED)
    ours, search, whole = (one.until(key, PAPER_ERROR) for key in (best, "ssvm", "sequences"))
    factor = one.times(best, PAPER_ERROR)
    holds = ours is not None and ours < PAPER_SAMPLED and factor is not None and factor >= PAPER_SEARCH / PAPER_SAMPLED
    return Claim(
        claim=f"With sampling the error falls below {PAPER_ERROR} in less than {PAPER_SAMPLED} s; the structured SVM "
        f"needs about {PAPER_SEARCH} s",
        paper=f"under {PAPER_SAMPLED} s against about {PAPER_SEARCH} s, batch 1",
        ours=f"batch 1: {one.by_method[best]['label']} {_seconds(ours)}, SSVM {_seconds(search)}{_as_factor(factor)}; "
        f"whole sampled sequences, as in the paper, {_seconds(whole)}. Both are fast because neither step is a Python "
        f"loop over elements",
        verdict=_judged(holds, settings),
        correction=None if holds or not settings.is_paper else TRAINING,
    )


def _factor_claim(runs: Runs, keys: Sequence[str], words: str, size: Size, settings: Settings) -> Claim:
    key = _best(runs, keys)
    run, search, factor = runs.by_method[key], runs.by_method["ssvm"], runs.times(key)
    holds = factor is not None and factor >= FACTOR
    batch_text = "one sequence per step" if runs.setting == ONE else "each with its best batch size"
    chains = "" if runs.setting == ONE else f", batch {run['batch']} against {search['batch']}"
    return Claim(
        claim=f"The linear core {words} comes within {NEAR} of the SSVM's error after {size.steps:,} steps in a tenth of "
        f"its time, {batch_text}",
        paper="almost immediately, within the first few seconds; SSVM over 200 s",
        ours=f"time to error {runs.target:.3f}{chains}: {run['label']} {_seconds(runs.until(key))}, SSVM "
        f"{_seconds(runs.until('ssvm'))}{_as_factor(factor)}{_through_head(runs, key)}; final error {runs.last(key):.3f}, "
        f"{runs.last('ssvm'):.3f}{_instead(runs, key)}. Time per step: {_paces(runs, (key, 'ssvm'))}",
        verdict=_judged(holds, settings),
        correction=None if holds or not settings.is_paper else TRAINING,
    )


def _through_head(runs: Runs, key: str) -> str:
    """Describes the factor if the SSVM, or both, use the library's heads without compiling."""
    paces = [runs.pace(name) for name in (key, "ssvm")]
    reached_in = [runs.until(name) for name in (key, "ssvm")]
    if any(seconds is None for seconds in reached_in) or paces[1]["path"] == "head":
        return ""
    slower = [pace["seconds_a_step"]["head"] / pace["seconds_a_step"][pace["path"]] for pace in paces]
    ours, search = ((seconds or 0.0) * times for seconds, times in zip(reached_in, slower, strict=True))
    alone, both = (search / max(seconds or 0.0, 1e-9) for seconds in (reached_in[0], ours))
    return f" (SSVM with its library head, not compiled: {_seconds(search)}, {alone:.1f} times; both: {both:.1f} times)"


def _instead(runs: Runs, key: str) -> str:
    """Names the forms of the linear core that reach the target if this one does not."""
    if runs.until(key) is not None:
        return ""
    others = {other: runs.until(other) for other in (*ALL, *SAMPLED)}
    successes = [
        f"{runs.by_method[other]['label']} in {_seconds(value)}" for other, value in others.items() if value is not None
    ]
    return f". Others reach it: {', '.join(successes)}" if successes else ". No form of the linear core reaches it"


def _oracle_claim(errors: dict[str, float]) -> Claim:
    return Claim(
        claim="Transitions matter in these sequences",
        paper="strong random transition potentials",
        ours=f"error {100 * errors['oracle']:.1f} % of exact decoding with the true parameters, "
        f"{100 * errors['unary']:.1f} % of the best decoding without transitions",
        verdict=verdict(errors["oracle"] < CLEARLY * errors["unary"]),
    )


def _sequences_claim(one: Runs, suited: Runs, errors: dict[str, float]) -> Claim:
    ends = [runs.last("sequences") for runs in (one, suited)]
    others = [min(runs.last(key) for key in METHODS if key != "sequences") for runs in (one, suited)]
    return Claim(
        claim="Training with Algorithm 1, on randomly sampled pairs of whole sequences, works",
        paper="converges to the optimal error rate",
        ours=f"sign and support corrected, {SAMPLES} pairs per step: error {ends[0]:.3f} at batch 1 and {ends[1]:.3f} at "
        f"batch {suited.by_method['sequences']['batch']}, the best other method {others[0]:.3f} and {others[1]:.3f}; "
        f"decoding without transitions {errors['unary']:.3f}. Training with candidates sampled at single positions works",
        verdict=verdict(min(ends) < FAILS * min(others)),
        correction=TRAINING,
    )


def _best(runs: Runs, keys: Sequence[str]) -> str:
    """Returns the method with the lowest validation error in tuning."""
    return min(keys, key=lambda key: float(chosen(runs.by_method[key]["tuning"])["validation_error"]))


def _paces(runs: Runs, keys: Sequence[str]) -> str:
    """Describes the time per step, on the path used and with the library head."""
    texts = []
    for key in keys:
        route = runs.pace(key)
        seconds = route["seconds_a_step"]
        label, path = runs.by_method[key]["label"], route["path"]
        texts.append(f"{label} {_ms(seconds[path])} ({path}; head {_ms(seconds['head'])})")
    return ", ".join(texts)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms"


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.2g} s"


def _as_factor(value: float | None) -> str:
    return "" if value is None else f", {value:.1f} times as long"


def _alt(one: Runs, suited: Runs, errors: dict[str, float]) -> str:
    ends = [
        ", ".join(f"{run['label']} {runs.last(key):.3f}" for key, run in runs.by_method.items()) for runs in (one, suited)
    ]
    return (
        "Two panels of test error against seconds of training, on a log scale. Top, one sequence per step; final errors: "
        f"{ends[0]}. Bottom, the best batch size of each: {ends[1]}. Horizontal lines: true parameters "
        f"{errors['oracle']:.3f}, decoding without transitions {errors['unary']:.3f}."
    )


EXPERIMENT = Experiment(
    name="convergence",
    title="Test error of sequence taggers against time",
    question="How fast does the test error of a tagger fall on synthetic data?",
    shows="test error of a tagger against seconds: SSVM, CRF, linear core with all or sampled candidates, Algorithm 1",
    paper="Figure 11, appendix E",
    needs="nothing; at paper scale a C++ compiler makes steps faster",
    cost={"smoke": "10 s", "paper": "8 min"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
