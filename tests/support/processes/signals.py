"""What a process does with a terminal's signals is inherited: tests that send some settle it."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

Disposition = signal.Handlers | int | Callable[[int, FrameType | None], object]


@contextmanager
def _settled(wanted: Mapping[signal.Signals, Disposition]) -> Iterator[None]:
    before = {number: signal.signal(number, what) for number, what in wanted.items()}
    try:
        yield
    finally:
        for number, what in before.items():
            signal.signal(number, what)


@contextmanager
def as_in_a_terminal() -> Iterator[None]:
    """Inside, SIGINT and SIGHUP mean here, and to what is started, what they mean by default."""
    with _settled(
        {
            signal.SIGINT: signal.default_int_handler,
            signal.SIGHUP: signal.SIG_DFL,
        }
    ):
        yield


@contextmanager
def ignoring(*numbers: signal.Signals) -> Iterator[None]:
    """Inside, these signals are ignored, as in what `nohup` or a script's `… &` has started."""
    with _settled(dict.fromkeys(numbers, signal.SIG_IGN)):
        yield
