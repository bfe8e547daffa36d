"""The command `linearcore tag eval`."""

import json
from collections.abc import Sequence
from itertools import chain, tee
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linearcore.cli import _tag_files as options
from linearcore.cli._tag_files import DECODE_FOR, FILE, FORMAT, file_name, reader_errors
from linearcore.cli._usage import check_device, usage_errors

if TYPE_CHECKING:
    from linearcore.tagging import Evaluation

#: Width of tables in a file, where no row is wrapped.
_FILE_WIDTH = 100_000


def evaluate(
    model: options.Model,
    file: Annotated[str, typer.Argument(metavar="FILE", help=f"Tagged sentences. {FILE}")],
    tag: Annotated[
        str | None,
        typer.Option(
            help="Columns to compare, or key in JSON lines. Default: as in training. For joint tags such as "
            "upos+feats you may give one column."
        ),
    ] = None,
    device: options.Device = "cpu",
    format: Annotated[str, typer.Option(help=FORMAT)] = "auto",
    check_ids: options.CheckIds = True,
    comments: options.Comments = None,
    decode_for: Annotated[
        str | None,
        typer.Option(help=f"{DECODE_FOR} If given, one table compares both; all other tables are for this decoding."),
    ] = None,
    temperature: options.Temperature = None,
    candidates: options.Candidates = None,
    all_tags: Annotated[bool, typer.Option("--all-tags", help="Show all tags instead of the 20 most frequent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare predicted tags with the tags in a file.

    Prints accuracy (also for known and unknown words separately, and for every column of joint tags such as upos+feats),
    precision and recall of each feature and each tag, the most frequent confusions, and precision and recall of entities
    for BIO tags. "universal feats" is UFeats of CoNLL-18's evaluation.

    With --decode-for, all tables are for minimum Bayes risk decoding, except one that compares it with decoding by score.
    In JSON the key "decode_for" has the evaluation of minimum Bayes risk decoding, and the key "decoding" of each
    evaluation says which decoding was used.

    \b
    Examples
        linearcore tag eval english en-test.conllu
        linearcore tag eval latin la-test.conllu --tag upos
        linearcore tag eval english en-test.conllu --json
        linearcore tag eval entities dev.conllu --decode-for span-f1 --temperature 2
    """
    from linearcore.runtime import Progress

    with usage_errors():
        from linearcore.tagging import Tagger
        from linearcore.tagging.readers import Layout, read_sentences

        tagger = Tagger.load(model, check_device(device))
        layout = tagger.layout
        gold_tag = tag or layout.tag_for(format)
        sentences = read_sentences(file, gold_tag, format, check_ids=check_ids, comments=comments, layout=layout)
    risk = {"temperature": temperature, "candidates": candidates}
    with reader_errors(), Progress() as progress:
        first = next(sentences)
        if tag is None:
            layout.require_width(first)
        columns = Layout.of(first, gold_tag).columns
        ways: list[dict[str, Any]] = [{}, {"decode_for": decode_for, **risk}]
        ways = ways if decode_for is not None else [risk]
        evaluations = [tagger.evaluation(columns, cost=decode_for) for _ in ways]
        copies = tee(chain([first], sentences), len(ways))
        tagged = zip(*(tagger.predict_sentences(copy, **way) for copy, way in zip(copies, ways, strict=True)), strict=True)
        for pairs in progress.track(tagged, f"tagging {file_name(file)}", unit="sentences"):
            for evaluation, (sentence, prediction) in zip(evaluations, pairs, strict=True):
                evaluation.add(sentence.words, sentence.tags or [], prediction.tags)
        if as_json:
            best, *others = (evaluation.to_json() for evaluation in evaluations)
            decoded = {"decoding": f"least {decode_for} cost", **others[0]} if others else None
            typer.echo(json.dumps({"decoding": "best score", **best, "decode_for": decoded}, ensure_ascii=False))
        else:
            _print(evaluations, all_tags)


def _print(evaluations: "Sequence[Evaluation]", all_tags: bool) -> None:
    """Prints a comparison if there are two evaluations, and the tables of the last one.

    Names are wrapped on a terminal, and in a file every row is one line.
    """
    from rich.console import Console
    from rich.text import Text

    from linearcore.tagging import comparison_table, evaluation_report

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    if len(evaluations) > 1:
        console.print(comparison_table(*evaluations))
    for part in evaluation_report(evaluations[-1], all_tags):
        # The summary is not wrapped, so other programs can parse it as one line.
        console.print(part, soft_wrap=isinstance(part, Text))
