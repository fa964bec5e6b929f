"""The steps of one attempt: kept in the job of the fake cluster, within the limits of a real one.

There is no object store: a result that a worker would offload is refused, as by a worker without
one.
"""

import concurrent.futures
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from asyncjob.app.errors import AttemptOverError, StepError, StepRefusedError
from asyncjob.app.outcomes import OFFLOAD_HINT
from asyncjob.free_json import normalize, size_of
from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.step_records import (
    inline_bytes,
    step_record,
    steps_of,
    why_no_room,
    why_not_inline,
)
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.handler_messages import ClusterCall, HandlerMessages
from asyncjob.testing.store import FakeJobStore

T = TypeVar("T")


def given_steps(results: Mapping[str, object], now: str) -> dict[str, Json]:
    """Return the records of steps that are done already, with these results."""
    values = {
        key: normalize(value, what=f"the result of step {key!r}") for key, value in results.items()
    }
    return {
        key: step_record(attempt=0, started=now, now=now, size=size_of(value), result=value)
        for key, value in values.items()
    }


class FakeSteps:
    """Keeps the results of one attempt's steps; called from the handler's thread.

    What is asked is done by the cluster in its turn, as a step of its own: a test can stop the
    handler there.
    """

    def __init__(
        self,
        store: FakeJobStore,
        clock: FakeClock,
        messages: HandlerMessages,
        name: str,
        attempt: int,
    ) -> None:
        self._store = store
        self._clock = clock
        self._messages = messages
        self._name = name
        self._attempt = attempt
        self._started: dict[str, str] = {}
        self._futures: list[concurrent.futures.Future[Any]] = []
        self._closed = False

    def begin(self, key: str) -> "concurrent.futures.Future[None]":
        """Check that the step may be taken and that the job has room for it."""
        return self._call_cluster(key, lambda: self._begin(key))

    def store(self, key: str, value: Json) -> "concurrent.futures.Future[None]":
        """Keep the result of a step that has been begun."""
        return self._call_cluster(key, lambda: self._keep(key, value))

    def load(self, key: str) -> "concurrent.futures.Future[Json]":
        """Refuse: nothing is offloaded here."""
        raise StepError(f"the kept result of step {key!r} is in a store, and there is none here")

    def close(self) -> None:
        """Keep nothing more: the attempt is over."""
        self._closed = True
        for future in self._futures:
            future.cancel()

    def _begin(self, key: str) -> None:
        if why := why_no_room(key, self._job_bytes()):
            raise StepRefusedError(why)
        self._started[key] = self._clock.text

    def _keep(self, key: str, value: Json) -> None:
        record, size = self._store.get(self._name), size_of(value)
        kept = steps_of(record.status)
        why = why_not_inline(key, size, inline=inline_bytes(kept), job_bytes=self._job_bytes())
        if why:
            raise StepRefusedError(why + OFFLOAD_HINT)
        added = step_record(
            attempt=self._attempt,
            started=self._started.pop(key),
            now=self._clock.text,
            size=size,
            result=value,
        )
        fields: dict[str, Json] = {"steps": {**kept, key: added}}
        self._store.change_status(record, {**fields, "lastUpdateTime": self._clock.text})

    def _job_bytes(self) -> int:
        whole: JsonObject = self._store.get(self._name).obj
        return size_of(whole)

    def _call_cluster(self, key: str, act: Callable[[], T]) -> "concurrent.futures.Future[T]":
        if self._closed:
            raise AttemptOverError(f"the attempt is over: step {key!r} is not taken")
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._futures.append(answer)

        def run() -> None:
            if answer.cancelled():
                return
            try:
                answer.set_result(act())
            except Exception as error:  # noqa: BLE001  # it is the handler's, whatever it is
                answer.set_exception(error)

        self._messages.add_call(ClusterCall(run))
        return answer
