"""Ctrl-C, for programs that promise to end by it."""

import signal


def restore_sigint() -> None:
    """Raise KeyboardInterrupt at SIGINT, even if what started this program had it ignored.

    A shell without job control starts each `command &` so, and all that the command starts inherits
    it: SIGINT would be lost without a word. SIGHUP, which `nohup` has ignored, is left alone. Only
    the main thread may call this.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
