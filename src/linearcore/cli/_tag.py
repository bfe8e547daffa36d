"""The commands `linearcore tag train`, `tag predict`, `tag eval` and `tag export`; each has a file of its own."""

import typer

from linearcore.cli._tag_eval import evaluate
from linearcore.cli._tag_export import export
from linearcore.cli._tag_predict import predict
from linearcore.cli._tag_train import train

tag = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
tag.command()(train)
tag.command()(predict)
tag.command(name="eval")(evaluate)
tag.command()(export)


@tag.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Train and use sequence taggers.

    \b
    Start with
        linearcore tag train --train train.conllu --dev dev.conllu --tag upos --out model
        linearcore tag eval model test.conllu
        linearcore tag predict model new.conllu > tagged.conllu
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
