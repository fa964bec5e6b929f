"""Child jobs as a worker submits them and finds them again."""

import asyncio
from typing import Any

from asyncjob.app.child_jobs import ChildRef
from asyncjob.app.child_manifest import ChildManifest, ChildOptions, ParentJob, build_child_manifest
from asyncjob_worker.execution.children.child_jobs import AttemptChildJobs
from asyncjob_worker.leases.held_job import HeldJob
from support.parts.worker_parts import Pauses, ScriptedSession, held, job


def an_order(payload: Any = 1, **options: Any) -> ChildManifest:
    """Return an order of a child by job j."""
    return build_child_manifest(
        ParentJob("j", "u1", "default"), "leaf", payload, ChildOptions(**options)
    )


def stored(order: ChildManifest, uid: str = "c1", **status: Any) -> dict[str, Any]:
    """Return the child as the API server has it."""
    metadata: Any = {**order.manifest["metadata"], "uid": uid}  # type: ignore[dict-item]
    return {**order.manifest, "metadata": metadata, "status": status}


def finished(name: str, uid: str, **status: Any) -> dict[str, Any]:
    """Return a child that has succeeded."""
    return job(name=name, uid=uid, **{"phase": "Succeeded", "result": uid, **status})


def children(session: ScriptedSession, of: HeldJob | None = None) -> AttemptChildJobs:
    """Return what submits children for a job."""
    return AttemptChildJobs(session.session, of or held(), pause=Pauses())


async def submit(
    session: ScriptedSession, order: ChildManifest, of: HeldJob | None = None
) -> ChildRef:
    """Submit one."""
    return await asyncio.wrap_future(children(session, of).submit(order))
