"""Ctrl-C and a polite kill as something to look at between two steps, so that what is in hand is finished and saved."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class StoppedError(Exception):
    """The user stopped the work, and it was saved; its text says how far it was."""


class Interrupt:
    """A context that is true once SIGINT or SIGTERM has come. The second SIGINT interrupts at once, as ever.

    Outside the main thread, where Python allows no handlers, it stays false and signals do what they did.

    Example:
        >>> with Interrupt() as interrupt:
        ...     for step in range(3):
        ...         if interrupt:
        ...             break
        >>> bool(interrupt)
        False
    """

    def __init__(self) -> None:
        self._came = False
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self._came

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._came and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._came = True
