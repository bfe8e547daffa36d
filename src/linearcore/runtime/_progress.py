"""Progress of long work: bars on a terminal, one line per finished part in a log.

Both go to stderr, so that what a command prints to stdout can be piped. rich is imported when a bar is first drawn and
not before: a library that is only imported should cost nothing.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO, TypeVar

if TYPE_CHECKING:
    import rich.progress

Item = TypeVar("Item")


class Part:
    """A piece of work in hand, made by `Progress.part`."""

    def __init__(self, description: str, total: int | None, bars: "rich.progress.Progress | None", unit: str) -> None:
        self.description = description
        self.unit = unit
        self.done = 0
        self._bars = bars
        self._task = None if bars is None else bars.add_task(description, total=total)

    def advance(self, steps: int = 1) -> None:
        """Says that `steps` more steps are done."""
        self.done += steps
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, advance=steps)

    def describe(self, description: str) -> None:
        """Changes the words beside the bar, for example to name the step that is being done."""
        self.description = description
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, description=description)

    def _close(self) -> None:
        if self._bars is not None and self._task is not None:
            self._bars.remove_task(self._task)


class Progress:
    """A context in which parts of work show how far they are; parts may lie inside each other.

    On a terminal every open part is a bar. Elsewhere nothing is printed until a part is finished, then one line,
    indented by how deep the part lies; a part that fails prints none.

    Args:
        stream: where to write; None is stderr as it is when the context is entered.

    Example:
        >>> import sys
        >>> with Progress(sys.stdout) as progress:
        ...     with progress.part("two rates", total=2) as rates:
        ...         for rate in (0, 20):
        ...             with progress.part(f"{rate} % wrong", total=10) as steps:
        ...                 steps.advance(10)
        ...             rates.advance()
          0 % wrong: 10 steps in ... s
          20 % wrong: 10 steps in ... s
        two rates: 2 steps in ... s
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._bars: rich.progress.Progress | None = None
        self._depth = 0

    def __enter__(self) -> Self:
        if self._stream is None:
            self._stream = sys.stderr
        # Without rich a terminal gets the lines of a log.
        if self._stream.isatty() and find_spec("rich") is not None:
            self._bars = _bars(self._stream)
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    @contextmanager
    def part(self, description: str, total: int | None = None, unit: str = "steps") -> Iterator[Part]:
        """Opens a part of `total` steps (None: not known), to be advanced by hand; `unit` is what a log calls them."""
        part = Part(description, total, self._bars, unit)
        started = time.perf_counter()
        self._depth += 1
        try:
            yield part
        finally:
            self._depth -= 1
            part._close()
        # Only reached when the part did not fail.
        if self._bars is None and self._stream is not None:
            seconds = time.perf_counter() - started
            indent = "  " * self._depth
            print(f"{indent}{part.description}: {part.done:,} {part.unit} in {seconds:.1f} s", file=self._stream, flush=True)

    def say(self, line: str) -> None:
        """Prints a line that stays, above the bars where there are any."""
        if self._bars is not None:
            self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        elif self._stream is not None:
            print(f"{'  ' * self._depth}{line}", file=self._stream, flush=True)

    def track(
        self, iterable: Iterable[Item], description: str, total: int | None = None, unit: str = "steps"
    ) -> Iterator[Item]:
        """Yields from `iterable`, one step each; `total` is its length where it has one."""
        if total is None and isinstance(iterable, Sized):
            total = len(iterable)
        with self.part(description, total, unit) as part:
            for item in iterable:
                yield item
                part.advance()


def track(iterable: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """Yields from `iterable` and shows how far it is. For work inside work, use one `Progress` for all of it.

    Args:
        iterable: what to go through.
        description: a few words for the bar or the line.
        total: number of items; None takes the length of `iterable` if it has one.
    """
    with Progress() as progress:
        yield from progress.track(iterable, description, total)


def _bars(stream: TextIO) -> "rich.progress.Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("+"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    # By default rich takes over stdout while a bar is shown, and prints what goes there to its own stream.
    return Progress(*columns, console=Console(file=stream), transient=True, redirect_stdout=False, redirect_stderr=False)
