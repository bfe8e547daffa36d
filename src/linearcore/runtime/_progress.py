"""Progress of long work: bars on a terminal, one line per finished part in a log.

Both are written to stderr, so that stdout can be piped. rich is imported only when the first bar is drawn.
"""

import os
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


class ProgressBar:
    """Progress of one running part, made by `Progress.part`."""

    def __init__(self, description: str, total: int | None, bars: "rich.progress.Progress | None", unit: str) -> None:
        self.description = description
        self.unit = unit
        self.done = 0
        self._bars = bars
        self._task = None if bars is None else bars.add_task(description, total=total)

    def advance(self, steps: int = 1) -> None:
        """Adds `steps` finished steps."""
        self.done += steps
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, advance=steps)

    def describe(self, description: str) -> None:
        """Changes the description, for example to name the current step."""
        self.description = description
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, description=description)

    def _close(self) -> None:
        if self._bars is not None and self._task is not None:
            self._bars.remove_task(self._task)


class Progress:
    """Context manager that shows the progress of parts, which may be nested.

    On a terminal every running part has a bar. In a log, every part that finishes without an error prints one line,
    indented by its depth.

    Args:
        stream: output stream; None uses `sys.stderr` at the time the context is entered.

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
        # Without rich, a terminal shows log lines instead of bars.
        if self._stream.isatty() and find_spec("rich") is not None:
            self._bars = _bars(self._stream)
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    @contextmanager
    def part(self, description: str, total: int | None = None, unit: str = "steps") -> Iterator[ProgressBar]:
        """Starts a part of `total` steps (None: unknown); the caller advances it. `unit` names the steps in a log."""
        part = ProgressBar(description, total, self._bars, unit)
        start = time.perf_counter()
        self._depth += 1
        try:
            yield part
        finally:
            self._depth -= 1
            part._close()
        # Not reached if the part raised an error.
        if self._bars is None and self._stream is not None:
            seconds = time.perf_counter() - start
            indent = "  " * self._depth
            self._print_line(f"{indent}{part.description}: {part.done:,} {part.unit} in {seconds:.1f} s")

    def print(self, line: str) -> None:
        """Prints a permanent line, above the bars if there are any."""
        if self._bars is not None:
            self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        elif self._stream is not None:
            self._print_line(f"{'  ' * self._depth}{line}")

    def _print_line(self, line: str) -> None:
        """Prints a line; if the reader of a pipe has gone, the work goes on without progress."""
        try:
            print(line, file=self._stream, flush=True)
        except BrokenPipeError:
            self._stream = open(os.devnull, "w")  # noqa: SIM115 (closed with the process)

    def track(
        self, iterable: Iterable[Item], description: str, total: int | None = None, unit: str = "steps"
    ) -> Iterator[Item]:
        """Yields from `iterable` and advances one step per item; `total` defaults to its length, if known."""
        if total is None and isinstance(iterable, Sized):
            total = len(iterable)
        with self.part(description, total, unit) as part:
            for item in iterable:
                yield item
                part.advance()


def track(iterable: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """Yields from `iterable` and shows the progress. For nested loops, use one `Progress` for all of them.

    Args:
        iterable: items to yield.
        description: a few words for the bar or the log line.
        total: number of items; None uses the length of `iterable`, if known.
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
    # By default rich redirects stdout to its own stream while a bar is shown.
    return Progress(*columns, console=Console(file=stream), transient=True, redirect_stdout=False, redirect_stderr=False)
