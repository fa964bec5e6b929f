"""Many submissions at once: each is read, done or refused by itself.

Those that share a name, a key or an id are done one after the other, so that the first one wins.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from asyncjob.errors import AsyncJobError
from asyncjob.intake.reading import read_submission
from asyncjob.rest.submission import BatchItem, BatchReport, Refusal, Submission, Submitted
from asyncjob_gateway.problems.translate import to_refused_error

BATCH_CONCURRENCY: Final = 16

Submit = Callable[[Submission], Awaitable[Submitted]]


async def submit_all(jobs: Sequence[Any], submit: Submit) -> BatchReport:
    """Return what became of each, in their order."""
    room = asyncio.Semaphore(BATCH_CONCURRENCY)
    turns: Mapping[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def one(job: Any, prefix: str) -> BatchItem:
        async with room:
            try:
                submission = read_submission(job, prefix=prefix)
                async with AsyncExitStack() as stack:
                    for identity in _shared_identities(submission):
                        await stack.enter_async_context(turns[identity])
                    return BatchItem(job=await submit(submission))
            except AsyncJobError as error:
                return BatchItem(error=_to_refusal(error))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(job, f"jobs.{number}")) for number, job in enumerate(jobs)]
    items = [task.result() for task in tasks]
    accepted = sum(item.job is not None for item in items)
    return BatchReport(items=items, accepted=accepted, refused=len(items) - accepted)


def _shared_identities(submission: Submission) -> list[str]:
    """Return what it may share with others, in one order for all: no two wait for each other."""
    named = (
        ("name", submission.name),
        ("key", submission.idempotency_key),
        ("id", submission.deduplication_id),
    )
    return sorted(f"{kind}/{value}" for kind, value in named if value is not None)


def _to_refusal(error: AsyncJobError) -> Refusal:
    refused = to_refused_error(error)
    return Refusal(
        status=refused.kind.status,
        title=refused.kind.title,
        detail=refused.detail,
        job_id=refused.job_id,
    )
