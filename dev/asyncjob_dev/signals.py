"""How a program in the foreground ends: on signals, and on errors that were foreseen.

The first signal unwinds the stack, the second one exits at once. The children die with this process
in any case; unwinding stops them in order.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from asyncjob_dev.errors import DevError

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130


@contextmanager
def unwind_on_signals() -> Iterator[None]:
    """Inside, the first signal raises KeyboardInterrupt, in the main thread; the second exits.

    A SIGHUP that is ignored stays so: that is how `nohup` lets a program outlive its terminal. A
    SIGINT is heeded even then: shells without job control have it ignored for every `command &`,
    and whoever sends one wants what the program promises.
    """
    seen = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if seen.is_set():
            os._exit(INTERRUPTED)
        seen.set()
        raise KeyboardInterrupt

    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    heard = [it for it in HANDLED_SIGNALS if it is not signal.SIGHUP or not outlives_terminal]
    before = [(number, signal.signal(number, handle)) for number in heard]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def click_errors() -> Iterator[None]:
    """Inside a command, show a foreseen error as a sentence, and Ctrl-C as what it leaves."""
    try:
        yield
    except DevError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo("\ninterrupted; nothing that it started is left running", err=True)
        sys.exit(INTERRUPTED)
