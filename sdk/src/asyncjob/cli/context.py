"""What a command needs beside its arguments: connections, clocks and a way to sleep.

Tests pass their own.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from asyncjob.cli.connection import ConnectionOptions, connect

if TYPE_CHECKING:
    from asyncjob.cli.all_namespaces import Lister
    from asyncjob.cli.direct import DirectCluster
    from asyncjob.client.api import Jobs


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _open_cluster(connection: ConnectionOptions) -> "AbstractContextManager[DirectCluster]":
    from asyncjob.cli.direct import open_cluster

    return open_cluster(connection)


@dataclass(frozen=True)
class CliContext:
    """Everything a command needs that is not in its arguments."""

    connect: "Callable[[ConnectionOptions], AbstractContextManager[Jobs]]" = connect
    now: Callable[[], datetime] = _utc_now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    cluster: "Callable[[ConnectionOptions], AbstractContextManager[DirectCluster]]" = _open_cluster
    root: ConnectionOptions = field(default_factory=ConnectionOptions)
    """What was given before the command's name."""

    @contextmanager
    def lister(self, connection: ConnectionOptions) -> "Iterator[Lister]":
        """Open the way to what can be listed: of one namespace, or of all."""
        if not connection.everywhere:
            with self.connect(connection) as jobs:
                yield jobs
            return
        from asyncjob.cli.all_namespaces import AllNamespaces

        with self.cluster(connection) as cluster:
            yield AllNamespaces(cluster, self.now)
