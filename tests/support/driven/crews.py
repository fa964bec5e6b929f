"""Crews of workers: processes with many workers each, which are killed or frozen together."""

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asyncjob.shards import SHARDS
from support.processes.workers import ROOT, WorkerNamespace, until

LOOK_SECONDS = 0.5
PROGRAM = "support.programs.worker_crew"


class Crew:
    """One process; `pods` are the names of its workers' pods. `earlier`: they know no shards."""

    def __init__(
        self,
        ns: WorkerNamespace,
        pods: Sequence[str],
        types: Sequence[str],
        *,
        earlier: bool = False,
        **settings: Any,
    ) -> None:
        self.size = len(pods)
        self._log = Path(ns.folder / f"crew-{pods[0]}.log")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM],
                env={"PYTHONPATH": str(ROOT / "tests")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        identities = [ns.identity(pod) for pod in pods]
        order = {
            "pods": [
                (one.holder.pod, one.holder.pod_uid, str(one.kubeconfig)) for one in identities
            ],
            "types": list(types),
            "earlier": earlier,
            "settings": {"concurrency": 1, "worker_lease_interval": 3.0, **settings},
        }
        self._say(order)

    def counts(self) -> dict[str, float]:
        """Return sums over all workers of the crew."""
        self._say({})
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, self._log.read_text()[-3000:]
        found: dict[str, float] = json.loads(line)
        return found

    def kill(self) -> None:
        """End all workers at once, without a word to anybody."""
        self._process.kill()
        self._process.communicate()

    def freeze(self) -> None:
        """Stop all workers; they stay registered until their Leases end."""
        self._process.send_signal(signal.SIGSTOP)

    def _say(self, what: object) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{json.dumps(what)}\n")
        self._process.stdin.flush()


class Crews:
    """The crews of one test."""

    def __init__(self, ns: WorkerNamespace) -> None:
        self._ns = ns
        self._numbers = itertools.count()
        self.running: list[Crew] = []

    def start(self, size: int, types: Sequence[str] = ("nap",), **settings: Any) -> Crew:
        """Start a crew of so many workers."""
        number = next(self._numbers)
        pods = [f"crew-{number}-{one}" for one in range(size)]
        crew = Crew(self._ns, pods, types, **settings)
        self.running.append(crew)
        return crew

    def kill(self, *crews: Crew) -> None:
        """Kill these."""
        for crew in crews:
            crew.kill()
            self.running.remove(crew)

    def total(self, count: str) -> float:
        """Return a sum over all that run."""
        return sum(crew.counts()[count] for crew in self.running)

    def until_assigned(self, kinds: int = 1, within: float = 90.0) -> None:
        """Wait until each shard has an owner and a deputy for each kind of worker."""

        def are_assigned() -> bool:
            time.sleep(LOOK_SECONDS)
            parts = [self.total(part) for part in ("own", "deputy")]
            return parts == [SHARDS * kinds] * 2

        until(are_assigned, within, lambda: str([crew.counts() for crew in self.running]))


@contextmanager
def crews_of(ns: WorkerNamespace) -> Iterator[Crews]:
    """Start crews in the test's namespace; those that are left are killed in the end."""
    crews = Crews(ns)
    try:
        yield crews
    finally:
        crews.kill(*list(crews.running))
