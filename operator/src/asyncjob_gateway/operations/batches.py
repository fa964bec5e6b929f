"""Many submissions at once: each is read, done or refused by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from asyncjob.errors import AsyncJobError
from asyncjob.intake.reading import read_submission
from asyncjob.rest.submission import BatchItem, BatchReport, Refusal, Submission, Submitted
from asyncjob_gateway.problems.translate import refusal_of

AT_ONCE: Final = 16

Submit = Callable[[Submission], Awaitable[Submitted]]


async def submit_all(jobs: Sequence[Any], submit: Submit) -> BatchReport:
    """Return what became of each, in their order."""
    room = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_one(job, f"jobs.{number}", submit, room))
            for number, job in enumerate(jobs)
        ]
    items = [task.result() for task in tasks]
    accepted = sum(item.job is not None for item in items)
    return BatchReport(items=items, accepted=accepted, refused=len(items) - accepted)


async def _one(job: Any, prefix: str, submit: Submit, room: asyncio.Semaphore) -> BatchItem:
    async with room:
        try:
            return BatchItem(job=await submit(read_submission(job, prefix=prefix)))
        except AsyncJobError as error:
            return BatchItem(error=_told(error))


def _told(error: AsyncJobError) -> Refusal:
    refused = refusal_of(error)
    return Refusal(
        status=refused.kind.status,
        title=refused.kind.title,
        detail=refused.detail,
        job_id=refused.job_id,
    )
