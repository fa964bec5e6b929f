"""What the reader of a page may do; actions that are not permitted are not shown."""

import asyncio
from dataclasses import dataclass, fields

from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import RequestContext

_RIGHT_OF_FLAG = {
    "submit": rights.SUBMIT_JOBS,
    "list_jobs": rights.LIST_JOBS,
    "watch": rights.WATCH_JOBS,
    "read_payload": rights.READ_PAYLOAD,
    "control": rights.CONTROL_JOBS,
    "list_queues": rights.LIST_QUEUES,
    "control_queues": rights.CONTROL_QUEUES,
    "list_arrays": rights.LIST_ARRAYS,
    "control_arrays": rights.CONTROL_ARRAYS,
    "list_cron_jobs": rights.LIST_CRON_JOBS,
    "control_cron_jobs": rights.CONTROL_CRON_JOBS,
}


@dataclass(frozen=True, slots=True)
class Permissions:
    """One flag per right; none by default."""

    submit: bool = False
    list_jobs: bool = False
    watch: bool = False
    read_payload: bool = False
    control: bool = False
    list_queues: bool = False
    control_queues: bool = False
    list_arrays: bool = False
    control_arrays: bool = False
    list_cron_jobs: bool = False
    control_cron_jobs: bool = False


async def check_permissions(ctx: RequestContext) -> Permissions:
    """Ask for all rights at once; the answers are remembered for some seconds."""
    names = [field.name for field in fields(Permissions)]
    answers = await asyncio.gather(*(ctx.is_allowed(_RIGHT_OF_FLAG[name]) for name in names))
    return Permissions(**dict(zip(names, answers, strict=True)))
