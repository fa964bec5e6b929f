"""Runs loops of the project until something has happened, or one of them says it may not."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from structlog.testing import capture_logs

PATIENCE = 15.0
LOOK_SECONDS = 0.02


class BrokenError(Exception):
    """What was to happen cannot; the text says why not, in the words of who complained."""


async def happens(effect: Callable[[], object], *loops: Callable[[], Awaitable[object]]) -> None:
    """Run the loops until the effect is there; raises BrokenError once one complains of a right.

    A loop's own error is raised as it is. A complaint counts although the effect came about:
    what was refused may have been reached by trying again in another way.
    """
    with capture_logs() as said, _kopf(said):
        tasks = [asyncio.ensure_future(loop()) for loop in loops]
        try:
            async with asyncio.timeout(PATIENCE):
                while not effect():
                    _check(said)
                    _raise_of(tasks)
                    await asyncio.sleep(LOOK_SECONDS)
            _check(said)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _kopf(said: list[MutableMapping[str, Any]]) -> Iterator[None]:
    """Hear what kopf says, too, which tries again for ever."""

    class ListHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append({"event": record.getMessage()})

    handler, logger = ListHandler(), logging.getLogger("kopf")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _check(said: Sequence[Mapping[str, Any]]) -> None:
    for line in said:
        text = " ".join(f"{key}={value}" for key, value in line.items())
        if "forbidden" in text:
            raise BrokenError(text)


def _raise_of(tasks: Sequence["asyncio.Future[object]"]) -> None:
    for task in tasks:
        if task.done():
            task.result()
