"""Builders and a scripted session for tests of the worker's parts; no API server, no waiting.

The session stands beside the API server in memory for tests that are about which requests a part
makes and what it makes of one answer, be it an error at one certain request. What is about the
state of objects belongs on `support.in_memory.memory`.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from asyncjob import WorkerApp
from asyncjob.errors import ApiError, NoClusterError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.transport import KubeRequest
from asyncjob.lifecycle.claim import Candidate, LeaseHolder
from asyncjob.lifecycle.policy import BUILT_IN_POLICY
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.attempt import AttemptServices
from asyncjob_worker.execution.attempt_waits import MayPark
from asyncjob_worker.execution.hooks import HookEvents, Hooks
from asyncjob_worker.execution.payloads import ReadObject
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.step_writer import StepWriter
from asyncjob_worker.settings import Settings
from support.parts.callbacks import no_children

ME = LeaseHolder("worker-0", "pod-uid", "worker-0/1")
NOW = "2026-01-01T00:00:00.000Z"
CLAIM = "c1"

Answer = JsonObject | Exception
Script = Answer | Callable[["Call"], Answer]


def candidate(name: str = "j", **changes: Any) -> Candidate:
    """Return a queued job as a worker sees it."""
    return Candidate(**{"name": name, "resource_version": "7", "type": "echo", **changes})


def status(**changes: Any) -> dict[str, Any]:
    """Return the status that our claim has led to."""
    base: dict[str, Any] = {
        "phase": "Running",
        "attempt": 1,
        "claim": CLAIM,
        "retries": 0,
        "crashes": 0,
        "releases": 0,
        "effective": BUILT_IN_POLICY.to_json(),
        "startTime": NOW,
        "lease": {
            "holder": ME.pod,
            "holderUID": ME.pod_uid,
            "worker": ME.worker,
            "acquireTime": NOW,
            "renewTime": NOW,
            "renewals": 0,
            "durationSeconds": 60,
        },
    }
    return {**base, **changes}


def job(
    *, name: str = "j", uid: str = "u1", spec: Mapping[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """Return a running job; `changes` are of its status."""
    metadata = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": "8"}
    return {
        "metadata": metadata,
        "spec": {"type": "echo", "queue": "default", **(spec or {})},
        "status": status(**changes),
    }


def held(*, sent_at: float | None = None, **changes: Any) -> HeldJob:
    """Return a job that we hold, claimed just now unless said otherwise."""
    return HeldJob.from_response(job(**changes), boottime() if sent_at is None else sent_at)


def an_app() -> WorkerApp:
    """Return an app with a handler for the type of the builders' jobs."""
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: Any, payload: Any) -> Any:
        return payload

    return app


async def no_cluster(_path: str) -> JsonObject:
    """Stand in for the API server where there is none."""
    raise NoClusterError


async def never_park(_: object) -> bool:
    """Refuse that jobs are parked."""
    return False


def attempt_services(
    settings: Settings | None = None,
    read_object: ReadObject = no_cluster,
    may_park: MayPark = never_park,
) -> AttemptServices:
    """Return what attempts share, for one at a time, without child jobs."""
    return AttemptServices.from_settings(
        settings or Settings(concurrency=1),
        read_object,
        no_children,
        record=None,
        step_writer=no_step_writer(),
        on_step_stored=ignore_step,
        may_park=may_park,
        server_time=time.time,
    )


def no_step_writer() -> StepWriter:
    """Return a writer of steps for jobs that have none."""
    return StepWriter(cast("KubeSession", None))


def ignore_step(_type: str, _seconds: float) -> None:
    """Take no note of a step."""


def no_hooks() -> HookEvents:
    """Return the events of a worker whose app has no hooks."""
    return HookEvents(Hooks(()), ME, "ns", Settings())


@dataclass(frozen=True)
class Call:
    """One request that the code under test has made."""

    verb: str
    path: str
    body: Any = None
    params: Mapping[str, str] = field(default_factory=dict)

    def operation(self, path: str) -> JsonObject | None:
        """Return the last operation of a JSON Patch on a path."""
        found = [item for item in self.body if item["path"] == path]
        return found[-1] if found else None


class ScriptedSession:
    """Answers requests from a script, in order; the last answer of a verb is given for ever.

    An exception is raised, a function is called with the request.
    """

    def __init__(self, **script: Sequence[Script]) -> None:
        self._script = {verb: list(answers) for verb, answers in script.items()}
        self.calls: list[Call] = []
        self.access = SimpleNamespace(namespace="ns", kubeconfig=None)

    @property
    def session(self) -> KubeSession:
        """Return itself, as what the code under test expects."""
        return cast("KubeSession", self)

    def made(self, verb: str) -> list[Call]:
        """Return the requests of a verb."""
        return [call for call in self.calls if call.verb == verb]

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> JsonObject:
        return await self._answer(Call("get", path, params=params or {}))

    async def send(self, request: KubeRequest) -> JsonObject:
        return await self._answer(Call("send", request.path, request, request.params))

    async def create(self, path: str, body: Any) -> JsonObject:
        return await self._answer(Call("create", path, body))

    async def merge_patch(
        self,
        path: str,
        body: Any,
        params: Mapping[str, str] | None = None,
        *,
        on_send: Callable[[], None] = lambda: None,
    ) -> JsonObject:
        on_send()
        return await self._answer(Call("merge_patch", path, body, params or {}))

    async def json_patch(self, path: str, operations: Any, **_: Any) -> JsonObject:
        return await self._answer(Call("json_patch", path, operations))

    async def _answer(self, call: Call) -> JsonObject:
        self.calls.append(call)
        await asyncio.sleep(0)
        answers = self._script.get(call.verb)
        assert answers, f"unexpected {call.verb} {call.path}"
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if callable(answer) and not isinstance(answer, BaseException):
            answer = answer(call)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Pauses:
    """Notes how long somebody wanted to wait, and waits not at all."""

    def __init__(self, limit: int = 100) -> None:
        self.seconds: list[float] = []
        self._limit = limit

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        assert len(self.seconds) < self._limit, "waits without end"
        await asyncio.sleep(0)


def refused(error: type[ApiError], message: str = "no") -> ApiError:
    """Return an error of the API server."""
    return error(message)
