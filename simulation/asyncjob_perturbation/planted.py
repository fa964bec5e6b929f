"""Bugs that only an API server shows that lags, planted in a part for tests of the perturbation.

The simulation, whose bugs may be planted here as well, has no such API server.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from asyncjob.kube.watch import open_watch
from asyncjob_simulation.mutations import by_name
from asyncjob_worker.claiming import watcher
from asyncjob_worker.claiming.claimer import Claimer


def any_version() -> AbstractContextManager[object]:
    """Have a worker take queued jobs of any version, as `resourceVersion=0` allows."""

    async def open_any(session: Any, path: str, params: Any, **more: Any) -> Any:
        version = params["resourceVersion"] or "0"
        return await open_watch(session, path, {**params, "resourceVersion": version}, **more)

    return patch.object(watcher, "open_watch", open_any)


@contextmanager
def any_version_once() -> Iterator[None]:
    """Have it take that for the present, too.

    What cannot be claimed as it is shown then is another worker's: it is never tried again.
    """
    claim = Claimer.claim
    lost: set[str] = set()

    async def claim_once(self: Any, candidate: Any) -> Any:
        held = None if candidate.name in lost else await claim(self, candidate)
        if held is None:
            lost.add(candidate.name)
        return held

    with any_version(), patch.object(Claimer, "claim", claim_once):
        yield


_PLANTS: Final[dict[str, Callable[[], AbstractContextManager[object]]]] = {
    "any version": any_version,
    "any version once": any_version_once,
}


def plant(name: str) -> AbstractContextManager[object]:
    """Plant a bug in this process, one of these or of the simulation's."""
    return _PLANTS[name]() if name in _PLANTS else by_name(name).plant()
