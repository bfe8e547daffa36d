"""Figures in the docs are those of the records, rounded as printed, and no page waits for a table."""

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from tests.fresh_python import fresh_python
from tests.paper.outcomes import COMMITTED, conclusion

ROOT = Path(__file__).parents[2]
CARE = ROOT / "docs" / "reading-the-paper-with-care.md"
RECORD = json.loads((ROOT / "docs" / "results" / "corrections.json").read_text("utf-8"))
SIDES = {"one-sided": "1_sided", "two-sided": "2_sided"}
PLACEHOLDER = re.compile(r"\b[A-Z]+_TABLE\b")

Table = tuple[list[str], dict[str, list[str]]]


def tables(text: str, letter: str) -> list[Table]:
    """The header and the rows by label of every table in a section."""
    section = text.partition(f'<a id="{letter}"></a>')[2].partition("<a id=")[0]
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
        found.append((header, {row[0].replace("*", "").replace("`", ""): row[1:] for row in rows}))
    return found


def header_of(first: str, symbol: str, values: list[float]) -> list[str]:
    return [first, f"{symbol} = {values[0]:g}", *(f"{value:g}" for value in values[1:])]


def distribution(p: list[float]) -> str:
    return f"p = ({p[0]:g} + δ, {p[1]:g} − δ, {', '.join(f'{share:g}' for share in p[2:])})"


def assert_same(printed: list[str], values: list[float]) -> None:
    """Every cell is its value, rounded to the decimals that it shows: three or more."""
    decimals = [len(cell.partition(".")[2]) for cell in printed]
    assert min(decimals) >= 3
    assert printed == [f"{value:.{places}f}" for value, places in zip(values, decimals, strict=True)]


def check_a(text: str, record: dict[str, Any]) -> None:
    ratios = {name: item["ratios"] for name, item in record["results"]["a"].items() if isinstance(item, dict)}
    three, four = tables(text, "a")
    for (header, rows), classes, infix in ((three, "three", ""), (four, "four", "_four_classes")):
        p = record["settings"]["probabilities"][classes]
        assert header == header_of(distribution(p), "δ", record["results"]["a"]["deltas"])
        for label, cells in rows.items():
            form, base, sides, *tau = label.split(", ")
            end = "".join(word.replace("τ = ", "_tau_") for word in tau)
            assert_same(cells, ratios.pop(f"{form}{infix}_{base}_{SIDES[sides]}{end}"))
    assert not ratios, "the record has rows that the page does not show"


def check_l(text: str, record: dict[str, Any]) -> None:
    item = record["results"]["l"]
    names = {
        "straight fit": "fitted",
        "local slope at δ = 1e-4": "local_at_delta_1e-4",
        "local slope at δ = 0.1": "local_at_delta_1e-1",
    }
    ((header, rows),) = tables(text, "l")
    assert header == header_of("", "τ", item["tau"])
    assert set(rows) == {f"{name}, {sides}" for name in names for sides in SIDES}
    for label, cells in rows.items():
        name, sides = label.split(", ")
        assert_same(cells, item[SIDES[sides]][names[name]])


def check_n(text: str, record: dict[str, Any]) -> None:
    """From a record of its own."""
    data = conclusion(COMMITTED, "tagging")["results"]["data"]
    ((header, rows),) = tables(text, "n")
    assert header == ["", "broadcast CRF", "ChainCRF", "linear core"] and len(rows) == 3
    for encoding in ("bilstm-adam", "bert"):
        seconds = {
            row["method"]: row["seconds"] for row in data["rows"] if (row["source"], row["encoding"]) == ("ewt", encoding)
        }
        best = min(seconds[key] for key in ("lc", "lc-rank", "lc-sampled"))
        cells = rows[f"seconds to {data['target']:g} %, English EWT, {data['encodings'][encoding]}"]
        assert cells == [f"{value:.3g}" for value in (seconds["broadcast"], seconds["crf"], best)]
    fits = {key: found["sequences"]["16"] for key, found in data["memory"].items()}
    cells = rows["sequences of 128 words that fit into 16 GB"]
    assert cells == [f"{value:,}" for value in (fits["broadcast"], fits["crf"], max(fits["lc"], fits["lc-rank"]))]


def check_o(text: str, record: dict[str, Any]) -> None:
    """From a record of its own."""
    data = conclusion(COMMITTED, "gradient-histogram")["results"]["data"]
    ((header, rows),) = tables(text, "o")
    assert header == [f"after epoch {data['epoch']}", "CE", "LC"] and len(rows) == 5
    runs = [data["runs"][key] for key in ("ce", "lc")]
    everyone, alone = ([run["readings"][reading] for run in runs] for reading in data["readings"])
    for kind in ("wrong", "right"):
        assert rows[f"mean push of a {kind} label"] == [f"{groups[kind]['mean']:.3f}" for groups in everyone]
    shares = [f"{100 * groups['wrong']['share_of_push']:.1f}" for groups in everyone]
    assert rows["wrong labels' share of all push, %"] == shares
    last = [100 * groups["wrong"]["counts"][-1] / sum(groups["wrong"]["counts"]) for groups in alone]
    assert rows["wrong labels above 0.98 against the strongest alone, %"] == [f"{value:.1f}" for value in last]
    assert rows["wrong labels that are learned, %"] == [f"{run['wrong_learned']:.1f}" for run in runs]


CHECKS = {"a": check_a, "l": check_l, "n": check_n, "o": check_o}


@pytest.mark.parametrize("letter", CHECKS)
def test_tables_show_what_the_record_holds(letter: str) -> None:
    CHECKS[letter](CARE.read_text("utf-8"), RECORD)


@pytest.mark.parametrize(
    ("letter", "old", "new"),
    [
        ("a", "| 0.419 |", "| 0.418 |"),
        ("a", "0.3 − δ", "0.4 − δ"),
        ("a", "| 0.003 |", "| 0.0 |"),
        ("l", "0.9960", "0.9961"),
        ("n", "| 1.51 |", "| 1.50 |"),
        ("n", "1,150", "1,151"),
        ("o", "| 0.159 |", "| 0.158 |"),
        ("o", "| 12.8 |", "| 12.9 |"),
    ],
)
def test_a_wrong_number_would_be_seen(letter: str, old: str, new: str) -> None:
    text = CARE.read_text("utf-8")
    assert old in text
    with pytest.raises(AssertionError):
        CHECKS[letter](text.replace(old, new), RECORD)


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_no_page_waits_for_a_table(page: Path) -> None:
    assert not PLACEHOLDER.findall(page.read_text("utf-8"))


def test_the_generated_pages_are_what_the_records_say(tmp_path: Path) -> None:
    done = fresh_python(str(ROOT / "docs" / "write_measured.py"), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    written = sorted(tmp_path.iterdir())
    names = ["finding-wrong-labels.md", "many-tags.md", "measured.md", "noisy-images.md", "sampling.md"]
    assert [page.name for page in written] == names
    for page in written:
        assert page.read_text("utf-8") == (ROOT / "docs" / page.name).read_text("utf-8"), page.name


def test_the_results_in_the_readme_are_those_of_the_records() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = [re.sub("`.*?`", "", line) for line in readme.splitlines() if line.startswith("| **")]
    speed, tags, labels = (re.findall(r"\d+\.\d+|(?<![\d,])\d+(?= times)", row.partition("](")[0]) for row in rows)

    chains = json.loads((ROOT / "benchmarks" / "results" / "chain_cpu.json").read_text("utf-8"))["results"]
    case = next(case for case in chains["cases"] if case["size"][0] == 1000)
    ms = {step["name"]: step["median_ms"] for step in case["steps"]}
    ours = ms["LC logodds"]
    ratios = (ms["pytorch-crf"] / ours, ms["ChainCRF"] / ours, ours / ms["token cross-entropy"])
    assert speed == [f"{ratios[0]:.0f}", f"{ratios[1]:.1f}", f"{ratios[2]:.1f}"]

    found = conclusion(COMMITTED, "tagging")["results"]["data"]["rows"]
    latin = {row["method"]: row["test"] for row in found if row["source"] == "latin"}
    assert tags == [f"{statistics.mean(latin[method]):.2f}" for method in ("lc-rank", "crf", "ce")]

    found = conclusion(COMMITTED, "noise")["results"]["data"]["rows"]
    noise = {row["row"]: row["mean"] for row in found if (row["law"], row["rate"]) == ("instance", 0.4)}
    assert labels == [f"{noise[method]:.2f}" for method in ("robust", "ce", "ce-tuned", "unhinged-tuned")]


def test_what_is_said_about_the_width_of_a_core() -> None:
    runs = json.loads((ROOT / "benchmarks" / "results" / "core_width.json").read_text("utf-8"))["results"]
    page = " ".join((ROOT / "docs" / "robust-loss.md").read_text("utf-8").split())

    def all_of(row: str, rate: float, name: str = "test") -> list[float]:
        return [run[name] for run in runs if (run["row"], run["rate"]) == (row, rate)]

    cores = ("core up to 0.1", "core up to 0.5", "core up to 1", "no tail")
    right, learned = ([f"{statistics.mean(all_of(row, 0.4, name)):.1f}" for row in cores] for name in ("test", "learned"))
    assert right == sorted(right) and learned == sorted(learned, reverse=True)
    assert (
        f"{right[0]}, {right[1]} and {right[2]} % are right with cores up to 0.1, 0.5 and 1, and {right[3]} without" in page
    )
    assert f"{learned[0]}, {learned[1]}, {learned[2]} and {learned[3]} % of the wrong labels are learned" in page


def test_what_is_said_about_letters_beside_the_robust_loss() -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / "noisy_letters.json").read_text("utf-8"))["results"]
    tests = {(row["law"].rpartition("-")[2], row["loss"]): row["test"] for row in rows}
    even = {loss: statistics.mean(found) for (law, loss), found in tests.items() if law == "symmetric 40 %"}
    assert max(even, key=even.get) == "GCE, q = 0.7, normed scores"
