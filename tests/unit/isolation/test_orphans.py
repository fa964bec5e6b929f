"""No handler goes on after its worker: not even one that blocks its whole process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob_worker.isolation import process
from support.isolation import Shop, is_alive, job, until

WORKER = """
import asyncio, pathlib, sys
from support.isolation import Shop, job

async def main(folder, type_):
    shop = Shop()
    task, pid = await shop.begin(job(type_, folder), pathlib.Path(folder))
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
    monkeypatch.setattr(process, "_LAST_WORDS_SECONDS", 1000.0)
    shop = Shop()
    task, pid = await shop.begin(job("family", str(tmp_path)), tmp_path)
    grandchild = int((tmp_path / "grandchild").read_text())
    child = next(iter(shop.pool._children))
    child._writer.transport.abort()
    move = await task
    assert move
    assert "SIGKILL" in str(move.fields["message"])
    await until(lambda: not is_alive(pid) and not is_alive(grandchild), "both are dead")
    await shop.close()
