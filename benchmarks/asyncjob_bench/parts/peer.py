"""What Python users know: procrastinate on PostgreSQL, on the same machine in the same minutes."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from asyncjob_bench.errors import LeftOutError
from asyncjob_bench.harness.programs import run_program
from asyncjob_bench.parts.part import Numbers, PartContext
from asyncjob_bench.stats.usage import Usage, cpu_row
from asyncjob_dev.process import ManagedProcess

MODULE: Final = "asyncjob_bench.parts.peer_process"
DEBIAN: Final = Path("/usr/lib/postgresql")
UNPRIVILEGED: Final = ("postgres", "nobody")
SETTINGS: Final = (
    "listen_addresses=",
    "fsync=off",
    "max_connections=100",
    "shared_buffers=256MB",
)
"""Without fsync, as etcd runs here."""

TIMEOUT_SECONDS: Final = 600.0
SLOTS: Final = 16


def measure(context: PartContext) -> Numbers:
    """Return its rate, with one worker process of 16 slots; LeftOutError where it cannot run."""
    count = context.scale.jobs
    with _database() as (socket, server):
        order = {"socket": socket, "server": server.pid, "slots": SLOTS, "count": count}
        order["warm_up"] = context.scale.warm_up
        answer = run_program([sys.executable, "-m", MODULE, "submit"], order, TIMEOUT_SECONDS)
    used = Usage(answer["cpu"], answer["busy"], answer["available"])
    context.results.cpu.append(cpu_row("procrastinate", used, count))
    return {"peer_postgres_jobs_s": answer["rate"]}


@contextmanager
def _database() -> Iterator[tuple[str, ManagedProcess]]:
    """Run a server of our own on a socket, as another user where we are root, which it refuses."""
    programs, run_as = postgres_programs(), _unprivileged()
    with TemporaryDirectory(prefix="asyncjob-bench-pg-") as folder:
        data, own = Path(folder) / "data", Path(folder) / "log"
        if run_as:
            account = pwd.getpwnam(run_as)
            os.chown(folder, account.pw_uid, account.pw_gid)
        prefix = ["setpriv", f"--reuid={run_as}", f"--regid={run_as}", "--clear-groups"]
        become = prefix if run_as else []
        made = [*become, str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "bench"]
        done = subprocess.run(made, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode != 0:
            raise LeftOutError(f"initdb failed: {done.stderr.strip()[-300:]}")
        settings = [part for text in SETTINGS for part in ("-c", text)]
        argv = [*become, str(programs / "postgres"), "-D", str(data), "-k", folder, *settings]
        server = ManagedProcess(
            "postgres",
            argv,
            log_file=own,
            cwd=Path(folder),
            ready=(Path(folder) / ".s.PGSQL.5432").exists,
            grace=5.0,
        )
        with server:
            yield folder, server


@cache
def postgres_programs() -> Path:
    """Return the folder of PostgreSQL's programs; LeftOutError where there are none."""
    newest_last = sorted(DEBIAN.glob("*/bin"), key=lambda it: float(it.parent.name))
    on_path = shutil.which("initdb")
    folders = [*([Path(on_path).resolve().parent] if on_path else []), *reversed(newest_last)]
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise LeftOutError("PostgreSQL is not installed (Debian: apt-get install postgresql)")


def _unprivileged() -> str:
    if os.getuid() != 0:
        return ""
    names = {account.pw_name for account in pwd.getpwall()}
    for name in UNPRIVILEGED:
        if name in names and shutil.which("setpriv"):
            return name
    raise LeftOutError("PostgreSQL refuses to run as root, and there is no other user to run it")
