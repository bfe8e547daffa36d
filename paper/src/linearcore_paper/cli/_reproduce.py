"""`linearcore reproduce`."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linearcore.cli import INTERRUPTED, UsageError, check_device, usage_errors
from linearcore.runtime import check_committed, complaint

if TYPE_CHECKING:
    from linearcore_paper.runner import Experiment, Finished, Job


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Experiments; --list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List experiments, costs, needs, and the records in OUT.")] = False,
    scale: Annotated[str, typer.Option(help="smoke (seconds) or paper (the paper's own size).")] = "smoke",
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for records and figures.")] = Path("linearcore-reproduce"),
    device: Annotated[str, typer.Option(help="Where to train, in torch's words: cpu, cuda, cuda:1.")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="Folder with data sets, for experiments that need one.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--parts", metavar="GLOB", help="Do only the parts whose names match, and what they need; repeatable."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do all again, even what is finished.")] = False,
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="Run at paper scale although the checkout has uncommitted changes.")
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Processes that do recorded runs side by side. Pays where several small runs share one GPU, best with CUDA "
            "MPS. Timings, and parts that are no recorded runs, go one by one.",
        ),
    ] = 1,
    report: Annotated[bool, typer.Option("--report", help="Write one HTML page about everything in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Redo the paper's figures and tables, and say of each claim whether it holds.

    Every experiment writes results.jsonl (a line for each finished part, and one for the conclusion) and a figure as SVG and
    PNG to OUT/NAME. An interrupted or killed run goes on where it stopped when the same command is given again. Runs that
    take hours are kept for as long as their settings are the same: with the records of a checkout, --scale paper
    --out paper/src/linearcore_paper/experiments, none is done. The data sets are still verified, so --data is needed. At
    paper scale, a checkout with uncommitted changes is refused, since a record names the commit that made it.

    \b
    Examples
        linearcore reproduce --list            all experiments; reproduce noise --list: one of them
        linearcore reproduce rates thresholds
        linearcore reproduce --all --scale paper --report
        linearcore reproduce gradients --parts 'lc-*'
        linearcore reproduce --report          only the page, from what is there
    """
    from linearcore_paper.experiments import EXPERIMENTS
    from linearcore_paper.runner import Settings, prepare

    with usage_errors():
        if show:
            _print_list(_choose(names or [], not names, report, EXPERIMENTS), out, as_json)
            return
        chosen = _choose(names or [], every, report, EXPERIMENTS)
        settings = Settings(scale=scale, seed=seed, device=check_device(device), data=data)
        if workers < 1:
            raise ValueError(complaint("--workers", "be at least 1", workers, "pass 1 to do one part after the other"))
        if chosen and settings.is_paper:
            check_committed("--scale paper", allow_dirty)
        jobs = prepare(chosen, settings, out, only or [])
    finished = _run(jobs, workers, fresh)
    page = _report(out) if report else None
    _print_results(finished, out, page, as_json)
    if not as_json:
        _print_missing(finished, jobs)


def _choose(names: list[str], every: bool, report: bool, known: "dict[str, Experiment]") -> "list[Experiment]":
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown experiment {', '.join(unknown)}; known: {', '.join(known)}")
    if not names and not every and not report:
        raise ValueError(f"name an experiment or pass --all; known: {', '.join(known)}")
    # In the paper's order, each once.
    return [experiment for name, experiment in known.items() if every or name in names]


def _run(jobs: "list[Job]", workers: int, fresh: bool) -> "list[Finished]":
    from linearcore.runtime import Progress
    from linearcore_paper.runner import DeadWorkerError, run_experiment

    for job in jobs:
        if job.takes_days(fresh):
            told = f"{job.experiment.name} takes {job.experiment.cost['paper']}, and days on a CPU"
            print(f"linearcore: {told}; interrupt it and pass --device cuda if you can", file=sys.stderr)
    try:
        with Progress() as progress:
            return [run_experiment(job, progress, workers=workers, fresh=fresh) for job in jobs if job.chosen]
    except DeadWorkerError as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print("linearcore: interrupted; finished parts are kept, the same command goes on from there", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _report(out: Path) -> Path:
    from linearcore_paper.report import write_report

    with usage_errors():
        return write_report(out)


def _print_list(experiments: "list[Experiment]", out: Path, as_json: bool) -> None:
    from linearcore_paper.runner import ResultsFile

    rows = []
    for item in experiments:
        records, changed = ResultsFile(out, item.name).count()
        row = {key: getattr(item, key) for key in ("name", "shows", "paper", "needs")} | {"cost": dict(item.cost)}
        rows.append(row | {"records": records, "with_uncommitted_changes": changed})
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        typer.echo(f"{row['name']}  ({row['paper']})")
        typer.echo(f"    {row['shows']}")
        typer.echo(f"    takes {row['cost']['smoke']} (smoke) or {row['cost']['paper']} (paper); needs {row['needs']}")
        if row["records"]:
            typer.echo(f"    records: {row['records']}, {row['with_uncommitted_changes']} made with uncommitted changes")


def _print_results(finished: "list[Finished]", out: Path, page: Path | None, as_json: bool) -> None:
    if as_json:
        told: dict[str, Any] = {"records": {item.name: item.record for item in finished if item.record is not None}}
        told["incomplete"] = {item.name: [item.there, item.parts] for item in finished if item.record is None}
        typer.echo(json.dumps(told | {"report": None if page is None else str(page)}, ensure_ascii=False))
        return
    for item in finished:
        if item.record is None:
            continue
        kept = f"  ({item.kept} of {item.parts} parts were finished before and kept)" if item.kept else ""
        typer.echo(f"{item.name}{kept}")
        if changed := item.record["settings"].get("runs_with_uncommitted_changes"):
            typer.echo(f"  {changed} of {item.parts} parts were made with uncommitted changes")
        for claim in item.record["results"]["claims"]:
            letter = f" ({claim['correction']})" if claim["correction"] else ""
            typer.echo(f"  {claim['verdict']}{letter}: {claim['claim']}")
            typer.echo(f"      paper: {claim['paper']}\n      ours:  {claim['ours']}")
    records = [item.record for item in finished if item.record is not None]
    if any(claim["verdict"] == "not judged" for record in records for claim in record["results"]["claims"]):
        typer.echo('"not judged": made-up or small data, or a run that failed; the full size is --scale paper.')
    if records:
        has_letters = any(claim["correction"] for record in records for claim in record["results"]["claims"])
        letters = "; letters are those of docs/reading-the-paper-with-care.md" if has_letters else ""
        typer.echo(f"Records and figures: {out}{letters}.")
    if page is not None:
        typer.echo(f"Report: {page}")


def _print_missing(finished: "list[Finished]", jobs: "list[Job]") -> None:
    """Of experiments that lack parts, how many are there and what does the rest."""
    commands = {job.experiment.name: _command(job) for job in jobs}
    for item in finished:
        if item.record is None:
            typer.echo(f"{item.name}: {item.there} of {item.parts} parts are there; the rest with: {commands[item.name]}")


def _command(job: "Job") -> str:
    """What finishes the job, with the folders that were given."""
    words = [*job.command.split(), "--device", job.settings.device]
    if job.settings.data is not None:
        words += ["--data", str(job.settings.data)]
    return shlex.join([*words, "--out", str(job.out)])
