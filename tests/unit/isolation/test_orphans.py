"""No handler goes on after its worker: not even one that blocks its whole process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_worker.isolation import pool
from support.parts.isolation import IsolatedAttempts, is_alive, job, until

WORKER = """
import asyncio, pathlib, sys
from support.parts.isolation import IsolatedAttempts, job

async def main(folder, type_):
    attempts = IsolatedAttempts()
    task, pid = await attempts.begin(job(type_, folder), pathlib.Path(folder))
    print(pid, flush=True)
    await task

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("type_", ["spin", "deaf"])
async def test_a_killed_worker_takes_its_handlers_along(tmp_path: Path, type_: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WORKER, str(tmp_path), type_]
    output = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdout=output, text=True) as worker:  # noqa: ASYNC220
        assert worker.stdout
        pid = next(int(line) for line in worker.stdout if line.strip().isdigit())
        assert is_alive(pid)
        worker.send_signal(signal.SIGKILL)
    await until(lambda: not is_alive(pid), "the handler's process is dead")


async def test_the_end_of_the_socket_alone_ends_a_process_and_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_SOCKET_LINGER_SECONDS", 1000.0)
    attempts = IsolatedAttempts()
    task, pid = await attempts.begin(job("family", str(tmp_path)), tmp_path)
    grandchild = int((tmp_path / "grandchild").read_text())
    child = next(iter(attempts.pool._processes))
    child._writer.transport.abort()
    move = await task
    assert move
    assert "SIGKILL" in str(move.fields["message"])
    await until(lambda: not is_alive(pid) and not is_alive(grandchild), "both are dead")
    await attempts.close()


async def test_what_a_process_had_started_is_reaped_where_that_is_ours(tmp_path: Path) -> None:
    """As the first process of a container: made so here by becoming their new parent."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FIRST_PROCESS, str(tmp_path)]
    assert subprocess.run(command, env=env, check=False).returncode == 0  # noqa: ASYNC221


FIRST_PROCESS = """
import asyncio, ctypes, os, pathlib, signal, sys
from support.parts.isolation import IsolatedAttempts, is_left, job, until

SUBREAPER = 36
assert ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0) == 0

async def main(folder):
    attempts = IsolatedAttempts()
    task, pid = await attempts.begin(job("family", str(folder)), folder)
    os.kill(pid, signal.SIGKILL)
    await task
    grandchild = int((folder / "grandchild").read_text())
    await until(lambda: not is_left(grandchild), "not even a zombie is left")
    await attempts.close()

asyncio.run(main(pathlib.Path(sys.argv[1])))
"""
