"""Files and functions stay small enough to be read in one go."""

import ast
import statistics
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "src" / "linearcore", ROOT / "paper" / "src" / "linearcore_paper")
FILES = [path for source in SOURCES for path in sorted(source.rglob("*.py"))]
LONGEST_FILE, LONGEST_KERNEL, MEDIAN_FILE, LONGEST_FUNCTION = 400, 500, 160, 60
VAGUE = {"utils.py", "common.py", "helpers.py", "misc.py"}


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_there_are_files_to_look_at():
    assert all(len(list(source.rglob("*.py"))) > 20 for source in SOURCES)


def test_no_file_is_too_long():
    too_long = {
        str(path.relative_to(ROOT)): lines(path)
        for path in FILES
        if lines(path) > (LONGEST_KERNEL if "kernels" in path.relative_to(ROOT).parts else LONGEST_FILE)
    }
    assert not too_long


def test_median_file_is_short():
    assert statistics.median(map(lines, FILES)) <= MEDIAN_FILE


def test_no_function_is_too_long():
    # Counted without its docstring, which may be as long as it has to say.
    too_long = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = node.end_lineno - node.lineno + 1
                if ast.get_docstring(node) is not None:
                    length -= node.body[0].end_lineno - node.body[0].lineno + 1
                if length > LONGEST_FUNCTION:
                    too_long[f"{path.relative_to(ROOT)}:{node.name}"] = length
    assert not too_long


def test_no_file_has_a_vague_name():
    assert not [path for path in FILES if path.name in VAGUE]
