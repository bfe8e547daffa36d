"""`scalability`: what is timed, how growth is fitted and what is concluded. Times themselves are the machine's matter."""

import json
import math

import pytest
import torch

from linearcore.cli import main
from linearcore.kernels import _max_product
from linearcore_paper.experiments import scalability
from linearcore_paper.experiments.scalability import LABELS, conclude, slope, upper_slope
from linearcore_paper.experiments.scalability import steps as chain_steps
from linearcore_paper.experiments.scalability.steps import METHODS, dense_search, gradient_step, interleaved, training_step
from linearcore_paper.runner import Settings
from tests.paper.outcomes import conclusion

TOY = (4, 5, 7)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(scalability, "SIZES", {"smoke": TOY, "paper": (4, 7, 400)})
    monkeypatch.setattr(scalability, "SECONDS", {"smoke": 0.0, "paper": 0.0})
    monkeypatch.setattr(chain_steps, "MIN_TURNS", 2)


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "scalability", *words])
    return stop.value.code


def made_up(powers: dict[str, float], sizes: tuple[int, ...] = scalability.SIZES["paper"], scale: float = 1e-6) -> dict:
    """Parts in which the time of each method is a power of |Y|, 1 ms for those not named."""
    times = {
        tags: {
            key: {"median": scale * tags ** powers[key] if key in powers else 1e-3, "quartiles": [1e-4, 1e-2], "steps": 9}
            for key in LABELS
        }
        for tags in sizes
    }
    return {
        f"tags-{tags}": {
            "tags": tags,
            "threads": 1,
            "cores": 1.0,
            "batches": [{"batch": b, "times": times[tags]} for b in (1, 16)],
        }
        for tags in sizes
    }


def verdicts(parts: dict) -> list[str]:
    return [claim.verdict for claim in conclude(parts, Settings(scale="paper")).claims]


def test_command_writes_times_of_every_method_and_keeps_finished_parts(toy, tmp_path, capsys):
    assert call("--out", str(tmp_path), "--report") == 0
    folder = tmp_path / "scalability"
    assert {path.name for path in folder.iterdir()} == {"results.jsonl", "scalability.png", "scalability.svg"}
    results = conclusion(folder.parent, "scalability")["results"]
    # With so few tags nothing is judged.
    assert [claim["verdict"] for claim in results["claims"]] == ["not judged"] * 4
    assert all("--scale paper" in claim["ours"] for claim in results["claims"][1:])
    data = results["data"]
    assert [size["tags"] for size in data["sizes"]] == list(TOY)
    assert data["threads"] == [torch.get_num_threads()] and "machine" in data["times"]
    assert (data["length"], data["inputs"], data["samples"], data["paper_tags"]) == (20, 20, 20, 400)
    for size in data["sizes"]:
        assert size["cores"] > 0
        assert [row["batch"] for row in size["batches"]] == [1, 16]
        for row in size["batches"]:
            assert set(row["times"]) == set(data["labels"]) == {*METHODS, "gradient"}
            for found in row["times"].values():
                low, high = found["quartiles"]
                assert 0 < low <= found["median"] <= high < math.inf and found["steps"] >= 2
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "linearcore reproduce scalability" in page
    svg = (folder / "scalability.svg").read_bytes()
    capsys.readouterr()
    assert call("--out", str(tmp_path)) == 0
    assert "3 of 3 parts were finished before and reused" in capsys.readouterr().out
    assert svg == (folder / "scalability.svg").read_bytes()


def test_paper_scale_judges(toy, tmp_path, capsys):
    assert call("--out", str(tmp_path), "--scale", "paper", "--allow-dirty", "--json") == 0
    claims = json.loads(capsys.readouterr().out)["records"]["scalability"]["results"]["claims"]
    assert "not judged" not in [claim["verdict"] for claim in claims[:3]]


def test_sizes_are_the_papers_and_beyond():
    assert scalability.SIZES["paper"] == (10, 50, 100, 200, 400, 1000, 2000, 4000)
    assert list(scalability.parts(Settings())) == ["tags-10", "tags-50", "tags-100"]


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_slope_is_the_power(power):
    tags = [10, 30, 100, 1000]
    assert slope(tags, [3e-3 * count**power for count in tags]) == pytest.approx(power, abs=1e-12)


def test_upper_slope_leaves_overhead_out():
    tags = [10, 50, 100, 200, 400, 1000]
    assert upper_slope(tags, [7, 7, 7, *(count**2 for count in tags[3:])]) == pytest.approx(2)
    # Of an odd number of sizes the middle one counts.
    assert upper_slope(tags[:3], [99, 50, 100]) == pytest.approx(1)


def test_verdicts_where_everything_is_as_claimed():
    parts = made_up({"ssvm": 2, "ssvm-dense": 2, "sampled": 0, "all": 1, "gradient": 0}, scale=1e-4)
    assert verdicts(parts) == ["holds"] * 4


@pytest.mark.parametrize(
    ("key", "power", "broken"),
    [
        ("ssvm", 0.5, [0, 1]),
        ("ssvm-dense", 0.5, [0, 1]),
        ("ssvm", 2.6, [1]),
        ("sampled", 0.3, [2]),
        ("sampled", -0.1, []),
        ("all", 1.3, [3]),
        ("sampled-dense", 2.0, []),
        ("crf", 0.0, []),
    ],
)
def test_each_verdict_hangs_on_its_own_times(key, power, broken):
    powers = {"ssvm": 2, "ssvm-dense": 2, "sampled": 0, "all": 1, "gradient": 0} | {key: power}
    found = verdicts(made_up(powers, scale=1e-4))
    assert [index for index, word in enumerate(found) if word == "does not hold"] == broken
    assert "not judged" not in found


def test_factor_is_judged_at_400_against_the_faster_search():
    parts = made_up({})
    for batch in parts["tags-400"]["batches"]:
        for key, factor in (("ssvm", 24.0), ("ssvm-dense", 22.9)):
            batch["times"][key] = {"median": factor * 1e-3, "quartiles": [1e-4, 1e-2], "steps": 9}
    claim = conclude(parts, Settings(scale="paper")).claims[0]
    assert (claim.verdict, claim.correction) == ("does not hold", "p")
    assert all(figure in claim.ours for figure in ("24.0 times", "22.9", "24 ms", "22.9 ms", "1 ms"))
    parts["tags-400"]["batches"][0]["times"]["ssvm-dense"]["median"] = 23e-3
    claim = conclude(parts, Settings(scale="paper")).claims[0]
    assert (claim.verdict, claim.correction) == ("holds", None)


def test_all_candidates_are_judged_only_while_the_gradient_is_cheap():
    # |Y|² from 1000 tags on, where the gradient is 60 % of the step; linear before.
    parts = made_up({"all": 1, "gradient": 0}, scale=1e-4)
    for tags in (1000, 2000, 4000):
        for batch in parts[f"tags-{tags}"]["batches"]:
            batch["times"]["all"]["median"] = 1e-6 * tags**2
            batch["times"]["gradient"]["median"] = 0.6e-6 * tags**2
    claim = conclude(parts, Settings(scale="paper")).claims[3]
    assert claim.verdict == "holds"
    assert claim.ours.count("slope 1.00 over 100 to 400 tags") == claim.ours.count("from 1000 tags on") == 2


def test_gradient_that_dominates_from_the_start_leaves_nothing_to_judge():
    claim = conclude(made_up({"gradient": 2}, scale=1.0), Settings(scale="paper")).claims[3]
    assert claim.verdict == "not judged" and "from 10 tags on" in claim.ours


def test_two_sizes_before_the_gradient_dominates_are_too_few_for_a_slope():
    parts = made_up({"gradient": 0}, scale=1e-5)
    for batch in parts["tags-100"]["batches"]:
        batch["times"]["gradient"]["median"] = 0.6e-3
    claim = conclude(parts, Settings(scale="paper")).claims[3]
    assert claim.verdict == "not judged" and "from 100 tags on" in claim.ours


def test_growth_from_100_to_400_is_told():
    claim = conclude(made_up({"ssvm": 1.5}), Settings(scale="paper")).claims[1]
    assert "8.0 times as long with 400 tags as with 100" in claim.ours


def test_parts_of_different_thread_counts_are_told():
    parts = made_up({})
    parts["tags-10"]["threads"] = 4
    found = conclude(parts, Settings(scale="paper"))
    assert found.data["threads"] == [1, 4] and "1 or 4 threads of one machine" in found.alt
    assert "on 1 thread of one machine" in conclude(made_up({}), Settings(scale="paper")).alt


def test_busy_machine_is_told():
    parts = made_up({})
    assert "busy" not in conclude(parts, Settings(scale="paper")).claims[0].ours
    parts["tags-200"]["cores"] = 0.6
    found = conclude(parts, Settings(scale="paper"))
    assert found.claims[0].ours.endswith("repeat the timing") and found.data["least_cores"] == 0.6


def test_dense_search_skips_nothing_and_ends(monkeypatch):
    asked, inner = [], _max_product.MaxProduct._max_with_pruning

    def spy(self, *words):
        asked.append(1)
        return inner(self, *words)

    monkeypatch.setattr(_max_product.MaxProduct, "_max_with_pruning", spy)
    training_step(METHODS["ssvm-dense"], 300, 1, Settings())()
    assert not asked
    training_step(METHODS["ssvm"], 300, 1, Settings())()
    assert asked
    before = _max_product.MIN_TAGS_TO_PRUNE
    with pytest.raises(KeyError), dense_search():
        raise KeyError
    assert before == _max_product.MIN_TAGS_TO_PRUNE < 1 << 62


@pytest.mark.parametrize("key", METHODS)
def test_step_updates_every_parameter_once_and_by_next_to_nothing(key, monkeypatch):
    seen, inner = [], torch.optim.SGD.step

    def spy(self):
        seen.append([(parameter.detach().clone(), parameter.grad) for parameter in self.param_groups[0]["params"]])
        return inner(self)

    monkeypatch.setattr(torch.optim.SGD, "step", spy)
    step = training_step(METHODS[key], 6, 2, Settings())
    step(), step()
    first, second = seen
    # Weight, bias, start, end, transitions.
    assert [tuple(value.shape) for value, _ in first] == [(6, 20), (6,), (6,), (6,), (6, 6)]
    assert [gradient.is_sparse for _, gradient in first] == [key == "sampled"] * 5
    assert all(torch.isfinite(gradient.to_dense()).all() for _, gradient in first)
    for (before, _), (after, _) in zip(first, second, strict=True):
        torch.testing.assert_close(before, after, rtol=0, atol=1e-9)
    # Not those of a fresh head, which lie within 0.1.
    assert first[4][0].abs().max() > 1


def test_both_searches_have_the_same_loss_and_gradient(monkeypatch):
    seen, inner = [], torch.optim.SGD.step

    def spy(self):
        seen.append([parameter.grad for parameter in self.param_groups[0]["params"]])
        return inner(self)

    monkeypatch.setattr(torch.optim.SGD, "step", spy)
    for key in scalability.SEARCHES:
        training_step(METHODS[key], 300, 2, Settings(seed=3))()
    for one, other in zip(*seen, strict=True):
        torch.testing.assert_close(one, other)


def test_global_streams_stay_as_they_were():
    before = torch.get_rng_state()
    for method in METHODS.values():
        training_step(method, 5, 2, Settings())()
    gradient_step(5, Settings())()
    assert torch.equal(before, torch.get_rng_state())


def test_methods_take_turns(monkeypatch):
    monkeypatch.setattr(chain_steps, "TURN_SECONDS", 0.0)
    order: list[str] = []
    steps = {key: lambda key=key: order.append(key) for key in "abc"}
    times = interleaved(steps, 0.0, "cpu")
    # Two rounds of warming up do not count.
    assert "".join(order) == "abc" * (2 + chain_steps.MIN_TURNS)
    assert {key: len(found) for key, found in times.items()} == dict.fromkeys("abc", chain_steps.MIN_TURNS)


def test_quick_methods_do_several_steps_a_turn_after_settling():
    order: list[str] = []
    times = interleaved({"quick": lambda: order.append("quick")}, 0.0, "cpu")
    turns, most = chain_steps.MIN_TURNS, chain_steps.MAX_STEPS
    assert len(times["quick"]) == turns * most
    assert len(order) == 2 + turns * (chain_steps.WARMUP_STEPS + most)
