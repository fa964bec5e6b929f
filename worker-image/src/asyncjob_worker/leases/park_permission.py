"""Whether jobs may be parked: only while an operator leads that wakes them again.

An older operator would take a parked job for one that waits for its `notBefore`, and start it at
once, again and again. So the leader announces in its Lease what it can do, under its own name: what
an older one finds there when it takes over is not its own.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.waits import WaitKind
from asyncjob.names import (
    ARRAY_KIND,
    ARRAYS_CAPABILITY,
    CAPABILITIES_ANNOTATION,
    CHILDREN_CAPABILITY,
    OPERATOR_LEASE,
    PARKS_CAPABILITY,
    SIGNALS_CAPABILITY,
    read_capabilities,
)
from asyncjob_worker.clock import boottime
from asyncjob_worker.leases.registration import leases_path

log = structlog.get_logger()

ASK_SECONDS: Final = 10.0
"""How long an answer holds. Who leads changes rarely; a sleep that waits for it costs a slot."""


CAPABILITIES: Final[Mapping[str, str]] = {
    WaitKind.SLEEP: PARKS_CAPABILITY,
    WaitKind.SIGNAL: SIGNALS_CAPABILITY,
    WaitKind.CHILDREN: CHILDREN_CAPABILITY,
    ARRAY_KIND: ARRAYS_CAPABILITY,
}
"""What the leader has to announce so that a job is parked for this; keys are those of `WAKES`."""

_NOTHING: Final[frozenset[str]] = frozenset()


class ParkPermission:
    """Asks the leader's Lease, in `namespace` or else the worker's own; at most every 10 s."""

    def __init__(
        self,
        session: KubeSession,
        namespace: str | None = None,
        lease: str = OPERATOR_LEASE,
        *,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._session = session
        self._lease = lease
        self._path = leases_path(namespace or session.access.namespace)
        self._clock = clock
        self._announced = _NOTHING
        self._asked_at: float | None = None

    async def is_granted(self, wakes: Collection[str]) -> bool:
        """Return whether the leader wakes jobs from all of this; False too if none can know."""
        now = self._clock()
        if self._asked_at is None or now - self._asked_at >= ASK_SECONDS:
            self._announced, self._asked_at = await self._ask(), now
        return {CAPABILITIES[one] for one in wakes} <= self._announced

    async def _ask(self) -> frozenset[str]:
        try:
            # A worker may list Leases, not read one.
            found = await self._session.get(
                self._path, {"fieldSelector": f"metadata.name={self._lease}"}
            )
        except ApiError as error:
            log.warning("jobs wait with their slot held: no leader known", error=str(error))
            return _NOTHING
        lease: JsonObject = next(map(as_object, items(found, "items")), {})
        leader = text(child(lease, "spec"), "holderIdentity")
        announced = text(child(child(lease, "metadata"), "annotations"), CAPABILITIES_ANNOTATION)
        return read_capabilities(announced, leader)
