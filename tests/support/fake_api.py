"""An API server in memory, as a connection of a client; time passes only in pauses."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import unquote

from asyncjob.client.connection import Answer, Call, Connection, NextEvent
from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ObjectNotFoundError,
    UnknownOutcomeError,
)
from asyncjob.lifecycle.phases import Phase
from support.builders import stored

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
    """Objects by path.

    `lose` answers are lost once their request was carried out, `refuse` requests fail before.
    `meanwhile` is called before each write, to let somebody else be quicker.
    """

    objects: dict[str, Obj] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    lose: int = 0
    refuse: int = 0
    meanwhile: Callable[[], None] = lambda: None
    events: list[Obj | None] = field(default_factory=list)
    listening: bool = True
    now: float = 0.0
    request_seconds: float = 0.0
    error: ApiError | None = None
    _version: int = 0

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

    @property
    def writes(self) -> list[Call]:
        """The requests that were to change something."""
        return [call for call in self.calls if call.method != "GET"]

    def put(self, obj: Obj) -> Obj:
        """Store a job."""
        path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{NAMESPACE}/asyncjobs"
        return self._store(f"{path}/{obj['metadata']['name']}", obj)

    def job(self, name: str) -> Obj:
        """Return a job."""
        path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{NAMESPACE}/asyncjobs/{name}"
        return self.objects[path]

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
        path, body = unquote(call.path), call.body
        if call.method == "POST":
            return self._create(path, body)
        if call.method == "PATCH":
            return self._patch(path, body)
        if path in self.objects:
            return self.objects[path]
        if path.rsplit("/", 1)[-1] in {"asyncjobs", "asyncqueues", "asynccronjobs", "leases"}:
            return self._list(path, dict(call.params))
        raise ObjectNotFoundError(f"no {path}", status=404)

    def _create(self, path: str, body: Any) -> Obj:
        name = body["metadata"]["name"]
        if f"{path}/{name}" in self.objects:
            raise AlreadyExistsError(f"{name} exists", status=409)
        made = stored(name, **body["spec"])
        return self._store(
            f"{path}/{name}",
            {
                **made,
                "kind": body["kind"],
                "metadata": {**made["metadata"], "uid": f"uid-{name}", **body["metadata"]},
            },
        )

    def _patch(self, path: str, body: Any) -> Obj:
        if path not in self.objects:
            raise ObjectNotFoundError(f"no {path}", status=404)
        obj = self.objects[path]
        version = body.get("metadata", {}).get("resourceVersion")
        if version not in (None, obj["metadata"]["resourceVersion"]):
            raise ConflictError("changed", status=409)
        changed = body.get("metadata", {}).get("labels", {})
        labels = {**obj["metadata"].get("labels", {}), **changed}
        kept = {name: value for name, value in labels.items() if value is not None}
        metadata = {**obj["metadata"], "labels": kept} if changed else obj["metadata"]
        spec = {**obj["spec"], **body["spec"]}
        return self._store(path, {**obj, "metadata": metadata, "spec": spec})

    def _list(self, path: str, params: dict[str, str]) -> Obj:
        found = [obj for key, obj in sorted(self.objects.items()) if key.startswith(f"{path}/")]
        labels = [term.split("=") for term in params.get("labelSelector", "").split(",") if term]
        fields = [term for term in params.get("fieldSelector", "").split(",") if term]
        found = [
            obj
            for obj in found
            if all(obj["metadata"].get("labels", {}).get(name) == value for name, value in labels)
            and all(_selected(obj, term) for term in fields)
        ]
        limit = int(params.get("limit", "1000"))
        return {"metadata": {"resourceVersion": str(self._version)}, "items": found[:limit]}

    def _store(self, path: str, obj: Obj) -> Obj:
        self._version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self._version)}
        self.objects[path] = {**obj, "metadata": metadata}
        return self.objects[path]


def _selected(obj: Obj, term: str) -> bool:
    path, _, wanted = term.partition("=")
    unequal = path.endswith("!")
    value: Any = obj
    for step in path.rstrip("!").split("."):
        value = value.get(step, {})
    return (value == wanted) is not unequal


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
