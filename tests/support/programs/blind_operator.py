"""`asyncjob-operator` that sees nothing more of jobs once it has listed them, and soon minds it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from asyncjob.errors import UnknownOutcomeError
from asyncjob.kube import WatchEvent
from asyncjob_operator import settings
from asyncjob_operator.cli import main
from asyncjob_operator.controllers import job_informer


async def watch_nothing(*_: Any, **__: Any) -> AsyncGenerator[WatchEvent]:
    """Hang, as a watch that nobody cuts off."""
    await asyncio.Event().wait()
    yield WatchEvent("BOOKMARK", {})


async def compare_nothing(*_: Any) -> Any:
    """Fail, as a list that is never answered."""
    raise UnknownOutcomeError("no answer")


PATCHES: tuple[tuple[Any, str, Any], ...] = (
    (job_informer, "watch", watch_nothing),
    (job_informer.JobResync, "run", compare_nothing),
    (settings, "BOOKMARK_SECONDS", 5.0),
)

if __name__ == "__main__":
    for module, name, replacement in PATCHES:
        setattr(module, name, replacement)
    main()
