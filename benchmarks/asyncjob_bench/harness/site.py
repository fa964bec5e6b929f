"""One control plane with everything installed, whose CPU is accounted by program."""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from asyncjob.names import GROUP, JOBS
from asyncjob_bench.harness import procfs
from asyncjob_bench.harness.space import Space
from asyncjob_bench.stats.exposition import Scrape
from asyncjob_bench.stats.usage import Usage
from asyncjob_dev.api import Api
from asyncjob_dev.binaries import Resolver
from asyncjob_dev.controlplane import DEFAULT_CONTROLLERS, ControlPlane, ControlPlaneOptions
from asyncjob_dev.environment.components import MANIFESTS, install
from asyncjob_dev.process import wait_until

OPTIONS: Final = ControlPlaneOptions(
    controllers=(*DEFAULT_CONTROLLERS, "job-controller"),
    controller_manager_flags=(
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-job-syncs=20",
    ),
)
"""As everywhere in development, with native Jobs run as fast as their controller can."""

QUIET_SHARE: Final = 0.05
POLL_SECONDS: Final = 0.5
MAX_POLLS: Final = 20
SCRAPE_SECONDS: Final = 30.0
COLLECTOR_SECONDS: Final = 90.0
WATCHES: Final = "apiserver_longrunning_requests"

_numbers = itertools.count(1)


class Site:
    """A running control plane and a folder for all that is started on it."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder

    @contextmanager
    def space(self, what: str) -> Iterator[Space]:
        """Open a namespace of its own; the processes started in it are stopped at the end."""
        name = f"{what}-{next(_numbers)}"
        with Space.open(self.plane, self.folder / name, name) as space:
            yield space

    @property
    def programs(self) -> dict[str, list[int]]:
        """The control plane's process ids by program."""
        return {it.name: [it.pid] for it in self.plane.processes if it.pid}

    def usage(self, more: Mapping[str, list[int]] | None = None) -> Usage:
        """Return what has been used so far by the control plane and other programs."""
        return procfs.usage({**self.programs, **(more or {})})

    def memory(self) -> dict[str, float]:
        """Return what each program of the control plane occupies, in MiB."""
        return {name: procfs.resident_mib(pids[0]) for name, pids in self.programs.items()}

    def metrics(self) -> Scrape:
        """Return the API server's metrics."""
        return Scrape.of(self.read("/metrics").decode())

    def read(self, path: str, within: float = SCRAPE_SECONDS) -> bytes:
        """Return what the API server says of itself, with the admin's rights."""
        plane = self.plane
        api = Api(plane.url, ca_file=plane.ca_file, token=plane.admin_token, timeout=within)
        return api.read(path)

    def watches(self, group: str = GROUP) -> float:
        """Return how many watches of AsyncJobs are open."""
        return self.metrics().total(WATCHES, resource=JOBS, group=group, verb="WATCH")

    def await_collector(self, group: str = GROUP) -> None:
        """Wait for the garbage collector, which looks for new types every 30 s only.

        It watches all there is: a part of any real cluster's load that must not join half-way.
        """
        wait_until(
            lambda: self.watches(group) > 0,
            "the garbage collector's watch",
            within=COLLECTOR_SECONDS,
            alive=self.plane.processes,
        )

    def settle(self) -> None:
        """Wait until the control plane has nothing left to do, for ten seconds at most."""
        before = self.usage()
        for _ in range(MAX_POLLS):
            time.sleep(POLL_SECONDS)
            now = self.usage()
            if sum((now - before).programs.values()) < QUIET_SHARE * POLL_SECONDS:
                return
            before = now


@contextmanager
def site(
    *apiserver_flags: str,
    controllers: bool = True,
    manifests: Sequence[Path] = MANIFESTS,
    resolver: Resolver | None = None,
) -> Iterator[Site]:
    """Run a control plane with CRDs, policies and roles in force.

    `resolver` finds its programs; by default those that are pinned.
    """
    options = replace(OPTIONS, apiserver_flags=apiserver_flags, with_controller_manager=controllers)
    with (
        TemporaryDirectory(prefix="asyncjob-bench-") as folder,
        ControlPlane(options, resolver=resolver) as plane,
    ):
        install(plane, manifests)
        made = Site(plane, Path(folder))
        if controllers:
            made.await_collector()
        yield made
