"""Doing the same to many jobs within one request, which has only so much time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from asyncjob.errors import AsyncJobError
from asyncjob_gateway.problems.translate import to_refused_error

BULK_CONCURRENCY: Final = 8


async def apply_to_each(
    ids: Sequence[str], action: Callable[[str], Awaitable[object]], deadline_passed: asyncio.Event
) -> dict[str, str]:
    """Do it to each, some at the same time; return what went wrong, empty where nothing did.

    Once `late` is set, no other is begun; those are left as they are, and out of the answer.
    """
    told: dict[str, str] = {}
    room = asyncio.Semaphore(BULK_CONCURRENCY)

    async def one(job_id: str) -> None:
        async with room:
            if not deadline_passed.is_set():
                told[job_id] = await _apply(action, job_id)

    async with asyncio.TaskGroup() as group:
        for job_id in ids:
            group.create_task(one(job_id))
    return told


async def _apply(action: Callable[[str], Awaitable[object]], job_id: str) -> str:
    try:
        await action(job_id)
    except AsyncJobError as error:
        return to_refused_error(error).detail
    return ""
