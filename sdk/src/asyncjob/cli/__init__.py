"""The command line `asyncjob`, also installed as `kubectl-asyncjob`.

Start at `entry`. Commands use the `Jobs` interface of `asyncjob.client` and know neither how a job
is stored nor what REST looks like; only `doctor`, `backup` and lists of all namespaces talk to the
API server themselves. Tables, exit codes and findings come from pure functions. No models or
clients are imported before a command is chosen, so `--help` is fast.
"""

import sys

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.errors import message_of
from asyncjob.extras import MissingExtraError, needs


def main() -> None:
    """Run the command line and exit; without its extra, say what to install."""
    try:
        with needs("cli"):
            from asyncjob.cli import entry
    except MissingExtraError as error:
        print(f"error: {message_of(error)}", file=sys.stderr)  # noqa: T201 - click is not there
        sys.exit(ExitCode.UNAVAILABLE)
    entry.main()
