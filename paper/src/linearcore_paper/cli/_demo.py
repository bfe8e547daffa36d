"""`linearcore demo`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from linearcore.cli import usage_errors
from linearcore.runtime import complaint

Number = TypeVar("Number", int, float)


def demo(
    seeds: Annotated[int, typer.Option(help="Number of seeds for mean and standard deviation of the accuracy.")] = 5,
    noise_rates: Annotated[str, typer.Option(help="Fractions of wrong training labels, comma-separated.")] = "0,0.2,0.4,0.6",
    epochs: Annotated[int, typer.Option(help="Training epochs.")] = 30,
    tags: Annotated[str, typer.Option(help="Numbers of tags, comma-separated; at most 2000.")] = "10,30,100,300,1000",
    seconds: Annotated[float, typer.Option(help="Seconds to spend on timing training steps.")] = 30.0,
    seed: Annotated[int, typer.Option(help="First seed; the other seeds follow it.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the figure and the results.")] = Path("linearcore-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Measure step times of taggers, and accuracy with wrong training labels.

    The first part times one training step of pytorch-crf, ChainCRF, LinearCoreChain and token cross-entropy for several
    numbers of tags. The second part trains the same small network with cross-entropy, generalized cross-entropy (GCE) and
    three linear-core losses on digits with partly wrong training labels, and tests it on clean digits.

    Takes about 90 seconds on one CPU core. Writes demo.png, demo.svg and demo.json.

    \b
    Examples
        linearcore demo
        linearcore demo --seeds 10 --noise-rates 0,0.3,0.6 --out more-noise
        linearcore demo --json | python -m json.tool
    """
    from linearcore.runtime import Progress, write_record
    from linearcore_paper.demo import DemoSettings, draw, print_result, run
    from linearcore_paper.drawing import save_figure
    from linearcore_paper.runner import make_writable

    with usage_errors():
        settings = DemoSettings(
            seeds=seeds,
            noise_rates=tuple(sorted(_numbers("noise-rates", noise_rates, float, "0,0.2,0.4"))),
            epochs=epochs,
            seed=seed,
            tags=tuple(sorted(_numbers("tags", tags, int, "10,100,1000"))),
            seconds=seconds,
        )
        make_writable(out)
    with Progress() as progress:
        result = run(settings, progress)

    with usage_errors():
        json_settings, json_results = result.as_json()
        path = out / "demo.json"
        # Before the figure: a changed figure in a checkout would mark the record as made with uncommitted changes.
        record = write_record(path, command="linearcore demo", settings=json_settings, results=json_results, seed=seed)
        save_figure("demo", lambda _: draw(result), {}, out)
    if as_json:
        typer.echo(json.dumps(record, ensure_ascii=False))
        return
    print_result(result)
    typer.echo(f"Figure: {out / 'demo.png'} and demo.svg; results: {path.name} in the same folder.")


def _numbers(name: str, text: str, kind: Callable[[str], Number], example: str) -> list[Number]:
    try:
        return [kind(word) for word in text.split(",")]
    except ValueError:
        must = f"be {'integers' if kind is int else 'numbers'} separated by commas"
        raise ValueError(complaint(f"--{name}", must, repr(text), f"pass {example} for example")) from None
