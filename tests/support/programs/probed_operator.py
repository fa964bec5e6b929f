"""`asyncjob-operator` that writes into a file for how long its event loop was ever held, in s.

Counted in the loop's own CPU time between two turns of a timer, so that other processes on the
machine count for nothing.
"""

import asyncio
import os
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from asyncjob_operator import cli

HELD = Path(os.environ["OPERATOR_HELD_FILE"])
PAUSE = 0.002


class Probe:
    """Turns up in the loop again and again; `most` is for how long it ever was kept waiting."""

    def __init__(self) -> None:
        self.most = 0.0
        self._last = time.thread_time()

    def look(self) -> None:
        now = time.thread_time()
        if now - self._last > self.most:
            self.most = now - self._last
            HELD.write_text(f"{self.most:.4f}")
        self._last = time.thread_time()
        asyncio.get_running_loop().call_later(PAUSE, self.look)


def probed(serve: Any) -> Any:
    """Return the coroutine function with a probe beside it."""

    async def run(*given: Any) -> Any:
        Probe().look()
        coroutine: Coroutine[Any, Any, Any] = serve(*given)
        return await coroutine

    return run


if __name__ == "__main__":
    cli.run_operator = probed(cli.run_operator)  # type: ignore[attr-defined]
    cli.main()
