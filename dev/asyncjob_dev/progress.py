"""Says on stderr what takes long, how far it is, and for how long it has been taking.

A terminal sees one line that counts seconds; a log file gets a line now and then.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Self, TextIO

LOG_INTERVAL = 10.0


def note(text: str) -> None:
    """Say one thing on stderr."""
    sys.stderr.write(f"{text}\n")


class ProgressLine:
    """Context manager: announces `text`, counts by `clock`, and ends with the time it took.

    Whoever knows how far it is says so in `detail`.
    """

    def __init__(
        self,
        text: str,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.detail = ""
        self._text = text
        self._clock = clock
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="progress", daemon=True)
        self._started = 0.0

    def __enter__(self) -> Self:
        self._started = self._clock()
        self._show()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._show("done" if kind is None else "failed", last=True)

    def _tick(self) -> None:
        while not self._done.wait(1.0 if self._live else LOG_INTERVAL):
            self._show()

    def _show(self, outcome: str = "", *, last: bool = False) -> None:
        seconds = self._clock() - self._started
        what = self._text if last or not self.detail else f"{self._text}: {self.detail}"
        line = f"{what} … {outcome + ' after ' if outcome else ''}{seconds:.0f} s"
        if self._live and not last:
            # A line that is wrapped is not overwritten but repeated.
            line = line[: shutil.get_terminal_size().columns - 1]
        start, end = ("\r\x1b[K", "\n" if last else "") if self._live else ("", "\n")
        self._stream.write(f"{start}{line}{end}")
        self._stream.flush()
