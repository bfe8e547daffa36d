"""`linearcore demo`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from linearcore.cli import usage_errors


def demo(
    seeds: Annotated[int, typer.Option(help="How many seeds; the table shows mean and spread over them.")] = 5,
    rates: Annotated[str, typer.Option(help="Shares of wrong training labels, with commas.")] = "0,0.2,0.4",
    epochs: Annotated[int, typer.Option(help="Passes over the training part.")] = 30,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the record.")] = Path("linearcore-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the record instead of the table.")] = False,
) -> None:
    """Train one small network with eight losses on digits whose training labels are partly wrong.

    Cross-entropy, hinge, GCE, the unhinged loss, the linear-core loss in its three forms and the robust one get the same
    network, start, batches and wrong labels. The table says how well each reads clean test digits, whoever wins.
    Takes a minute or two; writes demo.png, demo.svg and demo.json.

    \b
    Examples
        linearcore demo
        linearcore demo --seeds 10 --rates 0,0.3,0.6 --out more-noise
        linearcore demo --json | python -m json.tool
    """
    from linearcore.runtime import Progress, write_record
    from linearcore_paper.demo import DemoSettings, legend, reading, run, save_figure, table
    from linearcore_paper.runner import make_writable

    with usage_errors():
        settings = DemoSettings(seeds=seeds, rates=_parse_rates(rates), epochs=epochs, seed=seed)
        make_writable(out)
    with Progress() as progress:
        result = run(settings, progress)

    with usage_errors():
        png, svg = save_figure(result, out)
        plain_settings, plain_results = result.as_json()
        path = out / "demo.json"
        record = write_record(path, command="linearcore demo", settings=plain_settings, results=plain_results, seed=seed)
    if as_json:
        typer.echo(json.dumps(record, ensure_ascii=False))
        return

    from rich.console import Console

    console = Console(highlight=False)
    console.print(table(result))
    for line in (legend(result), reading(result), f"Picture: {png} and {svg.name}; numbers: {path.name} beside it."):
        console.print(line, markup=False, soft_wrap=True)


def _parse_rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(sorted(float(word) for word in text.split(",")))
    except ValueError:
        raise ValueError(f"`--rates` must be numbers with commas, got {text!r}; pass 0,0.2,0.4 for example") from None
