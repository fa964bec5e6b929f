"""Lists of schedules, compared with what is known: a watch can lose a deletion."""

from asyncjob.json_types import child, text
from asyncjob.kube import KubeSession
from asyncjob.names import CRON_JOBS, collection_path
from asyncjob_operator.observe.cron.schedules import CronJobController
from asyncjob_operator.telemetry.containment import ObjectKind


async def resync_cron_jobs(
    session: KubeSession, namespace: str | None, controller: CronJobController
) -> None:
    """Take all schedules there are, and forget those that are no more; raises what a list raises.

    Who is first seen while the list is read is not in it, and is not forgotten.
    """
    before = set(controller.names_in(namespace))
    found = [obj async for obj in session.list(collection_path(namespace, CRON_JOBS))]
    metas = [child(obj, "metadata") for obj in found]
    present = {(text(meta, "namespace"), text(meta, "name")) for meta in metas}
    for name in before - present:
        controller.on_delete(name)
    controller.containment.retain(ObjectKind.CRON_JOB, namespace, present)
    for obj in found:
        controller.on_update(obj)
