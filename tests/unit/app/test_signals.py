"""What a handler gets of a signal that its worker could not take in."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import TypeAdapter

from asyncjob.app import SignalInvalid
from asyncjob.app.park_gate import ParkGate
from asyncjob.app.waits import SignalAnswer, SignalCall, Waits
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.signals import readable_signals


def waited_for(payload: Any) -> SignalCall[Any]:
    signals: Any = readable_signals({"go": {"sentBy": "ada", "payload": payload}})
    answered: Future[JsonObject] = Future()
    answered.set_result(SignalAnswer(signals["go"]).to_json())
    store: Any = SimpleNamespace(signal=lambda *_: answered, give_up=None)
    return SignalCall(Waits({}, store, ParkGate()), "go", TypeAdapter(Any), None)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("payload", "why"),
    [(nested(70), "nested deeper than 64 levels"), ("x" * 17_000, "has 17002 bytes")],
)
async def test_a_signal_that_is_too_much_is_refused_in_the_name_of_who_sent_it(
    payload: Any, why: str
) -> None:
    expected = rf"'go' from ada cannot be taken: its payload .*{why}.*; wait for .* another name"
    with pytest.raises(SignalInvalid, match=expected):
        await waited_for(payload)
    with pytest.raises(SignalInvalid, match=expected):
        await asyncio.to_thread(waited_for(payload).result)


async def test_one_that_is_not_is_given_to_the_handler() -> None:
    assert await waited_for([1]) == [1]
