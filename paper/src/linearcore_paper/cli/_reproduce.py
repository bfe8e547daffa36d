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
    from linearcore_paper.runner import Experiment, Job, RunStatus


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Experiments; --list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    show: Annotated[
        bool, typer.Option("--list", help="List experiments with run time, required data, and results in OUT.")
    ] = False,
    scale: Annotated[str, typer.Option(help="smoke (seconds) or paper (full size; hours on a GPU).")] = "smoke",
    seed: Annotated[int, typer.Option(help="First seed; the other seeds follow it.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for results and figures.")] = Path("linearcore-reproduce"),
    device: Annotated[str, typer.Option(help="Torch device for training, for example cuda or cuda:1.")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="Folder with datasets, for experiments that need one.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--parts", metavar="GLOB", help="Run only parts that match GLOB, and their dependencies. Repeatable."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore finished parts and run them again.")] = False,
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="Run at paper scale although the checkout has uncommitted changes.")
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of parallel processes. Useful if several small runs share a GPU, best with CUDA MPS. Parts that "
            "measure time, and short parts, are never run in parallel.",
        ),
    ] = 1,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Write one HTML report. For each experiment it shows the run at paper scale in OUT or, if there is none, "
            "the results that come with the package.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Reproduce the paper's figures and tables and check each claim.

    An experiment consists of parts, for example one training run each. It writes results.jsonl (a line for each finished
    part, and one for the conclusion) and a figure as SVG and PNG to OUT/NAME. Run the same command again to resume an
    interrupted run.

    Parts that are finished in OUT with the same settings are not run again; --fresh runs them again. To draw the paper's
    figures without training, run with --scale paper --out paper/src/linearcore_paper/experiments in a checkout, which
    contains the finished runs. --data is still required there, because the hashes of the datasets are verified. Scale paper
    needs a checkout without uncommitted changes, because results name the commit that made them.

    \b
    Examples
        linearcore reproduce --list            list all experiments
        linearcore reproduce rates thresholds
        linearcore reproduce --all --scale paper --report
        linearcore reproduce gradients --parts 'lc-*'
        linearcore reproduce --report          only write the report, from existing results
    """
    from linearcore_paper.experiments import EXPERIMENTS
    from linearcore_paper.runner import Settings, prepare

    with usage_errors():
        if show:
            _print_list(_choose(names or [], not names, report, EXPERIMENTS), out, as_json)
            return
        selected = _choose(names or [], every, report, EXPERIMENTS)
        settings = Settings(scale=scale, seed=seed, device=check_device(device), data=data)
        if workers < 1:
            raise ValueError(complaint("--workers", "be at least 1", workers, "pass 1 to run one part at a time"))
        if selected and settings.is_paper:
            check_committed("--scale paper", allow_dirty)
        jobs = prepare(selected, settings, out, only or [])
    statuses = _run(jobs, workers, fresh)
    page = _report(out) if report else None
    _print_results(statuses, out, page, as_json)
    if not as_json:
        _print_missing(statuses, jobs)


def _choose(names: list[str], every: bool, report: bool, known: "dict[str, Experiment]") -> "list[Experiment]":
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown experiment {', '.join(unknown)}; known: {', '.join(known)}")
    if not names and not every and not report:
        raise ValueError(f"name an experiment or pass --all; known: {', '.join(known)}")
    # In the paper's order, each once.
    return [experiment for name, experiment in known.items() if every or name in names]


def _run(jobs: "list[Job]", workers: int, fresh: bool) -> "list[RunStatus]":
    from linearcore.runtime import Progress
    from linearcore_paper.runner import WorkerDiedError, run_experiment

    for job in jobs:
        if job.takes_days(fresh):
            cost = f"{job.experiment.name} takes {job.experiment.cost['paper']}, and days on a CPU"
            print(f"linearcore: {cost}; stop it and pass --device cuda if you have a GPU", file=sys.stderr)
    try:
        with Progress() as progress:
            return [run_experiment(job, progress, workers=workers, fresh=fresh) for job in jobs if job.selected]
    except WorkerDiedError as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print("linearcore: interrupted; finished parts are saved, run the same command to resume", file=sys.stderr)
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


def _print_results(statuses: "list[RunStatus]", out: Path, page: Path | None, as_json: bool) -> None:
    if as_json:
        output: dict[str, Any] = {"records": {item.name: item.record for item in statuses if item.record is not None}}
        output["incomplete"] = {item.name: [item.num_available, item.num_parts] for item in statuses if item.record is None}
        typer.echo(json.dumps(output | {"report": None if page is None else str(page)}, ensure_ascii=False))
        return
    for item in statuses:
        if item.record is None:
            continue
        note = f"  ({item.num_reused} of {item.num_parts} parts were finished before and reused)" if item.num_reused else ""
        typer.echo(f"{item.name}{note}")
        if changed := item.record["settings"].get("runs_with_uncommitted_changes"):
            typer.echo(f"  {changed} of {item.num_parts} parts were made with uncommitted changes")
        for claim in item.record["results"]["claims"]:
            letter = f" ({claim['correction']})" if claim["correction"] else ""
            typer.echo(f"  {claim['verdict']}{letter}: {claim['claim']}")
            typer.echo(f"      paper: {claim['paper']}\n      ours:  {claim['ours']}")
    records = [item.record for item in statuses if item.record is not None]
    if any(claim["verdict"] == "not judged" for record in records for claim in record["results"]["claims"]):
        typer.echo('"not judged": synthetic or small data, or a failed run; use --scale paper for the full size.')
    if records:
        has_letters = any(claim["correction"] for record in records for claim in record["results"]["claims"])
        letters = "; letters in parentheses: see docs/reading-the-paper-with-care.md" if has_letters else ""
        typer.echo(f"Results and figures: {out}{letters}.")
    if page is not None:
        typer.echo(f"Report: {page}")


def _print_missing(statuses: "list[RunStatus]", jobs: "list[Job]") -> None:
    """Prints the number of finished parts of incomplete experiments, and the command that runs the rest."""
    commands = {job.experiment.name: _command(job) for job in jobs}
    for item in statuses:
        if item.record is None:
            counts = f"{item.num_available} of {item.num_parts} parts are finished"
            typer.echo(f"{item.name}: {counts}; run the rest with: {commands[item.name]}")


def _command(job: "Job") -> str:
    """Returns the command that finishes the job, including its folders."""
    words = [*job.command.split(), "--device", job.settings.device]
    if job.settings.data is not None:
        words += ["--data", str(job.settings.data)]
    return shlex.join([*words, "--out", str(job.out)])
