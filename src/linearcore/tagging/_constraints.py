"""Constraints of a tagger: segment schemes and custom rules, checked against the training data or found from it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from linearcore._checks import complaint
from linearcore.structures import Constraints, bio, bioes, bmes
from linearcore.tagging._constraint_rules import parse_rules, read_rules, rules_constraints

#: Segment schemes; their constraints follow from the names of the tags.
SCHEMES = {"bio": bio, "bioes": bioes, "bmes": bmes}
#: Values of `Training.constraints` that are not constraints of a head.
AUTO, NONE = "auto", "none"

#: Words and tags of each sentence.
Pairs = Iterable[tuple[Sequence[str], Sequence[str]]]


def check_constraints(name: str, value: Any) -> None:
    """Raises unless `value` is a segment scheme or a text of rules, which always has a line end."""
    if isinstance(value, str) and "\n" in value:
        parse_rules(value)
    elif value not in SCHEMES:
        must = f"be {', '.join(SCHEMES)} or lines of rules"
        raise ValueError(complaint(name, must, repr(value), "pass None for no constraints"))


def make_constraints(value: str, names: Sequence[str]) -> Constraints:
    """Returns the constraints of a segment scheme or of rules for tags with these names.

    Raises:
        ValueError: if a name does not fit the scheme, or a rule has a tag that is not among the names.
    """
    return SCHEMES[value](names) if value in SCHEMES else rules_constraints(value, names)


class Violation(NamedTuple):
    """A sentence whose tags violate constraints: its index, and the tags before, at and after the first such place."""

    sentence: int
    tags: str


def first_violation(constraints: Constraints, names: Sequence[str], sentences: Pairs) -> Violation | None:
    """Returns the first violation in tagged sentences, or None. Tags that are not among the names are ignored.

    Time O(words).
    """
    indices = {name: index for index, name in enumerate(names)}
    allowed = constraints.transitions.tolist()
    is_first, is_last = constraints.start.tolist(), constraints.end.tolist()
    for number, (_, tags) in enumerate(sentences):
        numbers = [indices.get(tag) for tag in tags]
        if not numbers:
            continue
        if numbers[0] is not None and not is_first[numbers[0]]:
            return Violation(number, f"{tags[0]!r} as the first tag")
        for place, (before, after) in enumerate(pairwise(numbers)):
            if before is not None and after is not None and not allowed[before][after]:
                return Violation(number, f"{tags[place + 1]!r} after {tags[place]!r}, words {place} and {place + 1}")
        if numbers[-1] is not None and not is_last[numbers[-1]]:
            return Violation(number, f"{tags[-1]!r} as the last tag")
    return None


def resolve_constraints(value: str | None, names: Sequence[str], train: Pairs, dev: Pairs) -> tuple[str | None, str | None]:
    """Returns the constraints of the head for `Training.constraints`, and a line that says what was found or None.

    Args:
        value: "auto", "none", a scheme, rules, or the name of a file of rules. None is "none".
        names: all tags.
        train, dev: training and validation sentences. "auto" uses a scheme only if both satisfy it without exception.

    Raises:
        ValueError: if training sentences violate explicit constraints, or they do not fit the tags.
    """
    if value is None or value == NONE:
        return None, None
    if value == AUTO:
        return _find_scheme(names, train, dev)
    if value not in SCHEMES and "\n" not in value:
        value = _read(value)
    violation = first_violation(make_constraints(value, names), names, train)
    if violation is not None:
        got = f"{violation.tags} in sentence {violation.sentence}"
        advice = "correct the tags (convert IOB1 to IOB2), or pass --constraints none"
        raise ValueError(complaint("constraints", "hold for all training sentences", got, advice))
    return value, None


def _find_scheme(names: Sequence[str], train: Pairs, dev: Pairs) -> tuple[str | None, str | None]:
    for scheme, make in SCHEMES.items():
        try:
            constraints = make(names)
        except ValueError:
            continue  # Names of another kind.
        if bool(constraints.transitions.all() and constraints.start.all() and constraints.end.all()):
            continue  # For example only "O" and "B-X", which may follow each other.
        for part, sentences in (("training", train), ("validation", dev)):
            violation = first_violation(constraints, names, sentences)
            if violation is not None:
                where = f"{part} sentence {violation.sentence} has {violation.tags}"
                return None, f"tags look like {scheme.upper()}, but {where}; training without constraints"
        return scheme, f"tags are {scheme.upper()} without exception, so the tagger uses --constraints {scheme}"
    return None, None


def _read(value: str) -> str:
    if not Path(value).is_file():
        must = f"be {AUTO}, {NONE}, {', '.join(SCHEMES)} or a file of rules"
        raise ValueError(complaint("constraints", must, repr(value), "check the name of the file"))
    return read_rules(value)
