"""A file may be larger than the memory."""

import gzip
import tracemalloc

import pytest

from linearcore.tagging.readers import read_sentences

MEGABYTE = 1 << 20
SENTENCE = "# text = a sentence\n" + "".join(
    f"{number}\tword{number}\tlemma{number}\tNOUN\tNN\tCase=Nom|Number=Sing\t0\troot\t_\tSpaceAfter=No\n"
    for number in range(1, 21)
)


@pytest.mark.parametrize(("size", "is_packed"), [(10, False), (6, True)], ids=["plain", "gzip"])
def test_reading_more_megabytes_takes_less_than_5(tmp_path, size, is_packed):
    path = tmp_path / "large.conllu"
    times = size * MEGABYTE // (len(SENTENCE) + 1) + 1
    with gzip.open(path, "wt", compresslevel=1) if is_packed else path.open("w") as file:
        for _ in range(times):
            file.write(SENTENCE + "\n")
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_sentences(path, "upos+feats"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == times
    assert peak < 5 * MEGABYTE, f"{peak / MEGABYTE:.1f} MB"
