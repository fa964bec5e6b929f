"""The command line on jobs in memory, with a clock that moves only when somebody waits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import click
from click.testing import CliRunner, Result

from asyncjob.cli.connection import RETRY_SECONDS, ConnectionOptions
from asyncjob.cli.context import CliContext
from asyncjob.cli.direct import DirectCluster
from asyncjob.cli.entry import run
from asyncjob.client.kubernetes.calls import KubernetesCalls
from asyncjob.client.portal import Portal
from support.in_memory.fake_api import iterate
from support.in_memory.fake_api import run as run_in_memory
from support.in_memory.fake_cluster import FakeCluster
from support.in_memory.fake_jobs import FakeJobs
from support.judging.explained import check_code

START = datetime(2026, 11, 21, 20, 5, tzinfo=UTC)


@dataclass
class Shell:
    """Runs commands; keeps where they went."""

    jobs: FakeJobs = field(default_factory=FakeJobs)
    cluster: FakeCluster = field(default_factory=FakeCluster)
    places: list[ConnectionOptions] = field(default_factory=list)
    slept: float = 0.0

    def context(self) -> CliContext:
        return CliContext(
            connect=self._connect,
            now=lambda: START + timedelta(seconds=self.slept),
            monotonic=lambda: self.slept,
            sleep=self._sleep,
            cluster=self._straight,
        )

    @contextmanager
    def _connect(self, place: ConnectionOptions) -> Iterator[FakeJobs]:
        self.places.append(place)
        yield self.jobs

    @contextmanager
    def _straight(self, place: ConnectionOptions) -> Iterator[DirectCluster]:
        self.places.append(place)
        api = KubernetesCalls(self.cluster, patience=RETRY_SECONDS)
        yield DirectCluster(place.namespace or "tests", api, cast("Portal", MemoryPortal()))

    def _sleep(self, seconds: float) -> None:
        self.slept += seconds

    def __call__(self, *words: str, stdin: str | None = None, name: str = "asyncjob") -> Result:
        """Run a command as the process does, but for the exit."""
        result = CliRunner().invoke(_Process(self.context(), name), list(words), input=stdin)
        check_code(f"exit-{result.exit_code}")
        return result

    def ok(self, *words: str, **how: Any) -> str:
        """Run a command that succeeds, and return its output."""
        result = self(*words, **how)
        assert result.exit_code == 0, result.output
        return result.stdout


class MemoryPortal:
    """Runs what never waits for anything real."""

    run, iterate = staticmethod(run_in_memory), staticmethod(iterate)


class _Process(click.Command):
    """What click's runner calls: `entry.run` in place of a click command."""

    def __init__(self, context: CliContext, name: str) -> None:
        super().__init__(name)
        self._context, self._name = context, name

    def main(self, args: Any = None, *_: Any, **__: Any) -> Any:
        raise SystemExit(run(args, self._name, self._context))
