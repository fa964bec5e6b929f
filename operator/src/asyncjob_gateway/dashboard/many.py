"""Doing the same to many jobs within one request, which has only so much time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from asyncjob.errors import AsyncJobError
from asyncjob_gateway.problems.translate import refusal_of

AT_THE_SAME_TIME: Final = 8


async def each(
    ids: Sequence[str], act: Callable[[str], Awaitable[object]], late: asyncio.Event
) -> dict[str, str]:
    """Do it to each, some at the same time; return what went wrong, empty where nothing did.

    Once `late` is set, no other is begun; those are left as they are, and out of the answer.
    """
    told: dict[str, str] = {}
    room = asyncio.Semaphore(AT_THE_SAME_TIME)

    async def one(job_id: str) -> None:
        async with room:
            if not late.is_set():
                told[job_id] = await _problem(act, job_id)

    async with asyncio.TaskGroup() as group:
        for job_id in ids:
            group.create_task(one(job_id))
    return told


async def _problem(act: Callable[[str], Awaitable[object]], job_id: str) -> str:
    try:
        await act(job_id)
    except AsyncJobError as error:
        return refusal_of(error).detail
    return ""
