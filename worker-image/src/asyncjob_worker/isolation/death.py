"""Says how a process ended, from its exit code alone."""

import signal


def describe_exit(code: int) -> str:
    """Return how the handler's process ended; `code` as subprocess has it, -N for a signal."""
    if code >= 0:
        return f"the handler's process ended with exit code {code}"
    name = _signal_name(-code)
    if -code == signal.SIGKILL:
        return f"the handler's process was killed by {name}, perhaps out of memory"
    return f"the handler's process died by {name}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
