"""What keeps the processes of a cell busy."""

import asyncio
import concurrent.futures
import contextlib
import threading
from types import SimpleNamespace
from typing import Self

import pytest

from asyncjob_chaos import load as load_module
from asyncjob_chaos import orders
from asyncjob_chaos.load import Load, LoadKind


class Unanswered:
    """A client whose submissions are never answered."""

    def __init__(self, *_: object, **__: object) -> None:
        self.asked = threading.Event()
        self.waiting = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def submit(self, _submission: object) -> None:
        self.waiting += 1
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.waiting -= 1


def test_a_load_that_is_closed_in_a_burst_leaves_nothing_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Unanswered()

    async def connect(*_: object, **__: object) -> Unanswered:
        return client

    monkeypatch.setattr(load_module, "AsyncJobsClient", Unanswered)
    monkeypatch.setattr(load_module, "AsyncKubernetesJobsClient", SimpleNamespace(connect=connect))
    slow = LoadKind("slow", rate=0.001, at_first=0, order=orders.plain)
    load = Load(slow, "default", "default", "", "")
    load.start()
    burst = threading.Thread(target=_submit_burst, args=(load,), daemon=True)
    burst.start()
    assert client.asked.wait(30)
    load.close()
    burst.join(30)
    assert not burst.is_alive()
    assert client.waiting == 0


def _submit_burst(load: Load) -> None:
    with contextlib.suppress(concurrent.futures.CancelledError):
        load.submit_burst(3)
