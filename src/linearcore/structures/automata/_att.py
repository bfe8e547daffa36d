"""AT&T text format of automata, as OpenFst, pynini and k2 write it."""

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.structures.automata._automaton import NO_LABEL, Automaton, useful_arcs
from linearcore.structures.automata._topology import Graph

#: Number of the empty label in files, by OpenFst's convention, and k2's label of arcs into its final state.
EPSILON, K2_FINAL = 0, -1
#: Largest number of a state or label: what fits into 32 bits, as in OpenFst and k2.
LARGEST = 2**31 - 1

Source = str | os.PathLike[str] | Iterable[str]


class _Line(NamedTuple):
    number: int
    cells: list[str]


def read_att(
    file: Source,
    *,
    symbols: Source | None = None,
    offset: int = 0,
    acceptor: bool | None = None,
    project: str | None = None,
    trim: bool = False,
) -> Automaton:
    """Reads an acyclic automaton in AT&T text format: `source target label [output label] [cost]`, `final [cost]`.

    The file's costs are tropical: the best path has the lowest. Here the best path has the highest score, so
    `arc_scores` = −cost. If a final state has a cost other than 0, all final states get an arc with this score that writes
    nothing and leads to a new state. Label 0, OpenFst's epsilon, becomes −1, as does k2's label −1 of arcs into its final
    state. k2 writes costs with `to_str(openfst=True)`; otherwise it writes scores, which this cannot detect.

    Args:
        file: path, or lines. The first line's state is the start.
        symbols: OpenFst symbol table (`name number` lines) if labels are names; path or lines.
        offset: subtracted from the numbers of labels: 1 if tag 0 has number 1 in the file.
        acceptor: whether arcs have one label (True) or two; None to decide by the number of columns.
        project: for arcs with two different labels: "input" or "output" keeps one of them; None refuses them.
        trim: remove states that are on no path, instead of refusing them.

    Raises:
        OSError: if a file cannot be opened.
        ValueError: `FILE:LINE: what is wrong; what to do`, for malformed lines, unknown symbols, two different labels,
            cycles, states on no path, and files without a path.

    Example:
        >>> automaton = read_att(["0 1 7 0.5", "0 1 8 2", "1"])
        >>> automaton.label, automaton.arc_scores
        (tensor([7, 8]), tensor([-0.5000, -2.0000], dtype=torch.float64))
    """
    one_of("project", project, (None, "input", "output"))
    name, lines = _lines(file, "file")
    table = _symbol_table(symbols) if symbols is not None else None
    arcs = [line for line in lines if len(line.cells) > 2]
    ends = [line for line in lines if len(line.cells) <= 2]
    if not lines:
        raise ValueError(f"{name}: no lines; write an arc or a final state on each line")
    width = _num_labels(name, arcs, acceptor)
    reader = _Reader(name, table, offset)
    states = [[reader.state(line, column) for column in (0, 1)] for line in arcs]
    label = [reader.label(line, width, project) for line in arcs]
    cost = [reader.cost(line, 2 + width) for line in arcs]
    final = [reader.state(line, 0) for line in ends]
    final_cost = [reader.cost(line, 1) for line in ends]
    start = states[0][0] if lines[0] in arcs else final[0]
    # The line of each state, to name it in errors: where an arc leaves it, or else where it is first named.
    numbers = {state: line.number for line, (_, state) in zip(reversed(arcs), reversed(states), strict=True)}
    numbers |= {state: line.number for line, state in zip(ends, final, strict=True)}
    numbers |= {state: line.number for line, (state, _) in zip(reversed(arcs), reversed(states), strict=True)}
    source, target = torch.tensor(states, dtype=torch.int64).reshape(-1, 2).t().contiguous().unbind()
    parts = _Parts(source, target, torch.tensor(label, dtype=torch.int64), torch.tensor(cost, dtype=torch.float64))
    final_states, costs = torch.tensor(final, dtype=torch.int64), torch.tensor(final_cost, dtype=torch.float64)
    if trim:
        kept, kept_ends = useful_arcs(source, target, start, final_states)
        parts, final_states, costs = _Parts(*(part[kept] for part in parts)), final_states[kept_ends], costs[kept_ends]
    fault = Graph.of(parts.source.numpy(), parts.target.numpy(), start, final_states.numpy()).fault()
    if fault is not None:
        raise ValueError(f"{name}:{numbers[fault.state]}: {fault.wrong}; {fault.advice}")
    if bool((costs != 0).any()):
        parts, final_states = _with_final_arcs(parts, final_states, costs, start)
    names = {number - offset: text for text, number in (table or {}).items() if number != EPSILON}
    return Automaton(parts.source, parts.target, parts.label, final_states, start, -parts.cost, names)


def write_att(automaton: Automaton, file: str | os.PathLike[str], scores: Tensor | None = None, *, offset: int = 0) -> None:
    """Writes an automaton in AT&T text format, as an acceptor with costs −score. No digits are lost.

    Arcs that leave the start come first; otherwise they keep their order.

    Args:
        automaton: any automaton.
        file: path; an existing file is replaced.
        scores: (A,) scores of the arcs; None for `automaton.arc_scores`, or no costs if there are none.
        offset: added to the labels: 1 if label 0 is used, because number 0 is OpenFst's epsilon.

    Raises:
        ValueError: if `scores` has another shape, or a label would be written as a number below 1.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "chain.fst"
        >>> write_att(Automaton.from_chain(2, 2), path, offset=1)
        >>> read_att(path, offset=1).count
        4
    """
    scores = automaton.arc_scores if scores is None else scores
    if scores is not None and tuple(scores.shape) != (automaton.num_arcs,):
        must = f"have shape ({automaton.num_arcs},)"
        raise ValueError(complaint("scores", must, tuple(scores.shape), "write one automaton for each row"))
    labels = torch.where(automaton.label == NO_LABEL, EPSILON, automaton.label + offset)
    if bool((labels[automaton.label != NO_LABEL] <= EPSILON).any()):
        got = int(labels[automaton.label != NO_LABEL].min())
        raise ValueError(complaint("offset", "give labels numbers from 1", f"number {got}", "pass offset=1"))
    costs = [""] * automaton.num_arcs if scores is None else [f"\t{_number(-score)}" for score in scores.tolist()]
    columns = (part.tolist() for part in (automaton.source, automaton.target, labels))
    rows = [f"{source}\t{target}\t{label}{cost}" for source, target, label, cost in zip(*columns, costs, strict=True)]
    # The first line names the start state.
    rows.sort(key=lambda row: not row.startswith(f"{automaton.start}\t"))
    rows += [str(state) for state in automaton.final.tolist()]
    Path(file).write_text("\n".join(rows) + "\n", encoding="utf-8")


class _Parts(NamedTuple):
    source: Tensor
    target: Tensor
    label: Tensor
    cost: Tensor


class _Reader(NamedTuple):
    """Converts the cells of a line; errors name the file and the line."""

    name: str
    table: Mapping[str, int] | None
    offset: int

    def state(self, line: _Line, column: int) -> int:
        """A state: a number from 0."""
        text = line.cells[column]
        if not (text.isascii() and text.isdigit()):
            raise self._error(line, f"the state {text!r} is not a number from 0", "write states as numbers")
        return self._checked(line, "state", int(text))

    def cost(self, line: _Line, column: int) -> float:
        """The cost in a column, 0 if the line ends before it."""
        if len(line.cells) <= column:
            return 0.0
        try:
            cost = float(line.cells[column])
        except ValueError:
            cost = math.nan
        if math.isnan(cost) or cost == -math.inf:
            raise self._error(line, f"the cost {line.cells[column]!r} is not a number above −inf", "write costs as 0.5")
        return cost

    def label(self, line: _Line, width: int, project: str | None) -> int:
        """The label of an arc with `width` labels."""
        cells = line.cells[2 : 2 + width]
        if len(set(cells)) > 1 and project is None:
            wrong = f"the labels {cells[0]!r} and {cells[1]!r} differ"
            raise self._error(line, wrong, 'pass project="input" or project="output" to keep one of them')
        text = cells[0 if project == "input" else -1]
        number = self._checked(line, "label", self._number(line, text))
        if number in (EPSILON, K2_FINAL):
            return NO_LABEL
        if number - self.offset < 0:
            wrong = f"label {text!r} has number {number}, which is below the smallest, {max(self.offset, 1)}"
            raise self._error(line, wrong, "correct it, or pass a smaller `offset`")
        return number - self.offset

    def _number(self, line: _Line, text: str) -> int:
        if self.table is not None:
            if text not in self.table:
                raise self._error(line, f"the symbol {text!r} is not in the symbol table", "add it, or check `symbols`")
            return self.table[text]
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise self._error(line, f"the label {text!r} is not a number", "pass the symbol table as `symbols`")
        return int(text)

    def _checked(self, line: _Line, what: str, number: int) -> int:
        if number > LARGEST:
            raise self._error(line, f"the {what} {number} is above the largest, {LARGEST}", "use smaller numbers")
        return number

    def _error(self, line: _Line, wrong: str, advice: str) -> ValueError:
        return ValueError(f"{self.name}:{line.number}: {wrong}; {advice}")


def _lines(source: Source, name: str) -> tuple[str, list[_Line]]:
    """Returns a name for errors, and the lines that are not empty."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            advice = "write it as text, for example with fstprint"
            raise ValueError(f"{path.name}: the file is not UTF-8 text ({error.reason}); {advice}") from None
        name, source = path.name, text.split("\n")
    # Only these separate columns: symbols may be other kinds of white space.
    rows = ((number, line.replace("\r", "").replace("\t", " ").split(" ")) for number, line in enumerate(source, 1))
    cleaned = (_Line(number, [cell.rstrip("\n") for cell in cells if cell.strip("\n")]) for number, cells in rows)
    return name, [line for line in cleaned if line.cells]


def _num_labels(name: str, arcs: list[_Line], acceptor: bool | None) -> int:
    """Returns the number of labels of each arc, 1 or 2; checks the number of columns."""
    counts = {len(line.cells) for line in arcs}
    if acceptor is None:
        fourth = [line.cells[2:4] for line in arcs if len(line.cells) == 4]
        if 3 in counts or not fourth:
            acceptor = 5 not in counts
        elif 5 in counts or not all(_is_number(cell) for _, cell in fourth):
            acceptor = False
        elif all(label == cell for label, cell in fourth):
            wrong = "the fourth column equals the third: it may be a cost or an output label"
            raise ValueError(f"{name}:{arcs[0].number}: {wrong}; pass acceptor=True or acceptor=False")
        else:
            acceptor = True
    width = 1 if acceptor else 2
    for line in arcs:
        if not width + 2 <= len(line.cells) <= width + 3:
            wrong = f"{len(line.cells)} columns, and an arc has {width + 2} or {width + 3}"
            advice = "write source, target, label and cost" if acceptor else "write source, target, two labels and cost"
            raise ValueError(f"{name}:{line.number}: {wrong}; {advice}")
    return width


def _symbol_table(source: Source) -> dict[str, int]:
    name, lines = _lines(source, "symbols")
    table: dict[str, int] = {}
    for line in lines:
        digits = line.cells[-1].removeprefix("-")
        if len(line.cells) != 2 or not (digits.isascii() and digits.isdigit()):
            raise ValueError(f"{name}:{line.number}: the line is not a name and a number; write them with a tab between")
        if line.cells[0] in table:
            raise ValueError(f"{name}:{line.number}: the symbol {line.cells[0]!r} is repeated; list it once")
        table[line.cells[0]] = int(line.cells[1])
    return table


def _with_final_arcs(parts: _Parts, final: Tensor, costs: Tensor, start: int) -> tuple[_Parts, Tensor]:
    """Adds an arc with the cost of each final state to one new state, which is then the only final one."""
    end = max([start, *(int(part.max()) for part in (parts.target, final) if len(part))]) + 1
    added = _Parts(final, torch.full_like(final, end), torch.full_like(final, NO_LABEL), costs)
    return _Parts(*map(torch.cat, zip(parts, added, strict=True))), torch.tensor([end])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(cost: float) -> str:
    return "Infinity" if cost == math.inf else repr(cost + 0.0)  # No negative zero.
