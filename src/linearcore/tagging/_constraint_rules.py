"""Custom constraints on tag sequences, in a small text format."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from linearcore._checks import complaint
from linearcore.structures import Constraints

_FORBID, _AFTER, _FIRST, _LAST = "forbid", "after", "first", "last"
#: Smallest number of tags in each kind of rule.
_MIN_TAGS = {_FORBID: 2, _AFTER: 2, _FIRST: 1, _LAST: 1}
_ADVICE = "write 'forbid A B', 'after A B C', 'first A B' or 'last A B'"


class Rule(NamedTuple):
    """One line of a file of rules: its number from 1, its first word, and its tags."""

    line: int
    kind: str
    tags: list[str]


def parse_rules(text: str) -> list[Rule]:
    """Returns the rules of a text with one rule per line.

        forbid A B C     B and C must not follow A
        after A B C      only B and C may follow A; several lines for one A add up
        first A B        the first tag of a sentence must be A or B
        last A B         the last tag of a sentence must be A or B

    Words are separated by tabs in lines with a tab, and by spaces in the others, so tags with spaces need tabs. Empty lines
    and lines that start with # are skipped. Everything that no rule forbids is allowed.

    Raises:
        ValueError: if a line is not a rule, or there are none; the message has the line number.

    Example:
        >>> parse_rules("# named entities\\nforbid O I-PER\\nfirst O B-PER\\n")
        [Rule(line=2, kind='forbid', tags=['O', 'I-PER']), Rule(line=3, kind='first', tags=['O', 'B-PER'])]
    """
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        kind, *tags = [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()
        if kind not in _MIN_TAGS:
            raise ValueError(
                complaint("constraints", f"be rules ({', '.join(_MIN_TAGS)})", f"{kind!r} in line {number}", _ADVICE)
            )
        if len(tags) < _MIN_TAGS[kind] or not all(tags):
            must = f"have at least {_MIN_TAGS[kind]} tags after {kind!r}"
            raise ValueError(complaint("constraints", must, f"{len(list(filter(None, tags)))} in line {number}", _ADVICE))
        rules.append(Rule(number, kind, tags))
    if not rules:
        raise ValueError(complaint("constraints", "have a rule", "none", _ADVICE))
    return rules


def rules_constraints(text: str, names: Sequence[str]) -> Constraints:
    """Returns the constraints of rules (see `parse_rules`) for tags with these names.

    Raises:
        ValueError: if a line is not a rule, a tag is not among the names, or no sequence is allowed.

    Example:
        >>> rules_constraints("after A B\\nfirst A\\n", ["A", "B"]).transitions.long()
        tensor([[0, 1],
                [1, 1]])
    """
    indices = {name: index for index, name in enumerate(names)}
    allowed = torch.ones(len(names), len(names), dtype=torch.bool)
    ends = {_FIRST: torch.ones(len(names), dtype=torch.bool), _LAST: torch.ones(len(names), dtype=torch.bool)}
    listed: dict[tuple[str, int | None], list[int]] = {}
    for rule in parse_rules(text):
        unknown = next((tag for tag in rule.tags if tag not in indices), None)
        if unknown is not None:
            advice = "write it as in the training data; tags with spaces need tabs between the words of a line"
            got = f"{unknown!r} in line {rule.line}"
            raise ValueError(complaint("constraints", f"name some of the {len(names)} tags of the data", got, advice))
        numbers = [indices[tag] for tag in rule.tags]
        if rule.kind == _FORBID:
            allowed[numbers[0], numbers[1:]] = False
        elif rule.kind == _AFTER:
            listed.setdefault((_AFTER, numbers[0]), []).extend(numbers[1:])
        else:
            listed.setdefault((rule.kind, None), []).extend(numbers)
    for (kind, before), numbers in listed.items():
        is_listed = torch.zeros(len(names), dtype=torch.bool)
        is_listed[numbers] = True
        if before is None:
            ends[kind] &= is_listed
        else:
            allowed[before] &= is_listed
    return Constraints(allowed, ends[_FIRST], ends[_LAST])


def read_rules(path: str | Path) -> str:
    """Returns the text of a file of rules, with a line end after every line.

    Raises:
        ValueError: if the file cannot be read, or is not a file of rules in UTF-8.
    """
    try:
        text = "\n".join(Path(path).read_text(encoding="utf-8-sig").splitlines()) + "\n"
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "").lower() if isinstance(error, OSError) else error.reason
        must = "be a file of UTF-8 text that can be read"
        raise ValueError(complaint("constraints", must, f"{str(path)!r} ({reason})", _ADVICE)) from None
    parse_rules(text)
    return text
