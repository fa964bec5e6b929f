"""A gateway that stands still once the API server has created a job, before anyone hears of it.

Run as a module in the command's stead; says so by a file, whose path STALLED_FILE gives.
"""

import asyncio
import os
from pathlib import Path

from asyncjob.kube import KubeSession
from asyncjob.kube.transport import KubeRequest
from asyncjob_gateway.cli import main

STALLED = Path(os.environ["STALLED_FILE"])

_fetch = KubeSession.fetch


async def _stalling(self: KubeSession, request: KubeRequest) -> bytes:
    answer = await _fetch(self, request)
    if request.method == "POST" and request.path.endswith("/asyncjobs"):
        STALLED.touch()  # noqa: ASYNC240  # the last thing it does
        await asyncio.Event().wait()
    return answer


if __name__ == "__main__":
    KubeSession.fetch = _stalling  # type: ignore[method-assign]  # the fault that is tried
    main()
