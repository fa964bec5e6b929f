"""Collections of all namespaces in memory, read in pages and written once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from asyncjob.client.connection import Answer, Call
from asyncjob.errors import AlreadyExistsError, ApiError, ExpiredError, ObjectNotFoundError
from support.fake_api import MemoryConnection, Step

Obj = dict[str, Any]
API = "/apis/asyncjob.dev/v1alpha1"
PLURALS = {"AsyncQueue": "asyncqueues", "AsyncCronJob": "asynccronjobs", "AsyncJob": "asyncjobs"}


@dataclass
class FakeCluster(MemoryConnection):
    """Objects by path, in their order of creation.

    `missing` namespaces are not there, `forgotten` so many times a list cannot be gone on with,
    `lose` answers to writes are lost once these were carried out. `refuse` says why one is refused.
    """

    objects: dict[str, Obj] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    forgotten: int = 0
    lose: int = 0
    refuse: Callable[[Obj], ApiError | None] = lambda _: None
    now: float = 0.0

    def do(self, step: Step) -> Answer:
        """Do one step."""
        self.now += getattr(step, "seconds", 0.0)
        if not isinstance(step, Call):
            return Answer()
        self.calls.append(step)
        return Answer(self._carry_out(step, dict(step.params)))

    def put(self, *objects: Obj) -> "FakeCluster":
        """Store objects as they are."""
        for obj in objects:
            meta = obj["metadata"]
            path = f"{API}/namespaces/{meta['namespace']}/{PLURALS[obj['kind']]}/{meta['name']}"
            self.objects[path] = obj
        return self

    def of(self, kind: str) -> dict[str, Obj]:
        """Return the objects of a kind by name."""
        found = [obj for path, obj in self.objects.items() if f"/{PLURALS[kind]}/" in path]
        return {obj["metadata"]["name"]: obj for obj in found}

    def _carry_out(self, call: Call, params: dict[str, str]) -> Obj:
        if call.method == "POST":
            return self._create(call.path, call.body, params)
        if call.path in self.objects:
            return self.objects[call.path]
        if call.path.rsplit("/", 1)[-1] in PLURALS.values():
            return self._list(call.path, params)
        raise ObjectNotFoundError(f"no {call.path}", status=404)

    def _create(self, path: str, body: Any, params: dict[str, str]) -> Obj:
        meta = body["metadata"]
        if meta["namespace"] in self.missing:
            raise ObjectNotFoundError(f'namespaces "{meta["namespace"]}" not found', status=404)
        if refused := self.refuse(body):
            raise refused
        place = f"{path}/{meta['name']}"
        if place in self.objects:
            raise AlreadyExistsError(f"{meta['name']} exists", status=409)
        made = {**body, "metadata": {**meta, "uid": f"new-{meta['name']}"}}
        if "dryRun" not in params:
            self.objects[place] = made
        if self.lose:
            self.lose -= 1
            raise LostAnswerError("lost")
        return made

    def _list(self, path: str, params: dict[str, str]) -> Obj:
        begin, limit = int(params.get("continue", "0")), int(params["limit"])
        if begin and self.forgotten:
            self.forgotten -= 1
            raise ExpiredError("too old", status=410)
        plural, inside = path.rsplit("/", 1)[-1], path.removesuffix(path.rsplit("/", 1)[-1])
        found = [
            obj
            for key, obj in self.objects.items()
            if key.startswith(inside) and f"/{plural}/" in key
        ]
        rest = str(begin + limit) if begin + limit < len(found) else ""
        return {"metadata": {"continue": rest}, "items": found[begin : begin + limit]}


class LostAnswerError(ApiError):
    """The answer was lost."""

    retryable = True
