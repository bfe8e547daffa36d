"""Tables of an evaluation for the terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from linearcore.tagging._entities import PrecisionRecall
from linearcore.tagging._evaluation import Confusion, CorrectCount, Evaluation

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

MAX_TAGS, MAX_CONFUSIONS = 20, 10


def evaluation_report(evaluation: Evaluation, all_tags: bool = False) -> "list[RenderableType]":
    """Returns the parts to print: a summary line, scores per column, feature and tag, confusions, scores per entity type.

    Long names are wrapped, never cut; print with a wide console where every row must be one line.

    Args:
        evaluation: an evaluation with at least one sentence.
        all_tags: list all tags instead of the `MAX_TAGS` most frequent ones.

    Raises:
        ValueError: if there are no words.

    Example:
        >>> evaluation = Evaluation(known_words={"a"})
        >>> evaluation.add(["a", "dog"], ["DET", "NOUN"], ["DET", "VERB"])
        >>> print(evaluation_report(evaluation)[0])
        50.00 % of 2 words correct; known words 100.00 % of 1, unknown words 0.00 % of 1; 0.00 % of 1 sentence correct
    """
    from rich.text import Text

    tags = evaluation.tags()
    rows = tags if all_tags else dict(list(tags.items())[:MAX_TAGS])
    parts: list[RenderableType] = [Text(summary(evaluation))]
    columns = dict(evaluation.columns())
    if evaluation.universal_features is not None:
        columns["universal feats"] = evaluation.universal_features
    if len(columns) > 1:
        parts.append(_columns_table(columns | {"all": evaluation.words} if len(evaluation.columns()) > 1 else columns))
    if evaluation.features():
        parts.append(_scores_table("Features, %", "feature", evaluation.features()))
    title = "Tags, %" if len(rows) == len(tags) else f"The {len(rows)} most frequent of {len(tags)} tags, %"
    parts.append(_scores_table(title, "tag", rows))
    confusions = evaluation.confusions(MAX_CONFUSIONS)
    if confusions:
        parts.append(_confusion_table(confusions))
    if evaluation.entities is not None:
        overall = {"all": evaluation.entities.overall()}
        parts.append(_scores_table("Entities, %", "type", overall | _renamed_all(evaluation.entities.types())))
    return parts


def comparison_table(best: Evaluation, decoded: Evaluation) -> "Table":
    """Returns a table of two evaluations of the same sentences, side by side.

    Args:
        best: evaluation of the tags with the best score.
        decoded: evaluation of the tags that were decoded for a cost; both have the mean of this cost.
    """
    from rich.table import Table

    assert best.mean_cost is not None and decoded.mean_cost is not None
    name = best.mean_cost.name
    grid = Table(title="Decoding, %", title_justify="left")
    grid.add_column("")
    grid.add_column("best score", justify="right", no_wrap=True)
    grid.add_column(f"for {name}", justify="right", no_wrap=True)
    costs = (best.mean_cost.value, decoded.mean_cost.value)
    grid.add_row(f"100 − {name} cost, mean of sentences", *(f"{100 * (1 - cost):.2f}" for cost in costs))
    if best.entities is not None and decoded.entities is not None:
        grid.add_row("entity F1", *(f"{entities.overall().f1:.2f}" for entities in (best.entities, decoded.entities)))
    grid.add_row("words correct", *(f"{each.accuracy:.2f}" for each in (best, decoded)))
    grid.add_row("sentences correct", *(f"{each.sentences.accuracy:.2f}" for each in (best, decoded)))
    return grid


def summary(evaluation: Evaluation) -> str:
    """Returns the evaluation in one line.

    Raises:
        ValueError: if there are no words.
    """
    clauses = [f"{evaluation.accuracy:.2f} % of {_counted(evaluation.words.count, 'word')} correct"]
    clauses.append(f"known words {_percent(evaluation.known)}, unknown words {_percent(evaluation.unknown)}")
    sentences = evaluation.sentences
    clauses.append(f"{sentences.accuracy:.2f} % of {_counted(sentences.count, 'sentence')} correct")
    unseen = evaluation.unseen_tags
    if unseen:
        words = _counted(sum(unseen.values()), "word")
        correct = f"{evaluation.unseen_correct:,} of them correct" if evaluation.unseen_correct else "counted as wrong"
        clauses.append(f"{words} with {_counted(len(unseen), 'tag')} not in the training data, {correct}")
    if evaluation.entities is not None:
        clauses.append(f"entity F1 {evaluation.entities.overall().f1:.2f} %")
    return "; ".join(clauses)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _percent(count: CorrectCount) -> str:
    return "none" if count.accuracy is None else f"{count.accuracy:.2f} % of {count.count:,}"


def _renamed_all(types: Mapping[str, PrecisionRecall]) -> dict[str, PrecisionRecall]:
    """Renames an entity type called "all", which is the name of the row of overall scores."""
    return {f"{kind} (type)" if kind == "all" else kind: scores for kind, scores in types.items()}


def _columns_table(columns: Mapping[str, CorrectCount]) -> "Table":
    from rich.table import Table

    grid = Table(title="Columns, %", title_justify="left")
    grid.add_column("column", overflow="fold")
    grid.add_column("accuracy", justify="right", no_wrap=True)
    grid.add_column("words", justify="right", no_wrap=True)
    for name, count in columns.items():
        grid.add_row(name, f"{count.accuracy:.2f}", f"{count.count:,}")
    return grid


def _scores_table(title: str, what: str, rows: Mapping[str, PrecisionRecall]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, title_justify="left")
    grid.add_column(what, overflow="fold")
    for column in ("precision", "recall", "F1", "support"):
        grid.add_column(column, justify="right", no_wrap=True)
    for name, scores in rows.items():
        numbers = [f"{number:.2f}" for number in (scores.precision, scores.recall, scores.f1)]
        # `Text`, because rich interprets brackets in a string as markup, and [ may be a tag.
        grid.add_row(Text(name), *numbers, f"{scores.support:,}")
    return grid


def _confusion_table(confusions: list[Confusion]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    grid = Table(title="Most frequent confusions", title_justify="left")
    grid.add_column("gold", overflow="fold")
    grid.add_column("predicted", overflow="fold")
    grid.add_column("words", justify="right", no_wrap=True)
    for pair in confusions:
        grid.add_row(Text(pair.gold), Text(pair.predicted), f"{pair.count:,}")
    return grid
