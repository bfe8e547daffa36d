"""Tables as features and labels: what columns are taken for, missing values, and one line for what cannot be used."""

import numpy as np
import pytest

from linearcore.tables import ColumnKinds, TableError, encode, is_sparse, read_csv


def write(folder, *lines):
    path = folder / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def encoded(folder, *lines, label="y", **kinds):
    return encode(read_csv(write(folder, *lines)), label, ColumnKinds(**kinds))


def test_numbers_and_categories(tmp_path):
    lines = ("x,colour,y,id", "1,red,b,n1", "-2e1,blue,a,n2", " 3 ,red,b,n3", "4,red,a,n4")
    found = encoded(tmp_path, *lines, ignore=["id"])
    x = np.array([1, -20, 3, 4])
    np.testing.assert_allclose(found.features[:, 0], (x - x.mean()) / x.std())
    assert found.features[:, 1:].tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    assert found.labels.tolist() == [1, 0, 1, 0] and found.classes == ("a", "b")
    assert (found.numbers, found.categories, found.texts) == (("x",), ("colour",), ())


def test_labels_that_are_numbers_are_in_their_order_and_others_in_the_alphabet(tmp_path):
    rows = ["1,10", "2,9", "1,10", "2,9"]
    assert encoded(tmp_path, "x,y", *rows).classes == ("9", "10")
    assert encoded(tmp_path, "x,y", *rows, "1,b", "1,b").classes == ("10", "9", "b")


def test_numbers_can_be_categories(tmp_path):
    found = encoded(tmp_path, "x,y", "1,a", "2,b", "3+,a", "1,b", categorical=["x"])
    assert found.features.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_commas_among_words_and_on_request_are_categories(tmp_path):
    lines = ("x,z,y", '"1,2",low,a', '"3,4","1,2",b', '"1,2","1,2",a', '"3,4",low,b')
    assert encoded(tmp_path, *lines, categorical=["x"]).categories == ("x", "z")


@pytest.mark.parametrize("gap", ["", "NA", "?", "nan", "Null"])
def test_a_missing_number_is_the_median_and_marked(tmp_path, gap):
    found = encoded(tmp_path, "x,y", "1,a", f"{gap},b", "3,a", "10,b", "2,b")
    assert found.num_missing == 1 and found.features.shape == (5, 2)
    x = np.array([1, 2.5, 3, 10, 2])
    np.testing.assert_allclose(found.features[:, 0], (x - x.mean()) / x.std())
    assert (found.features[:, 1] > 0).tolist() == [False, True, False, False, False]


def test_a_missing_word_is_a_category(tmp_path):
    found = encoded(tmp_path, "x,y", "u,a", ",b", "u,a", "v,b")
    assert found.features.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


SENTENCES = [f"this is about {'cats' if row % 2 else 'dogs'} number w{row},{'ab'[row % 2]}" for row in range(8)]


def test_sentences_are_text_and_become_sparse(tmp_path):
    found = encoded(tmp_path, "x,y", *SENTENCES)
    assert found.texts == ("x",) and is_sparse(found.features)
    # "cats" and "dogs" tell the classes apart; what is in one row only is left out.
    assert found.features.shape == (8, 6)
    np.testing.assert_allclose((found.features**2).sum(1), 1)


def test_text_and_numbers_stand_side_by_side(tmp_path):
    lines = [f"{row},{line}" for row, line in enumerate(SENTENCES)]
    found = encoded(tmp_path, "n,x,y", *lines)
    assert (found.numbers, found.texts) == (("n",), ("x",)) and found.features.shape == (8, 7)
    assert found.features.toarray()[:, 0].argmax() == 7


def test_words_are_text_on_request(tmp_path):
    found = encoded(tmp_path, "x,y", "cat,a", "dog,b", "cat,a", "dog,b", text=["x"])
    assert found.texts == ("x",) and found.features.shape == (4, 2)


MANY = [f"w{number},{'ab'[number % 2]}" for number in range(51)]
UNUSABLE = {
    "no label": (["x,y", "1,a", "2,b"], {"label": "z"}, "t.csv: there is no column 'z'; there are x, y"),
    "another case": (["x,Kind", "1,a", "2,b"], {"label": "kind"}, "did you mean 'Kind'?"),
    "no label among many": (
        [",".join(f"c{number}" for number in range(12)), ",".join("1" * 12)],
        {"label": "z"},
        "there are c0, c1, c2, c3, c4, …, c7, c8, c9, c10, c11",
    ),
    "no ignored": (["x,y", "1,a", "2,b"], {"ignore": ["z"]}, "there is no column 'z'"),
    "no category": (["x,y", "1,a", "2,b"], {"categorical": ["z"]}, "there is no column 'z'"),
    "no text": (["x,y", "1,a", "2,b"], {"text": ["z"]}, "there is no column 'z'"),
    "both": (["x,y", "1,a", "2,b"], {"text": ["x"], "categorical": ["x"]}, "column 'x' is both categorical and text"),
    "label as feature": (["x,y", "1,a", "2,b"], {"ignore": ["y"]}, "column 'y' is the label"),
    "empty": (["x,z,y", ",1,a", ",2,b", "NA,3,a", ",4,b"], {}, "column 'x' is empty; drop it with ignore=['x']"),
    "missing label": (["x,y", "1,a", "2, ", "3,a"], {}, "t.csv:3: column 'y' is empty"),
    "inf": (["x,y", "1,a", "2,b", "-inf,a", "1,b"], {}, "t.csv:4: column 'x' has -inf instead of a finite number"),
    "huge": (["x,y", "1,a", "2,b", "1e200,a", "1,b"], {}, "t.csv:4: column 'x' has 1e+200 instead of a finite number"),
    "mixed": (["x,y", "1,a", "2,b", "3+,a", "1,b"], {}, "t.csv:4: column 'x' has numbers, but here '3+'"),
    "decimal commas": (
        ["x,y", "5,a", "NA,b", '"-3,25",a', "1,b"],
        {},
        "t.csv:4: column 'x' has '-3,25', a number with a decimal comma; write -3.25, or pass categorical=['x']",
    ),
    "many words": (["x,y", *MANY], {}, "t.csv: column 'x' has 51 distinct values, too many for a category"),
    "no words": (["x,y", "1,a", "2,b", "1,a", "2,b"], {"text": ["x"]}, "column 'x' has no words"),
    "one class": (["x,y", "1,a", "2,a"], {}, "t.csv: all labels in column 'y' are 'a'"),
    "measurement": (["x,y", "1,a", "2,b", "3,c"], {}, "t.csv: column 'y' has 3 different labels in 3 rows"),
    "no feature": (["x,y", "1,a", "2,b", "1,a", "2,b"], {"ignore": ["x"]}, "t.csv: no column is left to learn from"),
}


@pytest.mark.parametrize(("lines", "options", "message"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_tables_that_cannot_be_used(tmp_path, lines, options, message):
    with pytest.raises(TableError) as caught:
        encoded(tmp_path, *lines, **options)
    assert message in str(caught.value)


def test_fifty_words_are_categories_and_more_on_request(tmp_path):
    assert encoded(tmp_path, "x,y", *MANY[:50]).features.shape == (50, 50)
    assert encoded(tmp_path, "x,y", *MANY, categorical=["x"]).features.shape == (51, 51)
