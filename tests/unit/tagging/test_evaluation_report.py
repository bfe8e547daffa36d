"""The evaluation as it is printed."""

import io

import pytest
from rich.console import Console

from linearcore.tagging._evaluation import Evaluation
from linearcore.tagging._evaluation_report import evaluation_report, summary


def printed(evaluation: Evaluation, **options: bool) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=120)
    for part in evaluation_report(evaluation, **options):
        console.print(part)
    return stream.getvalue()


def rows(text: str) -> list[list[str]]:
    """The cells of tables."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if "│" in line]


def many_tags() -> Evaluation:
    evaluation = Evaluation()
    for number in range(30):
        words = ["w"] * (number + 1)
        evaluation.add(words, [f"tag{number:02}"] * len(words), [f"guess{number:02}"] * len(words))
    return evaluation


def test_summary():
    evaluation = Evaluation({"a"}, known_tags={"DET", "NOUN"})
    evaluation.add(["a", "dog"], ["DET", "NOUN"], ["DET", "NOUN"])
    evaluation.add(["a", "b"], ["DET", "X"], ["DET", "DET"])
    assert summary(evaluation) == (
        "75.00 % of 4 words correct; known words 100.00 % of 2, unknown words 50.00 % of 2; 50.00 % of 2 sentences correct; "
        "1 word with 1 tag not in the training data, counted as wrong"
    )
    assert printed(evaluation).startswith(summary(evaluation)[:80])


def test_summary_without_unknown_words_and_with_entities():
    pytest.importorskip("seqeval")
    evaluation = Evaluation()
    evaluation.add(["a"] * 1000, ["B-PER"] * 1000, ["B-PER"] * 500 + ["O"] * 500)
    assert summary(evaluation) == (
        "50.00 % of 1,000 words correct; known words 50.00 % of 1,000, unknown words none; 0.00 % of 1 sentence correct; "
        "entity F1 66.67 %"
    )


def test_the_most_frequent_tags_and_the_worst_confusions():
    text = printed(many_tags())
    assert "The 20 most frequent of 60 tags, %" in text
    cells = rows(text)
    expected = [[f"tag{number:02}", "0.00", "0.00", "0.00", str(number + 1)] for number in reversed(range(10, 30))]
    assert [row for row in cells if len(row) == 5] == expected
    expected = [[f"tag{number:02}", f"guess{number:02}", str(number + 1)] for number in reversed(range(20, 30))]
    assert [row for row in cells if len(row) == 3] == expected


def test_all_tags_if_wanted():
    text = printed(many_tags(), all_tags=True)
    assert "Tags, %" in text and "most frequent of" not in text
    assert all(f"tag{number:02}" in text and f"guess{number:02}" in text for number in range(30))


def test_tags_that_look_like_markup_are_printed_as_they_are():
    evaluation = Evaluation()
    evaluation.add(["a", "b"], ["[bold]", "[/red]"], ["[bold]", ":dog:"])
    text = printed(evaluation)
    assert text.count("[bold]") == 1 and text.count("[/red]") == 2 and text.count(":dog:") == 2


def test_no_table_of_confusions_if_there_are_none():
    evaluation = Evaluation()
    evaluation.add(["a"], ["A"], ["A"])
    assert "confusions" not in printed(evaluation) and "Entities" not in printed(evaluation)


def test_entities():
    pytest.importorskip("seqeval")
    evaluation = Evaluation()
    evaluation.add(["a", "b", "c"], ["B-PER", "I-PER", "B-all"], ["B-PER", "I-PER", "O"])
    text = printed(evaluation)
    assert rows(text[text.index("Entities, %") :]) == [
        ["all", "100.00", "50.00", "66.67", "2"],
        ["PER", "100.00", "100.00", "100.00", "1"],
        ["all (type)", "0.00", "0.00", "0.00", "1"],
    ]


def test_message_without_words():
    with pytest.raises(ValueError, match="`evaluation` must have a sentence"):
        evaluation_report(Evaluation())


def test_columns_and_features():
    evaluation = Evaluation(columns="upos+feats")
    evaluation.add(["a", "b"], ["NOUN Case=Nom", "VERB _"], ["NOUN Case=Acc", "VERB _"])
    cells = rows(printed(evaluation))
    columns = [["upos", "100.00", "2"], ["feats", "50.00", "2"], ["universal feats", "50.00", "2"], ["all", "50.00", "2"]]
    assert [row for row in cells if len(row) == 3][:4] == columns
    assert ["Case", "0.00", "0.00", "0.00", "1"] in cells


def test_no_table_of_columns_for_one_column():
    evaluation = Evaluation(columns="upos")
    evaluation.add(["a"], ["A"], ["A"])
    assert "Columns" not in printed(evaluation) and "Features" not in printed(evaluation)
