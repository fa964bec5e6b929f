"""What keeps the processes of a cell busy."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Self

import pytest

from asyncjob.client.errors import ArrayExistsError, JobStateError, UnavailableError
from asyncjob_chaos import load as load_module
from asyncjob_chaos import orders
from asyncjob_chaos.judging.waits import SentSignal
from asyncjob_chaos.load import Load, LoadKind
from asyncjob_chaos.orders import Order, SignalOrder


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


class Answering:
    """A client that answers at once: signals as it is told to, and arrays but for one name."""

    def __init__(self, *signals: Exception | None) -> None:
        self.answers = [*signals]
        self.signals: list[tuple[str, object]] = []
        self.stored: list[str] = []
        """The signals that the job is found to have."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def submit(self, _submission: object) -> SimpleNamespace:
        return SimpleNamespace(id="job")

    async def submit_array(self, submission: Any) -> None:
        if submission.name == "array-1":
            raise ArrayExistsError("name: another array is called array-1")

    async def signal(self, _job: str, name: str, payload: object) -> None:
        self.signals.append((name, payload))
        if (answer := self.answers.pop(0)) is not None:
            raise answer

    async def get(self, _job: str) -> SimpleNamespace:
        return SimpleNamespace(signals=[SimpleNamespace(name=name) for name in self.stored])


def run_orders(
    monkeypatch: pytest.MonkeyPatch, direct: Answering, gateway: Answering, given: Sequence[Order]
) -> Load:
    """Have a load carry out these orders and no more."""

    async def connect(*_: object, **__: object) -> Answering:
        return direct

    monkeypatch.setattr(load_module, "AsyncJobsClient", lambda *_, **__: gateway)
    monkeypatch.setattr(load_module, "AsyncKubernetesJobsClient", SimpleNamespace(connect=connect))
    kind = LoadKind("few", rate=0.001, at_first=len(given), order=given.__getitem__)
    load = Load(kind, "default", "default", "", "")
    load.start()
    load.stop_submitting()
    load.close()
    return load


def signalled(*, in_time: bool = True) -> Order:
    return Order({"type": "any"}, signal=SignalOrder(0.0, in_time=in_time))


LOST = UnavailableError("no answer")
REFUSED = JobStateError("refused")


def test_a_signal_whose_answer_was_lost_is_repeated_by_the_other_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    direct, gateway = Answering(LOST), Answering(None)
    load = run_orders(monkeypatch, direct, gateway, [signalled()])
    assert direct.signals == gateway.signals == [("go", 0)]
    assert load.signals == [SentSignal("job", "go", 0, accepted=True, in_time=True)]


def test_a_signal_that_is_refused_because_it_is_there_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    direct, gateway = Answering(LOST), Answering(REFUSED)
    direct.stored = ["go"]
    load = run_orders(monkeypatch, direct, gateway, [signalled()])
    assert [one.accepted for one in load.signals] == [True]


def test_a_signal_that_is_refused_and_not_there_was_not_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    direct = Answering(REFUSED)
    load = run_orders(monkeypatch, direct, Answering(), [signalled(in_time=False)])
    assert load.signals == [SentSignal("job", "go", 0, accepted=False, in_time=False)]


def test_a_signal_that_nobody_answers_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    load = run_orders(monkeypatch, Answering(LOST, LOST), Answering(LOST), [signalled()])
    assert [one.accepted for one in load.signals] == [None]


def test_arrays_are_noted_apart_from_jobs_and_one_that_is_refused_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    array = Order({"type": "any", "items": {"count": 3}}, is_array=True)
    load = run_orders(monkeypatch, Answering(), Answering(), [array, array])
    assert [one.name for one in load.arrays] == ["array-0"]
    assert not load.accepted
    assert [one.partition(":")[0] for one in load.refused] == ["array-1"]


def _submit_burst(load: Load) -> None:
    with contextlib.suppress(concurrent.futures.CancelledError):
        load.submit_burst(3)
