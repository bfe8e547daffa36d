"""Nobody imports another package's private module: `a.b._x` is imported inside `a.b` only, and so is a name `_x` of `a.b`.

The library's root modules (`linearcore._checks` …) may thus be used anywhere in the library, and nowhere in the paper.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = {"linearcore": ROOT / "src", "linearcore_paper": ROOT / "paper" / "src"}


def imported(tree: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Every module that a file of `package` imports from, and every name; relative imports are written out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield module, alias.name


def trespasses(tree: ast.AST, module: str, package: str) -> set[tuple[str, str]]:
    """Pairs (module, what it imports), where that is private to a package which does not hold the module."""
    found = set()
    for source, name in imported(tree, package):
        parts = [*source.split("."), name]
        if parts[0] not in ROOMS:
            continue
        first = next((index for index, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None)
        if first is None:
            continue
        owner = ".".join(parts[:first])
        if package != owner and not package.startswith(f"{owner}."):
            found.add((module, ".".join(parts[: first + 1])))
    return found


def modules(room: str) -> Iterator[tuple[str, str, ast.AST]]:
    for path in sorted((ROOMS[room] / room).rglob("*.py")):
        parts = path.relative_to(ROOMS[room]).with_suffix("").parts
        package = ".".join(parts[:-1])
        module = package if parts[-1] == "__init__" else ".".join(parts)
        yield module, package, ast.parse(path.read_text("utf-8"))


@pytest.mark.parametrize("room", ROOMS)
def test_private_modules_stay_private(room: str) -> None:
    found = {pair for module, package, tree in modules(room) for pair in trespasses(tree, module, package)}
    assert not found


@pytest.mark.parametrize(
    ("package", "code", "private"),
    [
        ("linearcore.heads", "from linearcore.losses._targets import to_rows", "linearcore.losses._targets"),
        ("linearcore.heads", "import linearcore.losses._targets as targets", "linearcore.losses._targets"),
        ("linearcore.heads", "from linearcore.losses import _targets", "linearcore.losses._targets"),
        ("linearcore.heads", "from linearcore.losses import _hidden", "linearcore.losses._hidden"),
        ("linearcore.heads", "from ..losses._targets import to_rows", "linearcore.losses._targets"),
        (
            "linearcore.kernels",
            "from linearcore.kernels.fused._local import _launch",
            "linearcore.kernels.fused._local",
        ),
        ("linearcore_paper.demo", "def f():\n    from linearcore._checks import complaint", "linearcore._checks"),
        ("linearcore_paper.demo", "from linearcore_paper.runner._job import prepare", "linearcore_paper.runner._job"),
        ("linearcore.heads", "from linearcore._checks import complaint", None),
        ("linearcore.heads", "from linearcore.heads._chain import ChainHead", None),
        ("linearcore.heads", "from ._chain import ChainHead", None),
        ("linearcore.losses.baselines", "from linearcore.losses._batch import batch_loss", None),
        ("linearcore.heads", "from linearcore import __version__", None),
        ("linearcore.heads", "from torch._subclasses import FakeTensor", None),
    ],
)
def test_an_import_of_a_private_module_would_be_seen(package: str, code: str, private: str | None) -> None:
    expected = set() if private is None else {("m", private)}
    assert trespasses(ast.parse(code), "m", package) == expected
