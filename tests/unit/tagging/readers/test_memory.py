"""A file may be larger than the memory."""

import gzip
import tracemalloc

import pytest

from linearcore.tagging.readers import read_sentences
from linearcore.tagging.readers._raw import make_splitter, split_text

MEGABYTE = 1 << 20
SENTENCE = "# text = a sentence\n" + "".join(
    f"{number}\tword{number}\tlemma{number}\tNOUN\tNN\tCase=Nom|Number=Sing\t0\troot\t_\tSpaceAfter=No\n"
    for number in range(1, 21)
)


#: A sentence in each format.
UNITS = {
    "columns": "# id 1 a b\n" + f"{'word' * 20} _ O\n" * 20 + "\n",
    "jsonl": '{"tokens": [' + ", ".join([f'"{"word" * 20}"'] * 20) + '], "id": 1}\n',
    "text": f"{'word' * 20} " * 20 + "\n",
}


def peak_of(sentences):
    """Counts sentences; also returns the peak of the memory in megabytes."""
    tracemalloc.start()
    try:
        count = sum(1 for _ in sentences)
        return count, tracemalloc.get_traced_memory()[1] / MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("format", UNITS)
def test_every_format_is_streamed(tmp_path, format):
    times = 6 * MEGABYTE // len(UNITS[format])
    (tmp_path / "large").write_text(UNITS[format] * times)
    count, peak = peak_of(read_sentences(tmp_path / "large", format=format))
    assert count == times and peak < 5


def test_running_text_is_streamed():
    pytest.importorskip("spacy")
    split = make_splitter("xx")
    # One paragraph; each sentence has words of its own and goes over two lines.
    lines = (line for number in range(2000) for line in (f"Word{number} of a", f"book{number}, which does not end."))
    list(split_text(["Loads the rules."], "x", split))
    count, peak = peak_of(split_text(lines, "x", split))
    assert count == 2000 and peak < 0.3


@pytest.mark.parametrize(("size", "is_packed"), [(10, False), (6, True)], ids=["plain", "gzip"])
def test_reading_more_megabytes_takes_less_than_5(tmp_path, size, is_packed):
    path = tmp_path / "large.conllu"
    times = size * MEGABYTE // (len(SENTENCE) + 1) + 1
    with gzip.open(path, "wt", compresslevel=1) if is_packed else path.open("w") as file:
        for _ in range(times):
            file.write(SENTENCE + "\n")
    count, peak = peak_of(read_sentences(path, "upos+feats"))
    assert count == times and peak < 5
