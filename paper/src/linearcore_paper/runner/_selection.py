"""Which parts of an experiment are asked for, and whether its parts can be done at all."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from linearcore.runtime import complaint
from linearcore_paper.runner._experiment import After, Part

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def check_parts(parts: Mapping[str, Part]) -> None:
    """Finds what would stop an experiment halfway: a name that is no file's, parts that wait for each other.

    Raises:
        ValueError: if there is such a part.
    """
    for name in parts:
        if not _NAME.fullmatch(name):
            must = "be letters, digits, `.`, `-` and `_`, and not begin with `.`"
            raise ValueError(complaint("part", must, repr(name), "rename it: it is the name of a file"))
    # Some file systems do not tell `A.json` from `a.json`.
    if len({name.lower() for name in parts}) < len(parts):
        raise ValueError(complaint("part", "have a name of its own, capitals aside", sorted(parts), "rename one"))
    there: set[str] = set()
    while len(there) < len(parts):
        next_ones = [name for name in parts if name not in there and there.issuperset(needs_of(parts[name]))]
        if not next_ones:
            waiting = {name: list(needs_of(part)) for name, part in parts.items() if name not in there}
            raise ValueError(complaint("needs", "name parts that can be done before", waiting, "mend the experiment"))
        there.update(next_ones)


def matching(parts: Iterable[str], globs: Sequence[str]) -> set[str]:
    """The names that match one of the globs; without globs all."""
    return {name for name in parts if not globs or any(fnmatchcase(name, glob) for glob in globs)}


def with_needs(parts: Mapping[str, Part], names: Iterable[str]) -> set[str]:
    """The names, and those of all parts that they need."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(needs_of(parts[name]))
    return found


def needs_of(part: Part) -> tuple[str, ...]:
    """Names of the parts whose results a part looks at."""
    return part.needs if isinstance(part, After) else ()
