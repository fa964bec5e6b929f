"""How a program in the foreground ends."""

import os
import signal

import pytest

from asyncjob_dev.signals import HANDLED_SIGNALS, unwind_on_signals
from support.processes.signals import ignoring


@pytest.mark.usefixtures("in_a_terminal")
@pytest.mark.parametrize("number", HANDLED_SIGNALS)
def test_the_first_signal_unwinds(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), unwind_on_signals():
        os.kill(os.getpid(), number)


def test_a_hangup_that_is_ignored_stays_so() -> None:
    with ignoring(signal.SIGHUP):
        with unwind_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_other_signals_unwind_even_where_they_are_ignored(number: signal.Signals) -> None:
    with ignoring(number):
        with pytest.raises(KeyboardInterrupt), unwind_on_signals():
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_IGN
