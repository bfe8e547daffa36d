"""An evaluation on the terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from linearcore.tagging._entities import Rates
from linearcore.tagging._evaluation import Confusion, Evaluation, Share

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

MOST_TAGS, MOST_CONFUSIONS = 20, 10


def evaluation_report(evaluation: Evaluation, all_tags: bool = False) -> "list[RenderableType]":
    """What to print: a line that sums it up, the rates of tags, the worst confusions, the entities if there are any.

    Args:
        evaluation: with a sentence at least.
        all_tags: whether all tags are listed, and not only the `MOST_TAGS` most frequent ones.

    Raises:
        ValueError: if there are no words.

    Example:
        >>> evaluation = Evaluation(known_words={"a"})
        >>> evaluation.add(["a", "dog"], ["DET", "NOUN"], ["DET", "VERB"])
        >>> print(evaluation_report(evaluation)[0])
        50.00 % of 2 words right; known words 100.00 % of 1, unknown words 0.00 % of 1; 0.00 % of 1 sentence right
    """
    from rich.text import Text

    tags = evaluation.tags()
    shown = tags if all_tags else dict(list(tags.items())[:MOST_TAGS])
    parts: list[RenderableType] = [Text(summary(evaluation))]
    title = "Tags, %" if len(shown) == len(tags) else f"The {len(shown)} most frequent of {len(tags)} tags, %"
    parts.append(_rates_table(title, "tag", shown))
    confusions = evaluation.confusions(MOST_CONFUSIONS)
    if confusions:
        parts.append(_confusion_table(confusions))
    if evaluation.entities is not None:
        rates = {"all": evaluation.entities.overall()}
        parts.append(_rates_table("Entities, %", "type", rates | _without_clash(evaluation.entities.types())))
    return parts


def summary(evaluation: Evaluation) -> str:
    """The evaluation in one line.

    Raises:
        ValueError: if there are no words.
    """
    clauses = [f"{evaluation.accuracy:.2f} % of {_counted(evaluation.words.count, 'word')} right"]
    clauses.append(f"known words {_share(evaluation.known)}, unknown words {_share(evaluation.unknown)}")
    sentences = evaluation.sentences
    clauses.append(f"{sentences.accuracy:.2f} % of {_counted(sentences.count, 'sentence')} right")
    unseen = evaluation.unseen_tags
    if unseen:
        words = _counted(sum(unseen.values()), "word")
        clauses.append(f"{words} with {_counted(len(unseen), 'tag')} unseen in training, counted as wrong")
    if evaluation.entities is not None:
        clauses.append(f"entity F1 {evaluation.entities.overall().f1:.2f} %")
    return "; ".join(clauses)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _share(share: Share) -> str:
    return "none" if share.accuracy is None else f"{share.accuracy:.2f} % of {share.count:,}"


def _without_clash(types: Mapping[str, Rates]) -> dict[str, Rates]:
    """Types by a name that is not that of the line of all."""
    return {f"{kind} (type)" if kind == "all" else kind: rates for kind, rates in types.items()}


def _rates_table(title: str, what: str, rows: Mapping[str, Rates]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, title_justify="left")
    grid.add_column(what)
    for column in ("precision", "recall", "F1", "support"):
        grid.add_column(column, justify="right")
    for name, rates in rows.items():
        numbers = [f"{number:.2f}" for number in (rates.precision, rates.recall, rates.f1)]
        # Text: rich reads brackets in a plain string as its own marks, and tags such as [ are real.
        grid.add_row(Text(name), *numbers, f"{rates.support:,}")
    return grid


def _confusion_table(confusions: list[Confusion]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    grid = Table(title="Most frequent confusions", title_justify="left")
    grid.add_column("gold")
    grid.add_column("predicted")
    grid.add_column("words", justify="right")
    for pair in confusions:
        grid.add_row(Text(pair.gold), Text(pair.predicted), f"{pair.count:,}")
    return grid
