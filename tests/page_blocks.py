"""The pages with code, and how their Python blocks are run. Needs the standard library only."""

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "paper" / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
    )
}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_blocks(page: Path) -> None:
    """Runs the Python blocks of a page, one after the other, with the same names."""
    text = page.read_text("utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        code, line = block.group(1), text.count("\n", 0, block.start(1))
        if ">>>" in code:
            example = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            assert runner.run(example, clear_globs=False).failed == 0
            names |= example.globs
        else:
            # Empty lines in front make a traceback point at the page's own lines.
            exec(compile("\n" * line + code, str(page), "exec"), names)
