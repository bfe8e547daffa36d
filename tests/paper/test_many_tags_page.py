"""docs/many-tags.md is what its record says: here of one that nobody measured."""

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from linearcore.runtime import write_record
from linearcore_paper.experiments.tagging.methods import METHODS
from linearcore_paper.runner import Outcome
from tests.paper.generated_pages import ROOT, page_module, section, words
from tests.paper.made_tagging import concluded, made_results
from tests.paper.outcomes import write_conclusion

FAILED = {"failed": "the loss is not finite after 20 steps", "steps": 800}
CASES = 7


@pytest.fixture
def many_tags(monkeypatch) -> ModuleType:
    return page_module("_many_tags_page", monkeypatch)


@pytest.fixture
def written(many_tags, tmp_path):
    """Results ↦ the page."""

    def write(results: dict[str, Any], variants: Path = Path("none"), chain_rates: Path = Path("none")) -> str:
        return many_tags.page(write_made(tmp_path, concluded(results)), variants, chain_rates)

    return write


def write_made(folder: Path, outcome: Outcome) -> Path:
    settings = {"device": "cuda", "experiment": "tagging", "scale": "paper", "runs_on": ["a made-up GPU, torch 9"]}
    command = "linearcore reproduce tagging --scale paper --seed 0"
    write_conclusion(folder, "tagging", command=command, settings=settings, results=outcome.as_json(), seed=0)
    return folder


def test_every_case_has_its_table(written):
    text = section(written(made_results()), "Speed and accuracy")
    assert text.count("### ") - text.count("### Falls") == CASES == text.count("| method | seconds to 83 % |")
    first = text.partition("### Penn Treebank sample · BiLSTM, Adam\n")[2].partition("###")[0]
    assert "| broadcast CRF | 30 | 1 | 0.08 | 90.20 ± 0.10 | 50 | 125.00 | 100.00 | 0.01 |" in first
    assert "| LC rank 64 + unary | 0.25 | 120 | 9.6 | 90.60 ± 0.10 | 0.5 | 1.25 | 1.40 | 0.01 |" in first
    assert [line.split(" | ")[0][2:] for line in first.splitlines()[3:] if line] == [
        "broadcast CRF", "ChainCRF", "token cross-entropy", "LC all tags", "LC rank 64 + unary", "LC sampled", "ChainSSVM",
    ]  # fmt: skip


def test_setting_machine_and_clock_are_told(written):
    text = words(section(written(made_results()), "What was measured"))
    assert "LASLA Latin (3,499 tags)" in text and "at least 100 words, 8 in a batch" in text
    assert "over 3 other seeds" in text and "Machine: a made-up GPU, torch 9." in text
    assert "8 on Penn Treebank sample" in text and "BERT (MiniLM), AdamW: 0.0001, 0.0003, 0.001" in text
    assert "steps times the seconds of a step when nothing else runs" in text


def test_guide_says_when_a_linear_core_is_what_to_take(written):
    text = words(section(written(made_results()), "Which to take"))
    assert "Take the linear core where it is more accurate: everywhere, +1.40 to +1.40 points." in text
    assert "where a chain gains nothing that is sure: nowhere here; and where it loses: nowhere here." in text
    how = "**LC rank 64 + unary (`--loss lc --rank 64 --unary 0.5 --sharpness 4`)**"
    assert f"- Thousands of tags that occur, with a BiLSTM: {how}. Points" in text and text.count(how) == 3
    assert "above token cross-entropy: +1.40 ± 0.23, +1.40 ± 0.23. - Thousands" in text
    assert "The linear core's epoch takes 1.25 times as long as token cross-entropy's." in text
    assert "as accurate as ChainCRF, or more: everywhere, +0.40 to +0.40 points." in text
    assert "where it is more accurate: nowhere here. ChainCRF's epoch takes 8 times as long" in text
    assert "A broadcast CRF's epoch takes 100 times as long" in text
    assert "best on dev, of 7: LC rank 64 + unary 7. A sampled step takes 1.25 times as long" in text
    assert "dev chose, beyond chance, by 0.90 points on Penn Treebank sample · BiLSTM, Adam; by 0.90 points on" in text
    assert "LC rank 64 + unary is first everywhere." in text
    assert "fit into 16 GB ([below](#memory)): token cross-entropy 400, LC all tags 380, LC rank 64 + unary 360," in text


def test_guide_says_when_something_else_is(written):
    results = made_results()
    for seed in (1, 2, 3):
        # Beyond half of an interval, 0.227 points, and within.
        results[f"run_latin_bilstm-adam_crf_seed{seed}"]["test_accuracy"] += 0.4 + 0.25
        results[f"run_ewt_bert_crf_seed{seed}"]["test_accuracy"] += 0.4 + 0.1
        results[f"run_ewt_bert_ce_seed{seed}"]["test_accuracy"] += 1.4 - 0.1
        results[f"run_ptb_bert_ce_seed{seed}"]["test_accuracy"] += 1.4 + 1.0
        results[f"run_ptb_bert_ce_seed{seed}"] |= {"reached": 20, "curve": [[20, 84.0], [800, 90.0]]}
    results["pace_latin_bilstm-adam_crf"]["seconds"] = 0.02
    text = words(section(written(results), "Which to take"))
    gains = text.partition("where it is more accurate: ")[2].partition(" Take token")[0]
    assert gains.count("points") == 5 and "BERT" not in gains
    assert (
        "gains nothing that is sure: English EWT · BERT (MiniLM), AdamW (+0.10 ± 0.23 points); and where it loses: "
        "Penn Treebank sample · BERT (MiniLM), AdamW (−1.00 ± 0.23 points)." in text
    )
    assert "with a pre-trained transformer: **token cross-entropy** (`--loss ce`). Points of the linear" in text
    assert "if you can wait, where it is more accurate: LASLA Latin · BiLSTM, Adam (−0.25 ± 0.23 points)." in text
    assert "English EWT · BERT (MiniLM), AdamW (−0.10 ± 0.23 points). Take ChainCRF" in text
    assert "ChainCRF's epoch takes 4 to 8 times as long" in text
    assert "Token cross-entropy is first on Penn Treebank sample · BERT (MiniLM), AdamW." in text


def test_failures_are_told_and_nothing_is_made_of_them(written):
    results = made_results()
    results["run_ewt_bert_ce_seed1"] = FAILED
    for key in ("lc", "lc-rank", "lc-sampled"):
        results[f"run_ptb_bert_{key}_seed1"] = FAILED
    results["pace_ewt_bilstm-adam_broadcast"] = {"failed": "out of memory", "tags": 4000}
    results["run_latin_bilstm-adam_crf_seed2"]["reached"] = None
    page = written(results)
    text = words(section(page, "Which to take"))
    names = "Penn Treebank sample · BERT (MiniLM), AdamW"
    assert f"Not compared, since runs failed: {names}; English EWT · BERT (MiniLM), AdamW. The linear core's" in text
    assert f"Not compared, since runs failed: {names}. ChainCRF's" in text
    assert "| LC all tags | never | – | – | failed | – | 1.20 | 1.20 | 0.0003 |" in page
    assert "| broadcast CRF | does not fit | – | – | 90.20 ± 0.10 | – | – | – | 0.01 |" in page
    paper = section(page, "Beside the paper")
    assert f"| {names} | 30 | 2.4 | never | – | – |" in paper
    assert "| English EWT · BiLSTM, Adam | does not fit | 2.4 | 0.25 | – | 9.6 |" in paper
    assert "| LASLA Latin · BiLSTM, Adam | 2 of 3 seeds | 2 of 3 seeds | 0.25 | – | – |" in paper


def test_accuracy_over_time_is_told_where_the_target_is_not_reached(written):
    results = made_results()
    assert "after so many seconds" not in written(results)
    for name, result in results.items():
        if name.startswith("run_latin"):
            result["reached"] = None
    page = written(results)
    assert "No method gets there with every seed on LASLA Latin · BiLSTM, Adam." in words(page)
    text = page.partition("### LASLA")[2].partition("after so many seconds of training:\n\n")[2]
    lines = text.partition("\n\n")[0].splitlines()
    assert lines[0] == "| method | 1 s | 2 s | 5 s | 10 s | 60 s | 300 s | end | seconds to the end |"
    # The CRF's first look is after 20 steps of 0.04 s, its last after 800.
    curve = dict(results["run_latin_bilstm-adam_crf_seed2"]["curve"])
    crf = next(line for line in lines if line.startswith("| ChainCRF")).strip("| ").split(" | ")[1:]
    assert crf == [*(f"{curve[step]:.2f}" for step in (20, 40, 100, 250)), "–", "–", f"{curve[800]:.2f}", "32"]
    assert "| token cross-entropy | " in text and next(line for line in lines if "broadcast" in line).count("–") == 3


def test_falls_are_told(written, tmp_path):
    results = made_results()
    results["run_ewt_bilstm-adam_lc-rank_seed2"]["curve"] = [[20, 80.0], [40, 35.5], [60, 90.0]]
    text = words(written(results))
    assert "seeds: ChainCRF 0.0, token cross-entropy 0.0, LC all tags 0.0, LC rank 64 + unary 44.5, LC sampled 0.0" in text
    assert "--chain-rate" not in text
    rows = [
        {"chain_rate": share, "seed": seed, "fall": fall + seed, "curve": [[20, 50.0, 40.0], [40, 80.0 + seed, 70.0 + seed]]}
        for share, fall in ((1.0, 30.0), (0.1, 0.5))
        for seed in (1, 2)
    ]
    path = tmp_path / "rates.json"
    write_record(path, command="python x", settings={"steps": 40, "every": 20, "seeds": 2}, results=rows, seed=1)
    page = written(results, chain_rates=path)
    assert "| `--chain-rate` | largest fall, points | after 40 steps, % | emissions alone, % |" in page
    assert "| 1 | 32.0 | 81.50 | 71.50 |\n| 0.1 | 2.5 | 81.50 | 71.50 |" in page
    assert "a look every 20 of them, 2 seeds: `python x`" in words(page)


def test_rate_at_the_edge_is_told(written):
    results = made_results()
    results["tune_latin_bilstm-adam_lc_0.04"]["dev_accuracy"] = 99.0
    assert ", edge |" not in written(made_results())
    assert "| 1.20 | 0.04, edge |" in written(results).partition("### LASLA")[2]


def test_memory_is_in_the_order_of_numbers(written):
    results = made_results()
    text = section(written(results), "Memory")
    head = "| method | GB, batch of 8 | fit in 16 GB | fit in 40 GB | fit in 140 GB | MB for one more |"
    assert head in text and "| broadcast CRF | 1.5 | 1 | 4 | 15 | 9,091 |" in text
    assert "| token cross-entropy | 4.5 | 400 | 1,000 | 3,500 | 40 |" in text
    assert "sequences of 128 words, 4,000 tags" in words(text)
    without = {name: value for name, value in results.items() if not name.startswith("memory_")}
    assert "## Memory" not in written(without) and "If memory decides" not in written(without)


def test_memory_that_is_not_known_is_a_dash(written):
    results = made_results()
    # Nobody looked for the largest batch of a sampled step.
    assert "| LC sampled | 7.5 | – | – | – | – |" in section(written(results), "Memory")
    results |= {"memory_crf": {"failed": "needs a GPU"}, "peak_ce": {"failed": "out of memory"}}
    text = section(written(results), "Memory")
    assert "| ChainCRF | 2.5 | – | – | – | – |" in text
    assert "| token cross-entropy | – | 400 | 1,000 | 3,500 | 40 |" in text
    assert "ChainCRF" not in section(written(results | {"peak_crf": {"failed": "needs a GPU"}}), "Memory")


def test_paper_stands_beside_ours_with_the_verdicts(written):
    text = section(written(made_results()), "Beside the paper")
    assert "| paper, BiLSTM | 78.4 | – | 4.5 | 17.4 | – |\n| paper, BERT | 78.7 | – | 5.1 | 15.4 | – |" in text
    assert "| LASLA Latin · BiLSTM, Adam | 30 | 2.4 | 0.25 | 120 | 9.6 |" in text
    told = words(text)
    assert told.count(": **holds**; ") == 3 == told.count(": **holds with a correction**; ")
    assert "**holds with a correction**; the fastest linear core of each case is 120 times as fast as the broadcast" in told
    assert "is as accurate or more in 7 of 7. -" in told


def test_variants_are_ranked_by_dev(written, tmp_path):
    rows = [
        {"name": name, "seed": seed, "dev": {scale: value + seed for scale in scales}}
        for seed in (0, 1)
        for name, value, scales in (("plain", 88.0, ("0", "1")), ("better", 89.0, ("0", "1")), ("tokens", 85.0, ("1",)))
    ]
    path = tmp_path / "variants.json"
    write_record(path, command="python benchmarks/x.py", settings={"rate": 0.01, "seeds": 2}, results=rows, seed=0)
    text = section(written(made_results(), path), "Variants that were tried")
    crf = "ChainCRF, at its own rate of 0.01 in the tables above, has 91.20 on dev, the mean over 3 seeds."
    assert f"Rate 0.01, 2 seeds. {crf} `python benchmarks/x.py`" in words(text)
    wanted = ["| variant | dev accuracy, % | × 0 |", "| --- | ---: | ---: |"]
    wanted += ["| better | 89.50 ± 0.71 | 89.50 |", "| plain | 88.50 ± 0.71 | 88.50 |", "| tokens | 85.50 ± 0.71 | – |"]
    assert text.splitlines()[-5:] == wanted
    assert "Variants" not in written(made_results())
    taken = [{"name": "unary ½, sharpness 4", "seed": seed, "dev": {"1": 88.2 + seed}} for seed in (0, 1)]
    write_record(path, command="python x", settings={"rate": 0.01, "seeds": 2}, results=rows + taken, seed=0)
    told = words(section(written(made_results(), path), "Variants that were tried"))
    assert '"unary ½, sharpness 4" is what the tables above call LC rank 64 + unary' in told
    assert "where dev varies by 0.10 points from seed to seed; the best here is 0.80 points above it." in told


def test_variant_of_the_tables_is_the_one_that_they_have(many_tags, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    taken = importlib.import_module("_chain_variants").VARIANTS[many_tags.TAKEN]
    told = {"rank": taken.rank, "unary": taken.unary, "sharpness": taken.surrogate.sharpness}
    assert told == METHODS["lc-rank"].settings
    assert (taken.neighbours, taken.pairs, taken.chain_rate) == ("true", 0.0, None)


def test_no_line_is_too_long_but_in_tables(written):
    page = written(made_results())
    assert json.dumps(page) and page.endswith("\n") and not page.endswith("\n\n")
    assert max(len(line) for line in page.splitlines() if not line.startswith(("|", "-"))) <= 125
