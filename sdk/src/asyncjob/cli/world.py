"""What commands find around them: the way to the jobs, clocks, a wait. Tests bring their own."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from asyncjob.cli.connect import connect
from asyncjob.cli.place import Place

if TYPE_CHECKING:
    from asyncjob.cli.everywhere import Overview
    from asyncjob.cli.straight import Cluster
    from asyncjob.client.interface import Jobs


def _now() -> datetime:
    return datetime.now(UTC)


def _cluster(place: Place) -> "AbstractContextManager[Cluster]":
    from asyncjob.cli.straight import straight

    return straight(place)


@dataclass(frozen=True)
class World:
    """Everything a command needs that is not in its arguments."""

    connect: "Callable[[Place], AbstractContextManager[Jobs]]" = connect
    now: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    cluster: "Callable[[Place], AbstractContextManager[Cluster]]" = _cluster
    root: Place = field(default_factory=Place)
    """What was given before the command's name."""

    @contextmanager
    def overview(self, place: Place) -> "Iterator[Overview]":
        """Open the way to what can be listed: of one namespace, or of all."""
        if not place.everywhere:
            with self.connect(place) as jobs:
                yield jobs
            return
        from asyncjob.cli.everywhere import Everywhere

        with self.cluster(place) as cluster:
            yield Everywhere(cluster, self.now)
