from pathlib import Path

import pytest

from tests.mutants import MUTANTS, ROOT


@pytest.mark.parametrize(("file", "text", "changed"), [mutant[:3] for mutant in MUTANTS])
def test_a_mutant_changes_one_place_of_its_file(file: str, text: str, changed: str) -> None:
    assert Path(ROOT, "src", "linearcore", file).read_text(encoding="utf8").count(text) == 1
    assert changed != text
