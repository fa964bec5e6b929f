"""Lists of schedules, compared with what is known: a watch can lose a deletion."""

from asyncjob.json_types import child, text
from asyncjob.kube import KubeSession
from asyncjob.names import CRON_JOBS, collection
from asyncjob_operator.observe.cron.schedules import Schedules
from asyncjob_operator.telemetry.containment import Kind


async def compare(session: KubeSession, namespace: str | None, schedules: Schedules) -> None:
    """Take all schedules there are, and forget those that are no more; raises what a list raises.

    Who is first seen while the list is read is not in it, and is not forgotten.
    """
    before = set(schedules.known(namespace))
    found = [obj async for obj in session.list(collection(namespace, CRON_JOBS))]
    metas = [child(obj, "metadata") for obj in found]
    present = {(text(meta, "namespace"), text(meta, "name")) for meta in metas}
    for name in before - present:
        schedules.lost(name)
    schedules.containment.retain(Kind.CRON_JOB, namespace, present)
    for obj in found:
        schedules.saw(obj)
