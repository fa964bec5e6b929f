"""Live reads that confirm how other jobs are, before a job's fate is made to hang on them."""

from collections.abc import Callable

from asyncjob.errors import ObjectNotFoundError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import TERMINAL_PHASES
from asyncjob.lifecycle.view import JobView, read_job
from asyncjob.names import JOBS, PARENT_LABEL, collection_path, job_path
from asyncjob_operator.core.decision import (
    CancelCascades,
    ChildrenFinished,
    DependencyCycle,
    DependencyFailed,
    DependencyMissing,
    DependencyPrecondition,
)
from asyncjob_operator.core.ties import RelatedJob, related_job


class RelatedJobChecker:
    """Asks the API server about jobs.

    `on_job` and `on_job_deleted` take what it answers, so that the cache is right.
    `is_current` says of a known job that all written before it is known as well.
    """

    def __init__(
        self,
        session: KubeSession,
        on_job: Callable[[JsonObject], None],
        on_job_deleted: Callable[[str], None],
        is_current: Callable[[str], bool],
    ) -> None:
        self._session = session
        self._on_job = on_job
        self._on_job_deleted = on_job_deleted
        self._is_current = is_current

    async def verify(self, precondition: DependencyPrecondition) -> bool:
        """Return whether the proof holds."""
        match precondition:
            case DependencyFailed(job):
                there = await self._reread(job)
                return there is not None and there.failed
            case CancelCascades(job):
                there = await self._reread(job)
                return there is not None and there.cascades_cancel
            case DependencyCycle(cycle):
                found = [await self._reread(one) for one in cycle]
                return all(one and one.phase not in TERMINAL_PHASES for one in found)
            case DependencyMissing():
                return await self._read_job(precondition.namespace, precondition.name) is None
            case ChildrenFinished():
                return await self._children_finished(precondition)

    async def _reread(self, job: RelatedJob) -> RelatedJob | None:
        """Return the very job as it is now, or None if there is none or another of its name."""
        there = await self._read_job(job.namespace, job.name)
        if there is None or there.uid != job.uid:
            self._on_job_deleted(job.uid)
            return None
        return related_job(there)

    async def _read_job(self, namespace: str, name: str) -> JobView | None:
        try:
            obj = await self._session.get(job_path(namespace, name))
        except ObjectNotFoundError:
            return None
        self._on_job(obj)
        return read_job(obj)

    async def _children_finished(self, precondition: ChildrenFinished) -> bool:
        """Ask for the children, unless all that were created before the parents' ends are known.

        The watch tells of jobs in the order they were written. Without that, a list has to show
        it, for which the API server looks through the whole namespace.
        """
        if all(map(self._is_current, precondition.parents)):
            return True
        params = {"labelSelector": f"{PARENT_LABEL} in ({','.join(precondition.parents)})"}
        done = True
        async for obj in self._session.list(collection_path(precondition.namespace, JOBS), params):
            self._on_job(obj)
            child = related_job(read_job(obj))
            spoilt = child.failed and read_job(obj).parent_uid in precondition.must_succeed
            done = done and child.finished and not spoilt
        return done
