"""An API server in memory, as a connection of a client; time passes only in pauses."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import unquote

import orjson

from asyncjob.client.connection import Answer, Call, Connection, NextEvent
from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient
from asyncjob.errors import ApiError, UnknownOutcomeError
from asyncjob.kube.transport import error_from_response, parse_object
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob_simulation.apiserver import ApiServer, Request
from support.in_memory.memory import Clock, Stored, memory_server

Obj = dict[str, Any]
NAMESPACE = "tests"
T = TypeVar("T")


@dataclass(frozen=True)
class Pause:
    """Somebody waits."""

    seconds: float


@dataclass(frozen=True)
class Listen:
    """Somebody opens a watch."""

    call: Call
    max_silence: float


@dataclass(frozen=True)
class Next:
    """Somebody waits for the watch's next event."""


Step = Call | Pause | Listen | Next


class MemoryConnection(Connection):
    """A connection whose steps are done at once, in memory."""

    now: float

    @abstractmethod
    def do(self, step: Step) -> Answer:
        """Do one step."""

    async def send(self, call: Call) -> Answer:
        """Answer a request."""
        return self.do(call)

    @asynccontextmanager
    async def stream(self, call: Call, max_silence: float) -> AsyncIterator[NextEvent]:
        """Open a watch."""
        self.do(Listen(call, max_silence))

        async def next_event() -> Any:
            return self.do(Next()).body

        yield next_event

    async def close(self) -> None:
        """End it."""

    def time(self) -> float:
        """Return the time of the memory."""
        return self.now

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        self.do(Pause(seconds))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run what never waits for anything real to its end, in plain code."""
    try:
        work.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    raise AssertionError("it waits for something that is not in memory")


def iterate(values: AsyncIterator[T]) -> Iterator[T]:
    """Yield what an async iterator yields, likewise."""
    try:
        while True:
            yield run(_next_of(values))
    except StopAsyncIteration:
        return


async def _next_of(values: AsyncIterator[T]) -> T:
    return await anext(values)


@dataclass
class FakeApi(MemoryConnection):
    """A client's connection to the API server in memory.

    `put` stores jobs past all rules; what the client itself writes is judged by them. `lose`
    answers are lost once their request was carried out, `refuse` requests fail before. `meanwhile`
    is called before each write, to let somebody else be quicker.
    """

    lose: int = 0
    refuse: int = 0
    meanwhile: Callable[[], None] = lambda: None
    events: list[Obj | None] = field(default_factory=list)
    listening: bool = True
    now: float = 0.0
    request_seconds: float = 0.0
    error: ApiError | None = None
    calls: list[Call] = field(default_factory=list)
    server: ApiServer = field(default_factory=lambda: memory_server(Clock()))
    date: datetime | None = None
    """The server's clock as it tells it with its answers."""

    def __post_init__(self) -> None:
        self.server.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.objects = Stored(self.server)

    def do(self, step: Step) -> Answer:
        """Do one step."""
        match step:
            case Call():
                return self._answer(step)
            case Pause(seconds=seconds):
                self.now += seconds
                return Answer()
            case Listen():
                self.calls.append(step.call)
                if not self.listening:
                    raise ApiError("no watching here", status=403)
                return Answer()
            case Next():
                return Answer(self.events.pop(0) if self.events else None)

    def server_time(self) -> float | None:
        """Return the server's clock once it has answered."""
        return self.date.timestamp() if self.date is not None and self.calls else None

    @property
    def writes(self) -> list[Call]:
        """The requests that were to change something."""
        return [call for call in self.calls if call.method != "GET"]

    def put(self, obj: Obj) -> Obj:
        """Store a job."""
        return self.objects.put(job_path(NAMESPACE, obj["metadata"]["name"]), obj)

    def job(self, name: str) -> Obj:
        """Return a job."""
        return self.objects[job_path(NAMESPACE, name)]

    def set(self, name: str, **status: Any) -> None:
        """Change a job's status."""
        obj = self.job(name)
        self.put({**obj, "status": {**obj["status"], **status}})

    def _answer(self, call: Call) -> Answer:
        self.calls.append(call)
        self.now += self.request_seconds
        if self.error is not None:
            raise self.error
        if self.refuse:
            self.refuse -= 1
            raise UnknownOutcomeError("refused")
        if call.method != "GET":
            self.meanwhile()
        body = self._carry_out(call)
        if self.lose and call.method != "GET":
            self.lose -= 1
            raise UnknownOutcomeError("lost")
        return Answer(body)

    def _carry_out(self, call: Call) -> Obj:
        request = Request(
            call.method,
            unquote(call.path),
            dict(call.params),
            orjson.dumps(call.body),
            call.content_type,
            accept=call.accept,
            token=self.server.admin_token,
        )
        response = self.server.handle(request)
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise error_from_response(response.status, response.body)
        return dict(parse_object(response.body))


def ended(api: FakeApi, name: str, phase: Phase = Phase.SUCCEEDED) -> None:
    """Let a job come to its end."""
    api.set(name, phase=phase.value, completionTime="2026-01-01T00:00:09Z")


def client_of(
    api: Connection,
    *,
    patience: float = 30.0,
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC),
    new_id: Callable[[], str] = lambda: "id",
    store: Any = None,
) -> AsyncKubernetesJobsClient:
    """Return a client straight on this server."""
    return AsyncKubernetesJobsClient(
        api, NAMESPACE, patience=patience, store=store, clock=lambda: now, new_id=new_id
    )
