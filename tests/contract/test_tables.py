"""Tables in the pages, and the results in the README, are those of the records; every record is listed."""

import importlib.util
import itertools
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
assert _spec is not None and _spec.loader is not None
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_records(page: Path) -> None:
    text = page.read_text("utf-8")
    assert tables.filled(text) == text, "run `python docs/tables.py`"


def test_every_table_is_on_one_page() -> None:
    used = [block[1] for page in tables.PAGES for block in tables.BLOCK.findall(page.read_text("utf-8"))]
    assert sorted(used) == sorted(tables.TABLES)


def test_every_record_is_listed() -> None:
    page = (ROOT / "docs" / "measured.md").read_text("utf-8")
    names = [path.name for path in (ROOT / "benchmarks" / "results").iterdir()]
    assert not [name for name in names if f"benchmarks/results/{name})" not in page]


README = (ROOT / "README.md").read_text("utf-8")


def readme_rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of the README, without code, links and head."""
    section = README.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    text = re.sub(r"`.*?`|\]\(.*?\)", "", section)
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")][2:]


def figures(cell: str) -> list[str]:
    """Numbers with a decimal point, and whole numbers before "times" and "to"; not the settings, such as 40 %."""
    return re.findall(r"\d+\.\d+|(?<![\d,.])\d+(?= times| to \d+ times)", cell)


def noise_figures(rate: float, *methods: str) -> list[str]:
    rows = tables.read("noise")[0]["results"]["data"]["rows"]
    found = {row["row"]: row for row in rows if (row["law"], row["rate"]) == ("instance", rate)}
    # Means of three seeds stand with their deviation, and never beside a single seed.
    assert len({len(found[method]["seeds"]) for method in methods}) == 1
    pairs = [(found[method]["mean"], found[method]["spread"]) for method in methods]
    return [f"{number:.2f}" for pair in pairs for number in pair if number is not None]


def tagging_row(source: str, encoding: str, method: str) -> dict:
    rows = tables.read("tagging")[0]["results"]["data"]["rows"]
    return next(row for row in rows if (row["source"], row["encoding"], row["method"]) == (source, encoding, method))


def test_results_in_the_readme_are_those_of_the_records() -> None:
    speed, tags, labels = (figures(result) + figures(caveat) for result, caveat, _ in readme_rows("Three results"))

    case = next(case for case in tables.read("chain_cpu")[0]["results"]["cases"] if case["size"][0] == 1000)
    ms = {step["name"]: step["median_ms"] for step in case["steps"]}
    ours = ms["LC logodds"]
    factors = [f"{ms['ChainCRF'] / ours:.1f}", *(f"{ms[name] / ours:.0f}" for name in ("pytorch-crf", "broadcast CRF"))]
    assert speed == [*factors, f"{ours / ms['token cross-entropy']:.1f}"]

    latin = [tagging_row("latin", "bilstm-adam", method)["test"] for method in ("lc-rank", "crf", "ce")]
    assert tags == [f"{summary(tests):.2f}" for tests in latin for summary in (statistics.mean, statistics.stdev)]
    assert labels == [*noise_figures(0.4, "robust", "unhinged-tuned", "gce-tuned"), *noise_figures(0.6, "robust", "ce")]


def test_verdicts_in_the_readme_are_on_the_figures_of_the_records() -> None:
    two, more, labels, step, algorithm, crf = (
        figures(row[1]) for row in readme_rows("What the paper says, and what we found")
    )
    corrections = tables.read("corrections")[0]["results"]
    assert two == [] and all(row["T"] >= row["tau_t"] for row in corrections["f"]["rows"])
    assert more == [f"{corrections['a']['pairwise_logistic_1_sided']['ratios'][-1]:.3f}"]
    assert labels == [*noise_figures(0.4, "lc", "gce-tuned", "ce"), *noise_figures(0.6, "lc", "ce")]

    marks = tables.read("sampled_cpu")[0]["results"]["marks"]
    compiled = next(mark for mark in marks if mark["mark"].startswith("ChainSSVM, compiled") and "400" in mark["mark"])
    size = next(size for size in tables.read("scalability")[0]["results"]["data"]["sizes"] if size["tags"] == 400)
    times = {method: time["median"] for method, time in size["batches"][0]["times"].items()}
    assert step == [f"{compiled['measured']:.2f}", f"{times['ssvm'] / times['sampled']:.1f}"]

    runs = tables.read("convergence")[0]["results"]["data"]["runs"]
    final = {run["method"]: run["curve"]["error"][-1] for run in runs if run["setting"] == "one"}
    assert algorithm == [f"{100 * final[method]:.1f}" for method in ("sequences", "ssvm")]

    factors: dict[str, list[float]] = {"crf": [], "broadcast": []}
    for source, encoding in itertools.product(("ptb", "ewt"), ("bilstm-adam", "bilstm-sgd")):
        ours = min(tagging_row(source, encoding, method)["seconds"] for method in ("lc", "lc-rank", "lc-sampled"))
        for method, found in factors.items():
            found.append(tagging_row(source, encoding, method)["seconds"] / ours)
    ranges = {method: (min(found), max(found)) for method, found in factors.items()}
    assert crf == [*(f"{factor:.2f}" for factor in ranges["crf"]), *(f"{factor:.0f}" for factor in ranges["broadcast"])]


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (None, ".2f", "–"),
        (-0.5, "+.1f", "−0.5"),
        ("uniform", "", "uniform"),
        ([4096, 10], "shape", "4096×10"),
        ([1.0], ".2f", "1.00"),
        ([-1.0, -3.0], ".2f", "−2.00 ± 1.41"),
    ],
)
def test_cells(value: object, form: str, text: str) -> None:
    assert tables.cell(value, form) == text
