"""Drives the operations of `asyncjob.client.on_kubernetes` with the gateway's own connections."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import orjson
from asyncjob.client.steps import Answer, Call, Pause, Step, Steps

from asyncjob.errors import AsyncJobError
from asyncjob.kube import KubeSession
from asyncjob.kube.transport import Request

T = TypeVar("T")

Look = Callable[[Call, Answer], Awaitable[None]]
"""Called with each answer before the operation gets it; what it raises, the operation gets."""


async def drive(steps: Steps[T], session: KubeSession, look: Look) -> T:
    """Return what the operation ends with; raises what it raises."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await _do(step, session, look)
            except AsyncJobError as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        done: T = end.value
        return done
    finally:
        steps.close()


async def _do(step: Step, session: KubeSession, look: Look) -> Answer:
    loop = asyncio.get_running_loop()
    if isinstance(step, Pause):
        await asyncio.sleep(step.seconds)
        return Answer(loop.time())
    assert isinstance(step, Call), "the gateway follows jobs by its own watch"
    data = None if step.body is None else orjson.dumps(step.body)
    request = Request(
        step.method, step.path, dict(step.params), data, step.content_type, step.accept
    )
    answer = Answer(loop.time(), await session.send(request))
    await look(step, answer)
    return answer
