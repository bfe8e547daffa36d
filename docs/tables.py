"""Fills the tables in the pages under docs from the committed records.

A page holds `<!-- table: NAME -->` and `<!-- end -->`; the lines between them are replaced. The sentences around a table are
written by hand. Run `python docs/tables.py` after a record or a function below has changed.
"""

import re
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from linearcore.runtime import has_uncommitted_changes, read_record
from linearcore_paper.experiments.convergence.training import METHODS as CONVERGENCE_METHODS
from linearcore_paper.experiments.convergence.training import reached
from linearcore_paper.experiments.noise.methods import INCOMPLETE_METHODS, METHODS
from linearcore_paper.runner import ResultsFile

ROOT = Path(__file__).parents[1]
PAGES = sorted(Path(__file__).parent.glob("*.md"))
BLOCK = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
EXPERIMENTS = ROOT / "paper" / "src" / "linearcore_paper" / "experiments"

Table = list[list[str]]
#: (row, column, text)
Cells = Iterable[tuple[str, str, str]]
#: The record of each table, and the function from the record's results to the lines, head first.
TABLES: dict[str, tuple[str, Callable[[Any], Table]]] = {}


# ---- pages ----


def filled(text: str) -> str:
    """A page with all its tables made anew."""

    def fill(block: re.Match[str]) -> str:
        name, lines_of = TABLES[block[2]]
        record, link = read(name)
        head, *rows = lines_of(record["results"])
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
        parts = ["", "\n".join(f"| {' | '.join(cells)} |" for cells in lines), "", *source(name, record, link), block[3]]
        return block[1] + "\n".join(parts)

    return BLOCK.sub(fill, text)


def read(name: str) -> tuple[dict[str, Any], str]:
    """A record, and its link from a page."""
    folder = EXPERIMENTS / name.replace("-", "_")
    if folder.is_dir():
        file = ResultsFile(EXPERIMENTS, name)
        record = file.conclusion
        if record is None:
            raise ValueError(f"`{name}` has no conclusion in {folder}; run `linearcore reproduce {name} --scale paper`")
        record = record | {"results": record["results"] | {"parts": file.parts}}
        return record, f"../{(folder / 'results.jsonl').relative_to(ROOT)}"
    path = "docs/results/corrections.json" if name == "corrections" else f"benchmarks/results/{name}.json"
    return read_record(ROOT / path), f"../{path}"


def source(name: str, record: dict[str, Any], link: str) -> list[str]:
    """The record's link, command and machine; nothing for the corrections, whose page names their record once."""
    if name == "corrections":
        return []
    where, settings = record["environment"], record["settings"]
    machine = where["device"] if str(settings.get("device", "cpu")).startswith("cuda") else where["cpu"]
    runs_on = "; ".join(settings.get("runs_on", [f"{machine}, torch {where['torch']}"]))
    dirty = settings.get("runs_with_uncommitted_changes")
    made = f"{dirty} of the runs were" if dirty else "This record was" if has_uncommitted_changes(where) else ""
    mark = f" {made} made in a checkout with uncommitted changes." if made else ""
    done, planned = settings.get("cells", (0, 0))
    mark += f" **Incomplete: {done:,} of {planned:,} cells.**" if done < planned else ""
    return [f"Record: [{name}]({link}), `{record['command']}`, {runs_on}.{mark}", ""]


# ---- cells and shapes of tables ----


def cell(value: Any, form: str = "") -> str:
    """A value with a true minus sign; shapes with ×, mean ± standard deviation of a list, and a dash for None."""
    if isinstance(value, list):
        if form == "shape":
            return "×".join(map(str, value))
        mean = cell(statistics.mean(value), form)
        return mean if len(value) == 1 else f"{mean} ± {statistics.stdev(value):{form}}"
    return "–" if value is None else f"{value:{form}}".replace("-", "−") if form else str(value)


def lookup(row: Any, path: str) -> Any:
    """The entry under keys that are joined by slashes; None where one is missing."""
    for key in path.split("/"):
        row = None if row is None else row[int(key)] if isinstance(row, list) else row.get(key)
    return row


def listed(name: str, record: str, rows_of: Callable[[Any], Iterable[Any]], columns: dict[str, str]) -> None:
    """Registers a table with a row for each entry; a column is a heading and `path:format`."""

    def lines(results: Any) -> Table:
        paths = [column.partition(":")[::2] for column in columns.values()]
        return [list(columns), *([cell(lookup(row, path), form) for path, form in paths] for row in rows_of(results))]

    TABLES[name] = (record, lines)


def pivot(name: str, record: str, corner: str, cells_of: Callable[[Any], Cells]) -> None:
    """Registers a table from (row, column, text); rows and columns in the order of their first appearance."""

    def lines(results: Any) -> Table:
        found = {(row, column): text for row, column, text in cells_of(results)}
        rows, columns = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
        return [[corner, *columns], *([row, *(found.get((row, column), "–") for column in columns)] for row in rows)]

    TABLES[name] = (record, lines)


# ---- losses for classes ----


def one_line(results: Any) -> Cells:
    """Cross-entropy's accuracy, and differences to it with their intervals."""
    classes = {"digits": "10 classes", "letter": "26 classes", "many": "200 classes"}
    for case, rows in results["same_rate"].items():
        data, _, optimizer = case.partition(", ")
        for row in rows:
            text = "{} [{}, {}]".format(*(cell(row.get(key), "+.2f") for key in ("difference", "low", "high")))
            is_baseline = row["loss"] == "cross-entropy"
            yield row["loss"], f"{classes[data]}, {optimizer}", cell(row["mean"], ".2f") if is_baseline else text


pivot("one_line", "one_line", "loss", one_line)

_DENSE = {"logodds": "LC logodds, eager", "pairwise": "LC pairwise, eager", "centered": "LC centered, eager"}
_COMPILED = {"CE compiled": "F.cross_entropy, compiled", "logodds compiled": "LC logodds, compiled",
             "pairwise compiled": "LC pairwise, compiled"}  # fmt: skip


def dense_columns(threads: bool, losses: dict[str, str]) -> dict[str, str]:
    """Columns of the time and memory of dense losses."""
    return {
        "scores": "shape:shape", "dtype": "dtype", **({"threads": "threads"} if threads else {}),
        "CE, ms": "losses/F.cross_entropy, eager/median_ms:,.3g",
        **{f"{label}, × CE": f"losses/{loss}/ratio_to_cross_entropy:.2f" for label, loss in losses.items()},
        "CE, peak MiB": "losses/F.cross_entropy, eager/peak_mib:,.1f",
        "logodds, peak MiB": "losses/LC logodds, eager/peak_mib:,.1f",
    }  # fmt: skip


listed("dense_loss_cpu", "dense_loss_cpu", lambda results: results,
       dense_columns(True, _DENSE | {"robust": "LC robust, eager", "CE compiled": _COMPILED["CE compiled"]}))  # fmt: skip
listed("dense_loss_cuda", "dense_loss_cuda", lambda results: results,
       dense_columns(False, _DENSE | {"robust": "LC robust, eager"} | _COMPILED))  # fmt: skip


def linear_loss(results: Any) -> Cells:
    """Milliseconds of a step and MiB beyond the inputs and their gradients, a slash between them."""
    order = ("three", "LC", "torch", "Liger", "Cut")
    for case in results["cases"]:
        for name, row in sorted(case["losses"].items(), key=lambda item: order.index(re.split("[ ,]", item[0])[0])):
            memory = "" if row["peak_mib"] is None else f" / {row['peak_mib']:,.0f}"
            label = {
                "torch, eager": "F.linear, cross-entropy",
                "torch, compiled": "F.linear, cross-entropy, torch.compile",
            }.get(name, name)
            yield label, f"{'×'.join(f'{size:,}' for size in case['shape'])}, ms / MiB", f"{row['median_ms']:,.3g}{memory}"


pivot("linear_loss_cuda", "linear_loss_cuda", "layer and loss", linear_loss)
pivot("linear_loss_cpu", "linear_loss_cpu", "layer and loss", linear_loss)


# ---- complete training runs ----


listed("end_to_end", "end_to_end_cpu", lambda results: results, {
    "data": "dataset", "loss": "loss", "before, s": "before/seconds:.1f", "now, s": "after/seconds:.1f",
    "before / now": "ratio:.2f", "accuracy before, %": "before/accuracy:.2f",
    "accuracy now, %": "after/accuracy:.2f"})  # fmt: skip


# ---- chains ----


_STEPS = ("token cross-entropy", "pytorch-crf", "broadcast CRF", "ChainCRF", "ChainSSVM", "LC logodds",
          "LC logodds, rank 32")  # fmt: skip


def chain(results: Any) -> Cells:
    """Milliseconds of an eager step, a slash, and those of a CUDA graph, by head and number of tags."""
    sizes = [(f"{case['size'][0]:,} tags", {row["name"]: row for row in case["steps"]}) for case in results["cases"]]
    has_graphs = any(name.endswith(", graph") for _, steps in sizes for name in steps)
    for name in _STEPS:
        label = name.replace("LC logodds", "LinearCoreChain")
        for size, steps in sizes:
            modes = [name, f"{name}, graph"] if has_graphs else [name]
            yield label, f"{size}, ms", " / ".join(cell(lookup(steps, f"{mode}/median_ms"), ",.4g") for mode in modes)
        size, steps = next(pair for pair in sizes if pair[0] == "1,000 tags")
        yield label, f"{size}, peak MiB", cell(lookup(steps, f"{name}/peak_mib"), ",.0f")


pivot("chain_cpu", "chain_cpu", "training step", chain)
pivot("chain_cuda", "chain_cuda", "training step", chain)
listed("decoding_cpu", "decoding_cpu", lambda results: (
    row | {"method": row["method"].replace("torchcrf", "pytorch-crf")} for row in results["sets"]["latin"]["methods"]
), {"decoder": "method", "accuracy, %": "accuracy:.2f", "words/s": "tokens_per_second:,.0f",
    "× pytorch-crf": "times_torchcrf:,.1f", "× exact": "times_exact:.2f",
})  # fmt: skip

listed("automata_cpu", "automata_cpu", lambda results: results["rows"], {
    "automaton": "case", "arcs": "arcs:,", "operation": "operation", "head, ms": "milliseconds/head:.2f",
    "automaton, ms": "milliseconds/automaton:.2f", "automaton / head": "times_head/automaton:.2f",
    "from emissions / head": "times_head/automaton, emissions:.2f", "pynini, ms": "milliseconds/pynini:,.1f",
    "pynini / automaton": "pynini_times_automaton:.1f",
})  # fmt: skip


listed("minimum_risk_cpu", "minimum_risk_cpu", lambda results: results["costs"], {
    "cost": "cost", "Viterbi": "viterbi/mean:.4f", "16 best": "16 best/mean:.4f",
    "16 best, 64 samples": "16 + 64/mean:.4f", "64 best, 64 samples": "64 + 64/mean:.4f", "ms, Viterbi": "viterbi/ms:.2f",
    "ms, 16 best": "16 best/ms:.2f", "ms, 16 best, 64 samples": "16 + 64/ms:.2f",
    "ms, 64 best, 64 samples": "64 + 64/ms:.2f",
})  # fmt: skip


def taggers(results: Any) -> Iterable[dict[str, Any]]:
    """The most accurate first."""
    names = {"lc": "LinearCoreChain", "ce": "token cross-entropy", "crf": "ChainCRF", "ssvm": "ChainSSVM",
             "crfsuite": "sklearn-crfsuite", "lc_plain": "LinearCoreChain, plain head",
             "lc_composed": "LinearCoreChain, composed tags"}  # fmt: skip
    for loss, row in sorted(results["summary"].items(), key=lambda item: -item[1]["test_accuracy"]):
        runs = [run for run in results["runs"] if run["loss"] == loss]
        unseen = runs[0].get("test_unseen_tag_correct"), runs[0].get("test_words_with_unseen_tag")
        tests, speed = [run["test_accuracy"] for run in runs], results["training_words_per_second"].get(loss)
        yield row | {"name": names[loss], "tests": tests, "unseen": "{} of {}".format(*unseen), "speed": speed}


_ACCURACY = {"loss": "name", "test accuracy, %": "tests:.2f", "accuracy on unknown words, %": "unknown:.2f"}
for _name in ("tagging_ewt400", "tagging_ewt_upos", "tagging_turkish", "tagging_latin_60000"):
    listed(_name, _name, taggers, _ACCURACY | {"epochs": "epochs:.0f"})
for _name in ("tagging_ewt_feats_60000", "tagging_turkish_64000"):
    listed(_name, _name, taggers, _ACCURACY)
listed("tagging_turkish_30000", "tagging_turkish_30000", taggers,
       _ACCURACY | {"correct among words with an unseen tag": "unseen"})  # fmt: skip
pivot("tag_predict_cpu", "tag_predict_cpu", "× plain loop", lambda results: (
    (row["method"], f"{size['tags']} tags, {way}", cell(row["times_plain"], ".2f"))
    for size in results["sizes"] for way in ("one sentence", "batches") for row in size[way]
))  # fmt: skip
listed("tagging_latin", "tagging_latin", taggers,
       _ACCURACY | {"training time, s": "seconds:.0f", "training words/s": "speed:,"})  # fmt: skip


def many_tags(methods: tuple[str, ...], figure: Callable[[Any], str]) -> Callable[[Any], Cells]:
    """A text for every case and method of `linearcore reproduce tagging`."""

    def cells(results: Any) -> Cells:
        data = results["data"]
        for row in sorted(data["rows"], key=lambda row: methods.index(row["method"]) if row["method"] in methods else 9):
            source = data["sources"][row["source"]].split(",")[0]
            if row["method"] in methods:
                case = f"{source}, {row['tags']:,} tags, {data['encodings'][row['encoding']]}"
                yield case, data["labels"][row["method"]], figure(row)

    return cells


def seconds(row: Any) -> str:
    """Seconds to the target accuracy, or how many seeds reached it."""
    reached = sum(step is not None for step in row["reached"])
    return cell(row["seconds"], ".3g") if row["seconds"] else f"reached by {reached} of {len(row['reached'])} seeds"


_LINEAR_CORES = ("lc", "lc-rank", "lc-sampled")
pivot("many_tags_accuracy", "tagging", "test accuracy, %",
      many_tags(("ce", "crf", *_LINEAR_CORES), lambda row: cell(row["test"], ".2f")))  # fmt: skip
pivot("many_tags_seconds", "tagging", "seconds to 83 %", many_tags(("ce", "broadcast", "crf", *_LINEAR_CORES), seconds))
listed("many_tags_memory", "tagging", lambda results: (
    {"label": results["data"]["labels"][key], "peak": peak, "memory": results["data"]["memory"].get(key)}
    for key, peak in results["data"]["peaks"].items()
), {"method": "label", "GB, batch of 8": "peak/peak_gb:.3g", "sequences in 16 GB": "memory/sequences/16:,",
    "sequences in 40 GB": "memory/sequences/40:,"})  # fmt: skip
listed("sampled_cpu", "sampled_cpu", lambda results: (
    {"tags": int(size)} | steps for size, steps in results["growth"].items()
), {"tags": "tags:,", "token CE, SGD, ms": "token cross-entropy, SGD/median_ms:.2f",
    "all candidates, SGD, ms": "LC all candidates, SGD/median_ms:.2f", "sampled, SGD, ms": "LC sampled, SGD/median_ms:.2f",
    "sampled, SparseAdamW, ms": "LC sampled, SparseAdamW/median_ms:.2f"})  # fmt: skip


def proposals(results: Any) -> Cells:
    """Errors with 64 shared samples, and with all candidates."""
    draws = [f"{draws}, K = 64" for draws in ("uniform", "unigram^0.75", "in batch + uniform", "hard 16 + uniform")]
    for method in ("token cross-entropy", "ChainCRF", "LC logodds, all candidates", *draws):
        for name, case in results["sets"].items():
            for row in case["methods"]:
                if row["method"] == method:
                    text = f"{row['test']:.2f} ± {row['spread']:.2f} ({row['steps']:,} steps)"
                    label = method.replace("LC logodds", "LinearCoreChain")
                    yield label, f"{name.split(',')[0].capitalize()}, {case['num_tags']:,} tags", text


pivot("proposals_turkish", "proposals_turkish", "test error, %", proposals)
pivot("proposals_chains", "proposals_chains", "test error, %", proposals)


# ---- wrong labels ----


def method_label(label: str) -> str:
    """The label of a method, which says whether a row is our run with the paper's settings."""
    return re.sub("(.*) as in the paper(.*)", r"\1, paper's settings\2 (our run)", label)


def noise(results: Any) -> Cells:
    """Accuracies by rate, the best at 40 % first, and below them the paper's."""
    data = results["data"]
    middle = {row["row"]: row["mean"] for row in data["rows"] if (row["law"], row["rate"]) == ("instance", 0.4)}
    has_spread = {(row["law"], row["rate"]) for row in data["rows"] if row["spread"]}
    for row in sorted(data["rows"], key=lambda row: -middle[row["row"]]):
        rate = f"{100 * row['rate']:g} %{' symmetric' if row['law'] == 'symmetric' else ''}"
        single = " (1 seed)" if (row["law"], row["rate"]) in has_spread else ""
        deviation = f" ± {row['spread']:.2f}" if row["spread"] else single
        yield method_label(data["labels"][row["row"]]), rate, cell(row["mean"], ".2f") + deviation
    for name, values in data["paper"].items():
        yield from (
            (f"{name.upper()}, as printed in the paper", f"{100 * rate:g} %", cell(value, ".2f")) for rate, value in values
        )


def first_seed(results: Any) -> Cells:
    """Accuracies of all methods with one seed, also of those that are not in the large table yet, the best at 40 % first."""
    runs = [
        (re.fullmatch(r"run_instance_(0\.[246])_(.+)_seed1", name), part["results"])
        for name, part in results["parts"].items()
    ]
    found = {(run[2], float(run[1])): result["test_accuracy"] for run, result in runs if run}
    for method in sorted({method for method, _ in found}, key=lambda method: -found[method, 0.4]):
        label = method_label((METHODS | INCOMPLETE_METHODS)[method].label)
        yield from ((label, f"{100 * rate:g} %", cell(found[method, rate], ".2f")) for rate in (0.2, 0.4, 0.6))


pivot("noise", "noise", "test accuracy, %", noise)
pivot("noise_first_seed", "noise", "test accuracy, %", first_seed)
listed("noise_after", "noise", lambda results: sorted(
    (row | {"label": method_label(results["data"]["labels"][row["row"]])} for row in results["data"]["rows"]
     if (row["law"], row["rate"]) == ("instance", 0.4)), key=lambda row: -row["auc_margin"]
), {"loss": "label", "AUROC by margin": "auc_margin:.3f", "AUROC by loss": "auc_loss:.3f",
    "wrong labels learned, %": "wrong_learned:.1f"})  # fmt: skip
pivot("noisy_letters", "noisy_letters", "accuracy, %", lambda results: (
    (row["loss"], row["law"], cell(row["test"], ".2f")) for row in results
))  # fmt: skip
_IDEAL = {"class": "knows P(label given class)", "pixels": "knows P(label given image)",
          "likeliest": "predicts the most probable label", "normed": "predicts the highest normed probability"}  # fmt: skip
pivot("favourites", "favourites", "correct predictions, %", lambda results: (
    (f"{_IDEAL[row['learner']]}, {_IDEAL[row['answer']]}", f"{100 * row['rate']:g} %",
     f"{statistics.mean(row['answered']):.1f}") for row in results
))  # fmt: skip


def planted(results: Any, *, at_boundary: bool = False) -> list[dict[str, Any]]:
    """The cases with errors near class boundaries, or those with the four other kinds."""
    return [row for row in results["cases"] if (row["law"] == "boundary") == at_boundary]


def mean_pair(rows: list[dict[str, Any]], part: str, name: str) -> str:
    """Means of AUROC and average precision, with a slash; a dash if no case has it."""
    found = [row[part][name] for row in rows if name in row.get(part, {})]
    return " / ".join(f"{statistics.mean(row[key] for row in found):.3f}" for key in ("auroc", "ap")) if found else "–"


def by_precision(rows: list[dict[str, Any]], part: str) -> list[str]:
    """The names of a part, the highest mean average precision first."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name, values in row.get(part, {}).items():
            found.setdefault(name, []).append(values["ap"])
    return sorted(found, key=lambda name: -statistics.mean(found[name]))


def wrong_labels(results: Any) -> Cells:
    """AUROC and average precision of every model, by dataset."""
    rows = planted(results)
    for name in by_precision([row for row in rows if "network" in row["models"]], "models"):
        for data in results["sets"]:
            yield name, data, mean_pair([row for row in rows if row["set"] == data], "models", name)


def wrong_labels_rankings(results: Any) -> Cells:
    """AUROC and average precision of every ranking from the same probabilities."""
    rows, hard = planted(results), planted(results, at_boundary=True)
    for name in by_precision(rows, "rankings"):
        for rate in results["rates"]:
            column = f"four noise models, {100 * rate:g} % wrong"
            yield name, column, mean_pair([row for row in rows if row["rate"] == rate], "rankings", name)
        yield name, "text only", mean_pair([row for row in rows if row["set"] == "newsgroups"], "rankings", name)
        yield name, "near boundaries", mean_pair(hard, "rankings", name)


def wrong_labels_counts(results: Any) -> Cells:
    """Mean deviation of every count from the truth, and its mean share of the truth."""
    rows = planted(results)
    groups = {f"{100 * rate:g} % wrong": [row for row in rows if row["rate"] == rate] for rate in results["rates"]}
    groups["near boundaries"] = planted(results, at_boundary=True)

    def error(cases: list[dict[str, Any]], name: str) -> float:
        return statistics.mean(100 * abs(row["counts"][name] - row["counts"]["true"]) / row["rows"] for row in cases)

    names = [name for name in rows[0]["counts"] if name not in ("true", "low", "high")]
    for name in sorted(names, key=lambda name: error(rows, name)):
        for group, cases in groups.items():
            share = statistics.mean(row["counts"][name] / row["counts"]["true"] for row in cases)
            yield name, f"{group}: mean absolute error, % of rows", f"{error(cases, name):.1f}"
            yield name, f"{group}: estimate / true number", f"{share:.2f}"


def wrong_labels_losses(results: Any) -> Cells:
    """AUROC and average precision of the network with every loss, by kind of noise."""
    names = {"gce": "GCE", "ce": "CE", "lc": "LC logodds", "lc-pairwise": "LC pairwise", "lc-centered": "LC centered",
             "robust": "LC robust", "unhinged": "unhinged, normed scores"}  # fmt: skip
    rows = [row for row in planted(results) if "losses" in row]
    for loss in by_precision(rows, "losses"):
        yield names[loss], "mean", mean_pair(rows, "losses", loss)
        for law in dict.fromkeys(row["law"] for row in rows):
            yield names[loss], law, mean_pair([row for row in rows if row["law"] == law], "losses", loss)


def with_rates(cells_of: Callable[[Any], Cells]) -> Callable[[Any], Cells]:
    """Adds the rates of the planted errors to the results."""
    return lambda results: cells_of(results | {"rates": sorted({row["rate"] for row in results["cases"]})})


pivot("wrong_labels", "wrong_labels", "AUROC / AP", wrong_labels)
pivot("wrong_labels_rankings", "wrong_labels", "AUROC / AP", with_rates(wrong_labels_rankings))
pivot("wrong_labels_counts", "wrong_labels", "estimated number", with_rates(wrong_labels_counts))
pivot("wrong_labels_losses", "wrong_labels", "AUROC / AP, 20 % wrong", wrong_labels_losses)


# ---- which loss ----

_LOSSES = {"ce": "cross-entropy", "smoothed": "label smoothing 0.1", "gce": "GCE, q = 0.7", "sce": "symmetric CE",
           "elr": "ELR", "lc": "LC default", "pairwise": "LC pairwise", "robust": "LC robust",
           "wide": "LC wide core, `NormedScores`", "gce-normed": "GCE, `NormedScores`"}  # fmt: skip


#: Columns of the tables, by the part of wrong labels.
_CLEAN, _TWENTY, _FORTY = ("clean",), (" 20 %",), (" 40 %",)
#: Data sets by kind, in the table by data set.
_KINDS = {"4 image sets": ("digits", "fashion", "mnist", "cifar10"), "letter": ("letter",),
          "2 texts, linear": ("newsgroups", "brown"), "2 texts, hidden layer": ("newsgroups-mlp", "brown-mlp"),
          "2 sets of tags": ("words", "latin")}  # fmt: skip


def compared(group: str, ends: tuple[str, ...], cell_of: Callable[[Any], str]) -> Callable[[Any], Cells]:
    """A column for each noise whose name has one of these ends, Adam: data sets with many classes, or with two."""

    def cells(results: Any) -> Cells:
        for one in results["groups"]:
            if (one["optimizer"], one["group"]) == ("adam", group) and one["noise"].endswith(ends):
                for loss, title in _LOSSES.items():
                    if loss in one["losses"] and (text := cell_of(one["losses"][loss])):
                        yield title, one["noise"], text

    return cells


def ranked(*ends: str) -> Callable[[Any], Cells]:
    """Points above cross-entropy with average ranks, and the critical difference in the last row."""

    def cells(results: Any) -> Cells:
        yield from compared("many", ends, lambda row: f"{cell(row['gain'], '+.1f')} ({row['rank']:.1f})")(results)
        for one in results["groups"]:
            if (one["optimizer"], one["group"]) == ("adam", "many") and one["noise"].endswith(ends):
                yield "critical difference of ranks", one["noise"], f"({one['critical_difference']:.1f})"

    return cells


def gains_by_data(optimizer: str, kinds: dict[str, tuple[str, ...]]) -> Callable[[Any], Cells]:
    """Points above cross-entropy by data set, clean and as the mean over all kinds of noise; three or more classes."""

    def cells(results: Any) -> Cells:
        for kind, names in kinds.items():
            for label, is_clean in (("clean", True), ("noisy", False)):
                cases = [case["losses"] for case in results["cases"] if case["optimizer"] == optimizer
                         and case["data"] in names and (case["noise"] == "clean") == is_clean]  # fmt: skip
                for loss, title in _LOSSES.items():
                    gain = statistics.mean(losses[loss]["test"] - losses["ce"]["test"] for losses in cases)
                    yield title, f"{kind}, {label}", cell(gain, "+.1f")

    return cells


def starts(optimizer: str) -> Callable[[Any], Cells]:
    """The learning rate to start with, and the points of accuracy that are lost if no other one is tried."""
    return lambda results: (
        (_LOSSES[row["loss"]], f"{row['network']}, {row['labels']}", f"{row['step']} ({row['regret'][row['step']]:.1f})")
        for row in results["starts"] if row["optimizer"] == optimizer
    )  # fmt: skip


pivot("which_loss", "which_loss", "points above CE (rank)", ranked(*_CLEAN, *_FORTY))
pivot("which_loss_20", "which_loss", "points above CE (rank)", ranked(*_TWENTY))
pivot("which_loss_data", "which_loss", "points above CE", gains_by_data("adam", _KINDS))
pivot("which_loss_balanced", "which_loss", "points above CE", compared(
    "many", _CLEAN + _FORTY, lambda row: cell(row["balanced_gain"], "+.1f")
))  # fmt: skip
pivot("which_loss_two", "which_loss", "accuracy / balanced", compared(
    "two", _CLEAN + _TWENTY + _FORTY, lambda row: f"{cell(row['gain'], '+.1f')} / {cell(row['balanced_gain'], '+.1f')}"
))  # fmt: skip
pivot("which_loss_calibration", "which_loss", "ECE, % / NLL", compared(
    "many", _CLEAN + _FORTY, lambda row: f"{row['ece']:.1f} / {row['nll']:.2f}" if "ece" in row else ""
))  # fmt: skip
pivot("which_loss_sgd", "which_loss", "points above CE, SGD", gains_by_data(
    "sgd", {"letter": ("letter",), "Fashion-MNIST": ("fashion",), "20 newsgroups, linear": ("newsgroups",)}
))  # fmt: skip
pivot("which_loss_starts", "which_loss", "learning rate of Adam (points lost)", starts("adam"))
pivot("which_loss_starts_sgd", "which_loss", "learning rate of SGD (points lost)", starts("sgd"))
listed("which_loss_search", "which_loss_search", lambda results: sorted(results, key=lambda row: -row["gain"]), {
    "candidate": "candidate", "cases": "cases", "difference to the default": "gain:+.2f", "standard error": "error:.2f",
    "cases above it": "better", "difference, clean": "clean:+.2f", "difference, noisy": "noisy:+.2f",
    "smallest difference": "worst:+.2f",
})  # fmt: skip


# ---- corrections to the paper ----


_PAIRS = {"pairwise_logistic_1_sided": "`pairwise`, one-sided", "pairwise_logistic_2_sided": "`pairwise`, two-sided",
          "logodds_logistic_1_sided": "`logodds`, one-sided", "centered_logistic_1_sided": "`centered`, one-sided",
          "centered_logistic_1_sided_tau_0.5": "`centered`, one-sided, τ = 0.5",
          "centered_four_classes_logistic_1_sided": "four classes: `centered`, one-sided",
          "centered_four_classes_logistic_2_sided": "four classes: `centered`, two-sided",
          "hamming/structured_sum": "Hamming cost: sum loss, one-sided",
          "hamming/structured_centered": "Hamming cost: centered loss, one-sided"}  # fmt: skip
listed("a", "corrections", lambda results: ({"label": label, **lookup(results["a"], key)} for key, label in _PAIRS.items()),
       {"surrogate regret / target regret": "label"} | {f"δ = {delta}": f"ratios/{place}:.3f" for place, delta in
        enumerate((0.1, 0.05, 0.02, 0.01, 0.005, 0.002))})  # fmt: skip
listed("g", "corrections", lambda results: results["g"]["rows"], {
    "tags": "tags", "sequences": "outputs", "average around the truth": "averaged_around_truth:.3f",
    "average over pairs": "averaged_pairs:.3f", "weighted sum over pairs": "weighted_sum_pairs:.2e",
})  # fmt: skip
pivot("l", "corrections", "logistic base", lambda results: (
    (f"{label}, {side}", f"τ = {tau:g}", f"{value:.4f}") for label, key in (("straight fit", "fitted"),
     ("local slope at δ = 1e-4", "local_at_delta_1e-4"), ("local slope at δ = 0.1", "local_at_delta_1e-1"))
    for side, name in (("one-sided", "1_sided"), ("two-sided", "2_sided"))
    for tau, value in zip(results["l"]["tau"], results["l"][name][key], strict=True)
))  # fmt: skip


def convergence(results: Any) -> Cells:
    """Final error and seconds to the target of every method, at batch 1 and with its best batch size."""
    target, settings = results["data"]["target"], {"one": "batch 1", "suited": "best batch size"}
    for run in results["data"]["runs"]:
        label, setting = CONVERGENCE_METHODS[run["method"]].label, settings[run["setting"]]
        yield label, f"final error, {setting}", cell(run["curve"]["error"][-1], ".3f")
        time = reached(run["curve"], target)
        yield label, f"s to {target:.3f}, {setting}", "never" if time is None else cell(time, ".2g")


pivot("p", "convergence", "method", convergence)
_SMALL = {"ssvm": "SSVM", "tags_at_single_positions": "LC log-odds, 20 sampled tags",
          "algorithm_1_uniform": "Algorithm 1, 20 pairs, y'' uniform",
          "algorithm_1_uniform_many": "Algorithm 1, 400 pairs, y'' uniform",
          "algorithm_1_neighbours": "Algorithm 1, 20 pairs, y'' neighbours",
          "algorithm_1_neighbours_many": "Algorithm 1, 400 pairs, y'' neighbours"}  # fmt: skip
listed("p_small", "corrections", lambda results: [
    *({"label": label, **results["p"]["rows"][key]} for key, label in _SMALL.items()),
    {"label": "decoding without transitions", "test_errors": results["p"]["decoding"]["without_transitions"]},
], {"method": "label", "test error": "test_errors:.3f"})  # fmt: skip
listed("q", "corrections", lambda results: (
    {"label": label, **results["q"]["rows"][key]} for key, label in (("hinge", "hinge"), ("linear_core", "linear core"))
), {"surrogate": "label", "deviation, standard errors": "largest_deviation_in_standard_errors:.1f",
    **{f"K · variance, K = {k}": f"variance_times_K/{k}:.3f" for k in (1, 4, 16)}})  # fmt: skip


def curvatures(results: Any) -> Cells:
    """Greatest second derivatives of every base, and the start from which a gradient step fails."""
    for name, row in results["r"]["rows"].items():
        base, sides = name.removesuffix("_sided").rsplit("_", 1)
        label = f"{base.replace('_', ' ')}, {'one-sided' if sides == '1' else 'two-sided'}"
        for reach, value in zip(results["r"]["reach"], row["greatest_curvature"], strict=True):
            yield label, f"max φ'' on [−{reach:g}, {reach:g}]", cell(value, ",.0f" if value > 100 else ".3g")
        yield label, "sup φ''", "∞" if row["declared"] == "inf" else cell(row["declared"], ".3g")
        yield label, "a step fails from distance", cell(row["risk_increases_from"], ".1f")


pivot("r", "corrections", "base", curvatures)
_ORIGIN = {"logistic_loss": "logistic loss", "exponential_loss": "exponential loss", "squared_hinge": "squared hinge",
           "hinge": "hinge", "logistic_1_sided": "linear core, logistic", "exponential_1_sided": "linear core, exponential",
           "gamma_1_sided": "linear core, gamma"}  # fmt: skip
listed("u", "corrections", lambda results: (
    {"label": label, **results["u"]["rows"][key]} for key, label in _ORIGIN.items()
), {"surrogate": "label", "φ'(0)": "slope:.2f", "φ''(0)": "curvature:.2f", "T(t)/t": "T_over_t:.4f",
    "T(t)/t²": "T_over_t_squared:.4f", "predicted": "predicted:.4f"})  # fmt: skip
listed("optimization_rates", "optimization-rates", lambda results: results["data"]["rates"], {
    "surrogate": "label", "sup φ''": "smoothness:.3g",
    "GD, ties": "gradient/ties:.2f", "GD, no noise": "gradient/separable:.2f",
    "Nesterov, ties": "nesterov/ties:.2f", "Nesterov, no noise": "nesterov/separable:.2f",
    "factor, λ = 0.1": "gradient/factor:.3f", "theory": "gradient/factor_of_theory:.3f",
})  # fmt: skip
listed("optimization_steep", "optimization-rates", lambda results: results["data"]["steep"], {
    "surrogate": "label", "step size 1": "fails_from/0:.3g", "0.1": "fails_from/1:.3g", "0.01": "fails_from/2:.3g",
})  # fmt: skip


def end_to_end(results: Any) -> Cells:
    """Steps to a small 0-1 excess, and excess and bound with the most samples, by loss and law of noise."""
    for row in results["data"]["end_to_end"]:
        law, samples = results["data"]["laws"][row["law"]], row["samples"]
        yield row["label"], f"steps, {law}", cell(row["steps"]["reached"])
        yield row["label"], f"excess, {law}", f"{samples['excess'][-1]:.2g} ± {samples['error'][-1]:.1g}"
        yield row["label"], f"bound, {law}", cell(samples["bound"][-1], ".2g")


pivot("optimization_end_to_end", "optimization-rates", "loss", end_to_end)
_METRICS = {"hamming": "Hamming", "aligned_bigrams": "aligned pairs of labels", "count_kernel": "count kernel of pairs",
            "clipped_bigrams": "clipped count of pairs", "f1": "F1 of label 1", "bleu": "BLEU, 1- and 2-grams"}  # fmt: skip
pivot("w", "corrections", "metric", lambda results: (
    (_METRICS[row["metric"]], f"n = {row['window']}", cell(abs(round(row["mixed_difference"], 12)), ".3f"))
    for row in results["w"]["additivity"]
))  # fmt: skip


# ---- samples of whole sequences ----


def _factor(value: float) -> str:
    return cell(value, ",.0f" if value >= 10 else ".2g")


pivot("structured_sampling", "structured_sampling_cpu", "fewer samples / at equal time", lambda results: (
    (f"`{row['cost']}`, {row['tags']} tags", row["proposal"], f"{_factor(row['samples'])} / {_factor(row['time'])}")
    for row in results["variances"] if row["point"] == "untrained" and row["proposal"] != "uniform"
))  # fmt: skip
pivot("structured_sampling_tags", "structured_sampling_cpu", "times fewer samples", lambda results: (
    (f"{row['tags']} tags", f"n = {row['n']}", _factor(row["samples"])) for row in results["by_tags"]
))  # fmt: skip
pivot("structured_sampling_time", "structured_sampling_cpu", "µs", lambda results: (
    (f"{row['tags']:,} tags", f"L = {row['length']}, n = {row['n']}", cell(row["us"], ".2f"))
    for row in results["per_sample"]
))  # fmt: skip


# ---- guarantees ----

pivot("noise_conditions", "noise-conditions", "noise exponent α", lambda results: (
    (f"{alpha:g}", curve["label"], cell(exponent, ".3f"))
    for curve in results["data"]["exponents"]
    for alpha, exponent in zip(curve["alpha"], curve["exponent"], strict=True) if round(10 * alpha) % 2 == 0 or alpha == 0.5
))  # fmt: skip


# ---- training and decoding for a metric ----


def for_a_metric(results: Any) -> Cells:
    """Scores with their 95 % intervals by both decoders, and milliseconds; the machine was too busy to time the strings."""
    data = results["data"]
    for row in data["rows"]:
        task, metric = data["tasks"][row["task"]].split(",")[0], data["metrics"][row["metric"]]
        name = f"{task}, {metric}, {row['steps']} steps: {row['label']}"
        for by, column in (("viterbi", "Viterbi"), ("risk", "minimum risk"), ("gain", "difference")):
            form = "+.2f" if by == "gain" else ".2f"
            yield name, column, f"{cell(row[by]['mean'], form)} ± {row[by]['half_width']:.2f}"
        if row["task"] == "strings":
            continue
        yield name, "ms a step", cell(row["ms_per_step"], ".1f")
        yield name, "ms a sentence, Viterbi", cell(row["viterbi_ms"], ".3f")
        yield name, "ms a sentence, minimum risk", cell(row["risk_ms"], ".2f")


pivot("ngram", "ngram", "%, test", for_a_metric)


def main() -> None:
    """Rewrites the pages whose tables have changed."""
    for page in PAGES:
        text = page.read_text("utf-8")
        if (new := filled(text)) != text:
            page.write_text(new, "utf-8")
            print(f"written: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
