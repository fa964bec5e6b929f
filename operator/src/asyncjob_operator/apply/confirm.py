"""Live reads that confirm what a cache says before anyone acts on it."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from asyncjob.errors import NotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.view import read_job
from asyncjob.names import WORKER_LEASE_PREFIX, job_path
from asyncjob_operator.apply.kin import Kin
from asyncjob_operator.core.decision import (
    Absent,
    Cascading,
    Childless,
    Ended,
    PodGone,
    Proof,
    RivalLives,
    Stuck,
    TypeMissing,
    WorkerReplaced,
)
from asyncjob_operator.core.roll_call import Entry, queue_of, read_entry
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.paths import WORKERS_ONLY, leases, pods

MAX_REMEMBERED = 10_000
FRESH_SECONDS = 5.0
"""So long a list of a namespace's workers serves all its dead letters; the roll call that each of
them is judged by is kept up to date meanwhile."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Who takes what a live read showed when a cache was wrong."""

    pod: Callable[[JsonObject], None]
    lease: Callable[[JsonObject], None]
    lease_gone: Callable[[str, str], None]
    job: Callable[[JsonObject], None]
    job_gone: Callable[[str], None]
    is_current: Callable[[str], bool] = lambda _uid: False
    """Whether all that was written before a job's known version is known, too."""


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of a namespace by queue, as a list showed them that began then, monotonic."""

    listed_at: float
    entries: defaultdict[str, list[Entry]]


class Confirmation:
    """Asks the API server.

    That a pod's UID is gone, or a process replaced, is true for ever, so that is asked once and
    not for each job.
    """

    def __init__(
        self,
        session: KubeSession,
        correction: Correction,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._session = session
        self._correction = correction
        self._clock = clock
        self._kin = Kin(session, correction.job, correction.job_gone, correction.is_current)
        self._crews: dict[str, Crew] = {}
        self._crew_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._proven: set[PodGone | WorkerReplaced] = set()

    async def holds(self, proof: Proof | None) -> bool:
        """Return whether the proof holds; where it does not, correct the cache."""
        match proof:
            case None:
                return True
            case PodGone() | WorkerReplaced():
                return proof in self._proven or await self._prove(proof)
            case RivalLives():
                return await self._rival_lives(proof)
            case TypeMissing():
                return await self._type_missing(proof)
            case Ended() | Absent() | Stuck() | Cascading() | Childless():
                return await self._kin.holds(proof)

    async def _prove(self, proof: PodGone | WorkerReplaced) -> bool:
        look = self._pod_gone(proof) if isinstance(proof, PodGone) else self._replaced(proof)
        if not await look:
            return False
        if len(self._proven) >= MAX_REMEMBERED:
            self._proven.clear()
        self._proven.add(proof)
        return True

    async def _pod_gone(self, proof: PodGone) -> bool:
        pod = await self._read(f"{pods(proof.namespace)}/{proof.name}")
        if pod is not None and text(child(pod, "metadata"), "uid") == proof.uid:
            self._correction.pod(pod)
            return False
        return True

    async def _replaced(self, proof: WorkerReplaced) -> bool:
        name = WORKER_LEASE_PREFIX + proof.pod
        lease = await self._read(f"{leases(proof.namespace)}/{name}")
        if lease is None:
            self._correction.lease_gone(proof.namespace, name)
            return False
        self._correction.lease(lease)
        newest = text(child(lease, "spec"), "holderIdentity")
        return newest not in {"", proof.worker}

    async def _rival_lives(self, proof: RivalLives) -> bool:
        obj = await self._read(job_path(proof.namespace, proof.name))
        rival = read_job(obj) if obj is not None else None
        if obj is None or rival is None or rival.uid != proof.uid:
            self._correction.job_gone(proof.uid)
            return False
        self._correction.job(obj)
        return not rival.finished and not rival.deleting

    async def _type_missing(self, proof: TypeMissing) -> bool:
        """Look at the Leases there are; what they correct in the cache keeps the job waiting."""
        entries = (await self._crew(proof.namespace)).entries[proof.queue]
        known = any(entry.may_know(proof.type) for entry in entries)
        return not known and any(entry.claims for entry in entries)

    async def _crew(self, namespace: str) -> Crew:
        async with self._crew_locks[namespace]:
            crew = self._crews.get(namespace)
            if crew is None or self._clock() >= crew.listed_at + FRESH_SECONDS:
                crew = self._crews[namespace] = await self._list_crew(namespace)
            return crew

    async def _list_crew(self, namespace: str) -> Crew:
        crew = Crew(self._clock(), defaultdict(list))
        async for lease in self._session.list(leases(namespace), WORKERS_ONLY):
            crew.entries[queue_of(lease)].append(read_entry(lease))
            self._correction.lease(lease)
        return crew

    async def _read(self, path: str) -> JsonObject | None:
        try:
            return await self._session.get(path)
        except NotFoundError:
            return None
