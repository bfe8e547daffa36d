"""Names of torch that begin with an underscore are used in `linearcore._torch` alone, where each has a fallback."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [path for room in ("src", "paper/src") for path in sorted((ROOT / room).rglob("*.py")) if path.name != "_torch.py"]


def private_names(tree: ast.AST) -> list[str]:
    """Dotted names that begin with torch and have a private part, and imports of such modules."""
    found = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    found += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    found += [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    # A name, and not something that is called on the way, such as torch.stack(self._parts).tolist.
    parts = [name.split(".") for name in found if name.split(".")[0] == "torch" and "(" not in name]
    return [".".join(name) for name in parts if any(part.startswith("_") and not part.startswith("__") for part in name)]


def test_there_are_none_elsewhere() -> None:
    used = {str(path.relative_to(ROOT)): private_names(ast.parse(path.read_text("utf-8"))) for path in FILES}
    assert not {path: names for path, names in used.items() if names}


@pytest.mark.parametrize(
    "code", ("torch._C._x()", "from torch._dynamo import exc", "import torch._inductor", "torch.ops.a._b")
)
def test_one_would_be_seen(code: str) -> None:
    assert private_names(ast.parse(code))
