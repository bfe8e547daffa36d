"""CoNLL-U, against the conllu package and line by line."""

import pytest

from linearcore.tagging.readers import ReaderError, TagColumns
from linearcore.tagging.readers._blocks import MAX_SENTENCE_LINES
from linearcore.tagging.readers._conllu import conllu

TEXT = """\
# newdoc id = kitchen
# sent_id = kitchen-1
# text = Vámonos al mar, don't wait.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tVB\tMood=Imp|Number=Plur\t0\troot\t0:root\t_
2\tnos\tnosotros\tPRON\tPRP\tCase=Acc\t1\tobj\t1:obj\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\tIN\t_\t5\tcase\t5:case\t_
4\tel\tel\tDET\tDT\tDefinite=Def\t5\tdet\t5:det\t_
5\tmar\tmar\tNOUN\tNN\tGender=Masc\t1\tobl\t1:obl\tSpaceAfter=No
6\t,\t,\tPUNCT\t,\t_\t1\tpunct\t1:punct\t_
7-8\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
7\tdo\tdo\tAUX\tVBP\t_\t9\taux\t9:aux\t_
8\tn't\tnot\tPART\tRB\tPolarity=Neg\t9\tadvmod\t9:advmod\t_
9\twait\twait\tVERB\tVB\tVerbForm=Inf\t1\tparataxis\t1:parataxis\tSpaceAfter=No
10\t.\t.\tPUNCT\t.\t_\t1\tpunct\t1:punct\t_

# sent_id = kitchen-2
# text = Sue likes coffee and Bill tea, 10 000 cups
0.1\tWell\twell\tINTJ\tUH\t_\t_\t_\t2:discourse\t_
1\tSue\tSue\tPROPN\tNNP\t_\t2\tnsubj\t2:nsubj\t_
2\tlikes\tlike\tVERB\tVBZ\tNumber=Sing\t0\troot\t0:root\t_
3\tcoffee\tcoffee\tNOUN\tNN\t_\t2\tobj\t2:obj\t_
4\tand\tand\tCCONJ\tCC\t_\t5\tcc\t5.1:cc\t_
5\tBill\tBill\tPROPN\tNNP\t_\t2\tconj\t5.1:nsubj\t_
5.1\tlikes\tlike\tVERB\tVBZ\t_\t_\t_\t2:conj\t_
5.2\tall\tall\tDET\tDT\t_\t_\t_\t6:det\t_
6\ttea\ttea\tNOUN\tNN\t_\t5\torphan\t5.1:obj\tSpaceAfter=No
7\t,\t,\tPUNCT\t,\t_\t9\tpunct\t9:punct\t_
8\t10 000\t10 000\tNUM\tCD\tNumType=Card\t9\tnummod\t9:nummod\t_
9\tcups\tcup\tNOUN\tNNS\tNumber=Plur\t2\tlist\t2:list\t_

1\t#\t#\tSYM\t#\t_\t0\troot\t0:root\t_
"""
LINES = TEXT.split("\n")


def read(text: str, tag: str | None = "upos", check_ids: bool = True):
    return list(conllu(text.split("\n"), "x.conllu", None if tag is None else TagColumns.parse(tag), check_ids))


def words(*ids: str) -> str:
    return "\n".join(f"{identifier}\tform\tlemma\tNOUN" + "\t_" * 6 for identifier in ids)


def test_as_the_conllu_package_reads_it():
    package = pytest.importorskip("conllu")
    theirs = [[token for token in sentence if isinstance(token["id"], int)] for sentence in package.parse(TEXT)]
    ours = read(TEXT, "upos")
    assert [sentence.words for sentence in ours] == [[token["form"] for token in tokens] for tokens in theirs]
    assert [sentence.tags for sentence in ours] == [[token["upos"] for token in tokens] for tokens in theirs]
    feats = [[package.serializer.serialize_field(token["feats"]) for token in tokens] for tokens in theirs]
    assert [[tag.split(" ")[1] for tag in sentence.tags] for sentence in read(TEXT, "xpos+feats")] == feats
    ids = [[token["id"] for token in tokens] for tokens in theirs]
    assert [[int(sentence.lines[row].split("\t")[0]) for row in sentence.rows] for sentence in ours] == ids


def test_lines_and_their_numbers_are_kept():
    sentences = read(TEXT)
    assert [line for sentence in sentences for line in [*sentence.lines, ""]] == LINES
    assert [sentence.line for sentence in sentences] == [1, 18, 33]
    for sentence in sentences:
        assert LINES[sentence.line - 1] == sentence.lines[0]
        assert [sentence.lines[row].split("\t")[1] for row in sentence.rows] == sentence.words


def test_combined_tags():
    assert read(TEXT, "upos+feats")[0].tags[:3] == ["VERB Mood=Imp|Number=Plur", "PRON Case=Acc", "ADP _"]
    assert read(TEXT, None)[0].tags is None


def test_blank_lines_may_be_several_or_hold_spaces():
    sentences = read("\n \n" + words("1", "2") + "\n\t \n\n" + words("1") + "\n\n\n")
    assert [(sentence.line, len(sentence.words)) for sentence in sentences] == [(3, 2), (7, 1)]


def test_comments_without_a_sentence_go_to_the_next_one():
    (sentence,) = read("# one\n\n\n# two\n\n# three\n" + words("1"))
    assert sentence.lines[:5] == ["# one", "", "# two", "", "# three"] and sentence.line == 1
    assert sentence.rows == [5] and sentence.lines[5].startswith("1\t")


def test_comments_inside_a_sentence_stay():
    (sentence,) = read(words("1") + "\n# inside\n" + words("2"))
    assert sentence.rows == [0, 2] and sentence.lines[1] == "# inside"


def test_long_sentences():
    (sentence,) = read(words(*(str(number) for number in range(1, 1001))))
    assert len(sentence.words) == 1000


def test_without_a_check_of_ids_every_number_is_a_word():
    ids = ("3-4", "4", "4", "2", "9-8", "7.3", "100")
    (sentence,) = read(words(*ids), check_ids=False)
    assert sentence.rows == [1, 2, 3, 6]
    with pytest.raises(ReaderError, match=r"^x\.conllu:1: range 3-4 before word 1"):
        read(words(*ids))
    with pytest.raises(ReaderError, match=r"^x\.conllu:1: 'x' is not an id"):
        read(words("x"), check_ids=False)


RANGE = "put a range before its first word, without overlap"
COUNT = "number the words 1, 2, 3, …, or disable the check"
EMPTY = "number the empty nodes after word 3 as 3.1, 3.2, …"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# a\n1\tform", "2: 2 cells instead of 10"),
        (words("1") + "\t_", "1: 11 cells instead of 10"),
        (words("1").replace("\t", "  "), "1: 1 cells instead of 10"),
        (words("1", "2") + "\n\n" + words("1") + "\n2", "5: 1 cells instead of 10"),
        (words("1", "3"), f"2: id 3 instead of 2; {COUNT}"),
        (words("1", "1"), f"2: id 1 instead of 2; {COUNT}"),
        (words("2"), f"1: id 2 instead of 1; {COUNT}"),
        (words("1", "2", "1"), f"3: id 1 instead of 3; {COUNT}"),
        (words("01"), "1: '01' is not an id"),
        (words("0"), "1: '0' is not an id"),
        (words("²"), "1: '²' is not an id"),
        (words(""), "1: '' is not an id"),
        (words("1-"), "1: '1-' is not an id"),
        (words("1-2-3"), "1: '1-2-3' is not an id"),
        (words("x" * 50), f"1: '{'x' * 39}…' is not an id"),
        (words("2-3", "1", "2", "3"), f"1: range 2-3 before word 1; {RANGE}"),
        (words("1", "1-2", "2"), f"2: range 1-2 before word 2; {RANGE}"),
        (words("1-0", "1"), f"1: range 1-0 before word 1; {RANGE}"),
        (words("1-2", "1-2", "1", "2"), f"2: range 1-2 before word 1; {RANGE}"),
        (words("1-3", "1", "2-3", "2", "3"), f"3: range 2-3 before word 2; {RANGE}"),
        (
            words("1-3", "1", "2"),
            "1: a range ends at word 3, but the sentence has 2 words",
        ),
        (words("1.1", "1"), f"1: empty node 1.1 instead of 0.1; {EMPTY}"),
        (words("1", "1.2"), f"2: empty node 1.2 instead of 1.1; {EMPTY}"),
        (words("1", "1.1", "1.1"), f"3: empty node 1.1 instead of 1.2; {EMPTY}"),
        ("# a\n" + words("0.1"), "2: the sentence has no words; remove it, or add the words"),
        (words("1", "2").replace("2\tform", "2\t"), "2: the form is empty"),
        (words("1", "2").replace("NOUN", ""), "1: the cell of column upos is empty"),
        (
            words("1") + "\n\n# late\n\n# later",
            "3: no sentence follows these lines, so they cannot be written",
        ),
    ],
)
def test_messages(text, message):
    with pytest.raises(ReaderError) as caught:
        read(text)
    assert str(caught.value).startswith(f"x.conllu:{message}")


@pytest.mark.parametrize(("text", "line"), [("# a\n", 1), ("\n# a\n", 2), ("1\ta\n", 1)], ids=["comments", "parts", "words"])
def test_message_for_sentences_without_an_end(text, line):
    with pytest.raises(ReaderError) as caught:
        read(text * (MAX_SENTENCE_LINES + 1))
    wrong = "the sentence that starts here has more than 100,000 lines; put a blank line after each sentence"
    assert str(caught.value) == f"x.conllu:{line}: {wrong}"


def test_sentences_before_a_fault_are_given():
    sentences = conllu((words("1") + "\n\n" + words("2")).split("\n"), "x", None)
    assert next(sentences).words == ["form"]
    with pytest.raises(ReaderError):
        next(sentences)


def test_spaces_in_a_combination_are_refused():
    text = words("1", "2").replace("2\tform\tlemma\tNOUN\t_", "2\tform\tlemma\tNOUN\tN N")
    with pytest.raises(
        ReaderError, match=r"^x\.conllu:2: column xpos contains 'N N', but upos\+xpos joins its columns by a space"
    ):
        read(text, "upos+xpos")
    assert read(text, "xpos")[0].tags == ["_", "N N"]
