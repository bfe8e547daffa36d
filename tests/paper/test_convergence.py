"""`convergence`: a linear tagger against the clock."""

import json

import pytest
import torch

from linearcore.cli import main
from linearcore.surrogates import LinearCore
from linearcore_paper.experiments import convergence
from linearcore_paper.experiments.convergence import BATCHES, ONE, RATES, SIZES, SUITED, Runs
from linearcore_paper.experiments.convergence import training as chain_training
from linearcore_paper.experiments.convergence.data import NOISE, MarkovModel, Task
from linearcore_paper.experiments.convergence.explicit_steps import Parameters, _sampled_change
from linearcore_paper.experiments.convergence.training import (
    METHODS,
    ExplicitPath,
    HeadPath,
    Route,
    batches,
    chosen,
    error_of,
    find_route,
    marks_until,
    reached,
    train,
    tune,
)
from linearcore_paper.runner import Settings
from tests.paper.outcomes import conclusion

EXPLICIT = [key for key, method in METHODS.items() if method.explicit is not None]
RATE = 0.02


@pytest.fixture(scope="module")
def toy() -> Task:
    return Task.draw(num_tags=12, length=5, inputs=6, noise=0.7, sizes=(64, 30, 30), seed=0)


@pytest.fixture(scope="module")
def record(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("convergence")
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "convergence", "--out", str(folder), "--report"])
    assert stop.value.code == 0
    page = (folder / "report.html").read_text("utf-8")
    assert "Test error of sequence taggers against time" in page and "Transitions matter in these sequences" in page
    return conclusion(folder, "convergence")["results"]


def explicit(key: str, task: Task, step=None) -> ExplicitPath:
    method = METHODS[key]
    assert method.explicit is not None
    return ExplicitPath(step or method.explicit(len(task.train.tags)), method.draws == "tags", task, RATE, seed=3)


def advanced(path, task: Task, batch: int, steps: int) -> Parameters:
    supply = batches(task.train, batch, seed=1)
    for _ in range(steps):
        path.step(*next(supply))
    return path.parameters()


def assert_same(found: Parameters, wanted: Parameters, **close) -> None:
    for name, part, other in zip(Parameters._fields, found, wanted, strict=True):
        assert other.abs().max() > 0, name
        torch.testing.assert_close(part, other, **close, msg=lambda text, name=name: f"{name}: {text}")


def test_settings_are_the_papers():
    size = SIZES["paper"]
    assert (size.tags, size.length, size.inputs, size.chains[0], size.steps) == (200, 20, 20, 1000, 20_000)
    assert 0.01 in size.rates and size.batches[0] == 1 and size.compiled
    assert size.rates == RATES and size.batches == BATCHES


def test_seed_decides_the_chains_and_the_three_sets_differ(toy):
    again, other = (Task.draw(12, 5, 6, 0.7, (64, 30, 30), seed) for seed in (0, 1))
    assert torch.equal(toy.train.inputs, again.train.inputs) and torch.equal(toy.test.tags, again.test.tags)
    assert not torch.equal(toy.train.tags, other.train.tags)
    assert not torch.equal(toy.validation.inputs, toy.test.inputs)


def test_chains_follow_their_law():
    model = MarkovModel.draw(4, 3, 0.5, torch.Generator().manual_seed(0))
    chains = model.chains(20_000, 3, torch.Generator().manual_seed(1))
    pairs = torch.zeros(4, 4).index_put_((chains.tags[0], chains.tags[1]), torch.ones(20_000), accumulate=True)
    torch.testing.assert_close(pairs / pairs.sum(-1, keepdim=True), model.log_transitions.exp(), atol=0.03, rtol=0)
    noise = chains.inputs - model.embeddings[chains.tags]
    assert float(noise.std()) == pytest.approx(0.5, rel=0.02) and abs(float(noise.mean())) < 0.01


def test_papers_chains_need_their_transitions():
    size = SIZES["paper"]
    task = Task.draw(size.tags, size.length, size.inputs, NOISE, (200, 1, 200), seed=0)
    assert 0.005 < task.model.oracle_error(task.test) < 0.04
    assert 0.2 < task.model.unary_error(task.test, task.train) < 0.45


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("key", EXPLICIT)
def test_written_out_steps_are_those_of_the_head(toy, key, batch):
    head = HeadPath(METHODS[key], toy, RATE, seed=3)
    assert_same(advanced(explicit(key, toy), toy, batch, 25), advanced(head, toy, batch, 25), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("form", ["logodds", "pairwise"])
def test_draws_of_a_sure_truth_change_nothing(form):
    # The truth leads by far and is drawn itself: e^200 must not come up, nor must 0 · inf.
    scores, counts = torch.tensor([[[200.0, 200.0, 0.0]]]), torch.tensor([[[False, True]]])
    assert torch.equal(_sampled_change(LinearCore(), form, scores, counts, 12).abs(), torch.zeros(1, 1, 3))
    assert torch.equal(_sampled_change(LinearCore(), form, scores, counts & False, 12).abs(), torch.zeros(1, 1, 3))


@pytest.mark.parametrize("key", ["logodds", "sampled-pairwise"])
def test_compiled_steps_are_the_plain_ones(toy, key):
    pytest.importorskip("torch._inductor")
    method = METHODS[key]
    step = torch.compile(method.explicit(len(toy.train.tags)), dynamic=False)
    try:
        found = advanced(explicit(key, toy, step), toy, 1, 10)
    except Exception as error:
        if "Compiler" in type(error).__name__ or "Compiler" in str(error):
            pytest.skip("no C++ compiler")
        raise
    assert_same(found, advanced(explicit(key, toy), toy, 1, 10), atol=1e-4, rtol=1e-4)


def test_without_a_compiler_steps_stay_plain_and_it_is_said(toy, monkeypatch):
    def broken(step, **options):
        def fail(*inputs):
            raise RuntimeError("no compiler here")

        return fail

    monkeypatch.setattr(torch, "compile", broken)
    route = find_route(METHODS["logodds"], toy, 1, compiled=True)
    assert route.name in {"head", "explicit"} and set(route.seconds) == {"head", "explicit"}
    assert route.to_json()["compile_seconds"] is None and "RuntimeError" in route.to_json()["not_compiled"]


def test_fastest_path_is_taken(toy, monkeypatch):
    paces = iter([3.0, 1.0])
    monkeypatch.setattr(chain_training, "_pace", lambda path, chains, batch, seconds: next(paces))
    route = find_route(METHODS["crf"], toy, 4, compiled=False)
    assert (route.name, route.pace, route.batch) == ("explicit", 1.0, 4)
    assert isinstance(route.make(0.1, 0), ExplicitPath)


def test_batches_pass_over_all_chains_once_an_epoch(toy):
    supply = batches(toy.train, 10, seed=5)
    epoch = [next(supply) for _ in range(6)]
    assert all(inputs.shape == (5, 10, 6) and tags.shape == (5, 10) for inputs, tags in epoch)
    seen = torch.cat([inputs for inputs, _ in epoch], 1)[0].unique(dim=0)
    assert len(seen) == 60
    assert not torch.equal(next(supply)[1], epoch[0][1])


class Recorder:
    """Stands for a tagger and notes what is decoded."""

    def __init__(self, task: Task) -> None:
        self.now, self.steps = Parameters.zeros(12, 6, "cpu"), 0

    def step(self, inputs, tags):
        self.steps += 1

    def parameters(self):
        return self.now


def test_rates_are_chosen_on_validation_chains_alone(toy, monkeypatch):
    seen = []
    errors = iter([0.4, 0.2, 0.3, 0.2])

    def error_of(path, chains):
        seen.append((chains, path.steps))
        return next(errors)

    monkeypatch.setattr(chain_training, "error_of", error_of)
    routes = [
        Route(lambda rate, seed: Recorder(toy), batch, "head", {"head": pace}, None, "")
        for batch, pace in ((1, 1.0), (8, 2.0))
    ]
    rows = tune(routes, toy, (0.1, 1.0), 40.0, seed=0)
    assert all(chains is toy.validation for chains, _ in seen)
    # Twice as slow a step, half as many of them.
    assert [steps for _, steps in seen] == [40, 40, 20, 20]
    assert chosen(rows) == {"batch": 1, "rate": 1.0, "steps": 40, "validation_error": 0.2}


def test_curve_counts_training_and_not_decoding(toy, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(chain_training, "_now", lambda device: float(next(clock)))

    def slow(path, chains):
        for _ in range(10):
            next(clock)
        return 0.5

    monkeypatch.setattr(chain_training, "error_of", slow)
    route = Route(lambda rate, seed: Recorder(toy), 1, "head", {"head": 1.0}, None, "")
    curve = train(route, toy, 0.1, [2, 5, 9], 0, toy.test)
    assert curve == {"step": [2, 5, 9], "seconds": [1.0, 2.0, 3.0], "error": [0.5, 0.5, 0.5]}


def test_error_of_true_parameters_is_the_oracles_and_of_a_runaway_one(toy):
    model, path = toy.model, Recorder(toy)
    bias = -model.embeddings.square().sum(-1) / 2 / model.noise**2
    path.now = Parameters(model.embeddings / model.noise**2, bias, torch.zeros(12), model.log_transitions, torch.zeros(12))
    assert error_of(path, toy.test) == pytest.approx(model.oracle_error(toy.test), abs=0.01)
    path.now = path.now._replace(bias=torch.full((12,), torch.nan))
    assert error_of(path, toy.test) == 1.0


def test_time_to_a_target():
    curve = {"step": [1, 2, 3, 4], "seconds": [0.5, 1.0, 2.0, 4.0], "error": [0.9, 0.3, 0.31, 0.1]}
    assert reached(curve, 0.3) == 1.0
    assert reached(curve, 0.29) == 4.0
    assert reached(curve, 0.05) is None


def test_factor_is_the_ssvms_time_over_the_methods():
    def run(*errors):
        return {"curve": {"step": [1, 2, 3], "seconds": [1.0, 2.0, 8.0], "error": list(errors)}}

    runs = Runs(ONE, {"ssvm": run(0.9, 0.5, 0.2), "logodds": run(0.2, 0.1, 0.1), "sequences": run(0.9, 0.9, 0.9)}, 0.2)
    assert runs.times("logodds") == 8.0
    assert runs.times("sequences") is None
    assert runs.times("logodds", 0.5) == 2.0
    assert runs.last("ssvm") == 0.2


def made_up(fast: float, sampled_end: float) -> dict:
    """Parts of which the SSVM needs 10 s for its last error 0.1, log-odds `fast`, and sampled forms end elsewhere."""

    def part(key: str, setting: str, seconds: float, end: float) -> dict:
        step = {"head": 2e-3, "explicit": 1e-3}
        route = {"batch": 1, "path": "explicit", "seconds_a_step": step, "compile_seconds": None}
        curve = {"step": [1, 2], "seconds": [seconds / 2, seconds], "error": [0.5, end]}
        tuning = [{"batch": 1, "rate": 0.1, "steps": 2, "validation_error": 0.1 if "logodds" in key else 0.2}]
        told = {"method": key, "label": METHODS[key].label, "setting": setting, "batch": 1, "rate": 0.1}
        return told | {"routes": [route], "tuning": tuning, "curve": curve, "threads": 1}

    facts = {"ssvm": (10.0, 0.1), "logodds": (fast, 0.104), "sequences": (10.0, 0.7), "sampled-logodds": (1.0, sampled_end)}
    results = {f"{key}-{name}": part(key, name, *facts.get(key, (10.0, 0.2))) for key in METHODS for name in (ONE, SUITED)}
    return results | {"oracle": {"oracle": 0.01, "unary": 0.3}}


def test_verdicts_at_the_papers_size():
    claims = convergence.conclude(made_up(fast=0.9, sampled_end=0.2), Settings(scale="paper")).claims
    assert [claim.verdict for claim in claims[1:]] == [*["holds"] * 2, *["does not hold"] * 2, "holds", "does not hold"]
    assert [claim.correction for claim in claims[1:]] == [None, None, "p", "p", None, "p"]
    assert all(figure in claims[1].ours for figure in ("10 s", "11.1 times", "20 s", "22.2 times"))
    assert "0.9 s" in claims[3].ours
    claims = convergence.conclude(made_up(fast=1.1, sampled_end=0.105), Settings(scale="paper")).claims
    assert [claim.verdict for claim in claims[1:5]] == [*["does not hold"] * 2, *["holds"] * 2]


def test_marks_rise_to_the_last():
    marks = marks_until(20_000, 24)
    assert (marks[0], marks[-1], len(marks)) == (100, 20_000, 24) and marks == sorted(set(marks))
    assert marks_until(3, 8)[-1] == 3


def test_every_method_is_drawn_in_both_settings(record):
    runs = record["data"]["runs"]
    assert [(run["method"], run["setting"]) for run in runs] == [(key, name) for name in (ONE, SUITED) for key in METHODS]
    for run in runs:
        curve = run["curve"]
        assert curve["seconds"] == sorted(curve["seconds"]) and curve["step"] == sorted(curve["step"])
        assert {row["rate"] for row in run["tuning"]} == set(record["data"]["rates"])
        best = min(row["validation_error"] for row in run["tuning"])
        assert {"batch": run["batch"], "rate": run["rate"], "validation_error": best} in [
            {key: row[key] for key in ("batch", "rate", "validation_error")} for row in run["tuning"]
        ]
        assert run["batch"] == 1 or run["setting"] == SUITED
    assert json.dumps(record, allow_nan=False)


def test_local_candidates_train_and_whole_sequences_do_not(record):
    errors = {run["method"]: run["curve"]["error"][-1] for run in record["data"]["runs"] if run["setting"] == ONE}
    unary = record["data"]["errors"]["unary"]
    assert max(errors[key] for key in (*convergence.ALL, "sampled-logodds", "crf")) < 0.9 * unary
    assert errors["sequences"] > unary


def test_verdicts_on_convergence(record):
    # Seconds of a toy decide nothing.
    assert [claim["verdict"] for claim in record["claims"]] == [*["not judged"] * 5, "holds", "does not hold"]
    assert record["data"]["target"] == pytest.approx(
        next(run for run in record["data"]["runs"] if run["method"] == "ssvm")["curve"]["error"][-1] + 0.005
    )
