"""`linearcore reproduce`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linearcore.cli._device import check_device
from linearcore.cli._usage import INTERRUPTED, usage_errors

if TYPE_CHECKING:
    from linearcore.reproduce._experiment import Experiment, Settings
    from linearcore.reproduce._run import Finished


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Experiments; --list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Say what there is, what it costs and needs, and stop.")] = False,
    scale: Annotated[str, typer.Option(help="smoke (seconds) or paper (the paper's own size).")] = "smoke",
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for records and figures.")] = Path("linearcore-reproduce"),
    device: Annotated[str, typer.Option(help="Where to train, in torch's words: cpu, cuda, cuda:1.")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="Folder with data sets, for experiments that need one.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Write one HTML page about everything in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Redo the paper's figures and tables, and say of each claim whether it holds.

    Every experiment writes results.json, a figure as SVG and PNG, and its finished parts to OUT/NAME. A run that was
    interrupted goes on where it stopped when the same command is given again.

    \b
    Examples
        linearcore reproduce --list
        linearcore reproduce rates thresholds
        linearcore reproduce --all --scale paper --report
        linearcore reproduce --report          only the page, from what is there
    """
    from linearcore._extras import require

    with usage_errors():
        require("scipy", "matplotlib", extra="reproduce")
        from linearcore.reproduce._experiment import Settings
        from linearcore.reproduce._run import prepare
        from linearcore.reproduce.experiments import EXPERIMENTS

        if show:
            _print_list(list(EXPERIMENTS.values()), as_json)
            return
        chosen = _choose(names or [], every, report, EXPERIMENTS)
        settings = Settings(scale=scale, seed=seed, device=check_device(device), data=data)
        prepare(chosen, out)
    finished = _run(chosen, settings, out)
    page = _report(out) if report else None
    _print_results(finished, out, page, as_json)


def _choose(names: list[str], every: bool, report: bool, known: "dict[str, Experiment]") -> "list[Experiment]":
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown experiment {', '.join(unknown)}; known: {', '.join(known)}")
    if not names and not every and not report:
        raise ValueError(f"name an experiment or pass --all; known: {', '.join(known)}")
    # In the paper's order, each once.
    return [experiment for name, experiment in known.items() if every or name in names]


def _run(chosen: "list[Experiment]", settings: "Settings", out: Path) -> "list[Finished]":
    from linearcore._progress import Progress
    from linearcore.reproduce._run import run_experiment

    try:
        with Progress() as progress:
            return [run_experiment(experiment, settings, out, progress) for experiment in chosen]
    except KeyboardInterrupt:
        print("linearcore: interrupted; finished parts are kept, the same command goes on from there", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _report(out: Path) -> Path:
    from linearcore.reproduce.report import write_report

    with usage_errors():
        return write_report(out)


def _print_list(experiments: "list[Experiment]", as_json: bool) -> None:
    fields = ("name", "shows", "paper", "needs")
    rows = [{key: getattr(item, key) for key in fields} | {"cost": dict(item.cost)} for item in experiments]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        typer.echo(f"{row['name']}  ({row['paper']})")
        typer.echo(f"    {row['shows']}")
        typer.echo(f"    takes {row['cost']['smoke']} (smoke) or {row['cost']['paper']} (paper); needs {row['needs']}")


def _print_results(finished: "list[Finished]", out: Path, page: Path | None, as_json: bool) -> None:
    if as_json:
        told: dict[str, Any] = {"records": {item.name: item.record for item in finished}}
        typer.echo(json.dumps(told | {"report": None if page is None else str(page)}, ensure_ascii=False))
        return
    for item in finished:
        kept = f"  ({item.kept} of {item.parts} parts were finished before and kept)" if item.kept else ""
        typer.echo(f"{item.name}{kept}")
        for claim in item.record["results"]["claims"]:
            letter = f" ({claim['correction']})" if claim["correction"] else ""
            typer.echo(f"  {claim['verdict']}{letter}: {claim['claim']}")
            typer.echo(f"      paper: {claim['paper']}\n      ours:  {claim['ours']}")
    if finished:
        typer.echo(f"Records and figures: {out}; letters are those of docs/reading-the-paper-with-care.md.")
    if page is not None:
        typer.echo(f"Report: {page}")
