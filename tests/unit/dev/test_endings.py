"""How a program in the foreground ends."""

import os
import signal

import pytest

from asyncjob_dev.endings import unwound_by_signals


def test_the_first_signal_unwinds() -> None:
    with pytest.raises(KeyboardInterrupt), unwound_by_signals():
        os.kill(os.getpid(), signal.SIGHUP)


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with unwound_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
