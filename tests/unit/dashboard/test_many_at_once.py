import asyncio

from asyncjob.client.errors import NotADeadLetterError
from asyncjob_gateway.dashboard.pages.dead_letters import BULK_CONCURRENCY, apply_to_each


async def test_each_is_told_of_by_itself() -> None:
    async def act(job_id: str) -> None:
        if job_id == "b":
            raise NotADeadLetterError("b is Queued")

    told = await apply_to_each(("a", "b", "c"), act, asyncio.Event())

    assert told == {"a": "", "b": "b is Queued", "c": ""}


async def test_what_a_request_has_no_time_for_is_not_begun() -> None:
    begun, late, go_on = list[str](), asyncio.Event(), asyncio.Event()

    async def act(job_id: str) -> None:
        begun.append(job_id)
        if len(begun) == BULK_CONCURRENCY:
            late.set()
            go_on.set()
        await go_on.wait()

    names = [f"job-{number}" for number in range(20)]

    told = await apply_to_each(names, act, late)

    assert begun == names[:BULK_CONCURRENCY]
    assert told == dict.fromkeys(begun, "")
