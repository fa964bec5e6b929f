"""Live reads that confirm how other jobs are, before a job's fate is made to hang on them."""

from collections.abc import Callable

from asyncjob.errors import NotFoundError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import FROZEN
from asyncjob.lifecycle.view import JobView, read_job
from asyncjob.names import JOBS, PARENT_LABEL, collection, job_path
from asyncjob_operator.core.decision import Absent, Cascading, Childless, Ended, KinProof, Stuck
from asyncjob_operator.core.ties import Relative, relative


class Kin:
    """Asks the API server; `saw` and `gone` take what it answers, so that the cache is right.

    `is_current` says of a known job that all written before it is known as well.
    """

    def __init__(
        self,
        session: KubeSession,
        saw: Callable[[JsonObject], None],
        gone: Callable[[str], None],
        is_current: Callable[[str], bool],
    ) -> None:
        self._session = session
        self._saw = saw
        self._gone = gone
        self._is_current = is_current

    async def holds(self, proof: KinProof) -> bool:
        """Return whether the proof holds."""
        match proof:
            case Ended(job):
                there = await self._now(job)
                return there is not None and there.failed
            case Cascading(job):
                there = await self._now(job)
                return there is not None and there.cascades
            case Stuck(cycle):
                found = [await self._now(one) for one in cycle]
                return all(one and one.phase not in FROZEN for one in found)
            case Absent():
                return await self._read(proof.namespace, proof.name) is None
            case Childless():
                return await self._childless(proof)

    async def _now(self, job: Relative) -> Relative | None:
        """Return the very job as it is now, or None if there is none or another of its name."""
        there = await self._read(job.namespace, job.name)
        if there is None or there.uid != job.uid:
            self._gone(job.uid)
            return None
        return relative(there)

    async def _read(self, namespace: str, name: str) -> JobView | None:
        try:
            obj = await self._session.get(job_path(namespace, name))
        except NotFoundError:
            return None
        self._saw(obj)
        return read_job(obj)

    async def _childless(self, proof: Childless) -> bool:
        """Ask for the children, unless all that were created before the parents' ends are known.

        The watch tells of jobs in the order they were written. Without that, a list has to show
        it, for which the API server looks through the whole namespace.
        """
        if all(map(self._is_current, proof.parents)):
            return True
        params = {"labelSelector": f"{PARENT_LABEL} in ({','.join(proof.parents)})"}
        done = True
        async for obj in self._session.list(collection(proof.namespace, JOBS), params):
            self._saw(obj)
            child = relative(read_job(obj))
            spoilt = child.failed and read_job(obj).parent in proof.to_succeed
            done = done and child.finished and not spoilt
        return done
