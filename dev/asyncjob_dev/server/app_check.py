"""Whether an app can be imported, asked in a process of its own, and which job types it has.

As a program it prints the types of `module:attribute`, one a line, or says on stderr why not.
"""

import os
import subprocess
import sys
from pathlib import Path

from asyncjob_dev.errors import HandlersNotLoadedError
from asyncjob_dev.process import bound_command

IMPORT_SECONDS = 120.0


def job_types(app: str, project: Path) -> list[str]:
    """Import the app in the folder `project`; raises HandlersNotLoadedError, which says why not."""
    # Bound to this process, as everything is that it starts.
    command = bound_command([sys.executable, "-m", "asyncjob_dev.server.app_check", app])
    try:
        done = subprocess.run(
            command,
            cwd=project,
            env=os.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=IMPORT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        why = f"it was not imported within {IMPORT_SECONDS:g} s"
        raise HandlersNotLoadedError(app, why) from error
    if done.returncode:
        raise HandlersNotLoadedError(app, done.stderr.strip() or "its import ended the process")
    return done.stdout.split()


def main(app: str) -> int:
    """Return the exit code."""
    from asyncjob_worker.app_loader import load_app
    from asyncjob_worker.errors import AppNotLoadedError

    said, sys.stdout = sys.stdout, sys.stderr  # an app may print as it is imported
    try:
        types = sorted(load_app(app).handlers)
    except AppNotLoadedError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    said.write("\n".join(types))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
