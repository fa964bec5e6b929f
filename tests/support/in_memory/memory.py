"""The API server in memory behind the clients that tests of a real one use."""

import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from asyncjob_simulation.apiserver import ApiServer, Request
from asyncjob_simulation.apiserver.errors import StatusError
from asyncjob_simulation.apiserver.installation import install
from asyncjob_simulation.apiserver.resources import Target
from support.cluster.api import Answer, Client

BEGINNING = 1_800_000_000.0
"""2027-01-15T08:00:00Z, when time begins in memory."""

Object = dict[str, Any]
_INSTALLED = {"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io"}


@dataclass
class Clock:
    """Epoch seconds in the test's hands."""

    now: float = BEGINNING

    def __call__(self) -> float:
        return self.now


def memory_server(clock: Callable[[], float] | None = None, *, seed: int = 0) -> ApiServer:
    """Return an API server in memory with everything installed that the project ships."""
    return ApiServer(clock or Clock(), seed=seed, like=_installed())


@cache
def _installed() -> ApiServer:
    server = ApiServer(Clock())
    install(server)
    return server


@dataclass(frozen=True)
class MemoryClient(Client):
    """An identity on an API server in memory."""

    server: ApiServer = field(kw_only=True)

    def send(
        self,
        method: str,
        path: str,
        data: bytes | None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request whose body is bytes already."""
        asked = {**(dict(self.query) if method != "GET" else {}), **(query or {})}
        headers = dict(self.headers)
        request = Request(
            method, path, asked, data or b"", content_type, accept, self.token, headers
        )
        answer = self.server.handle(request)
        warnings = tuple(f"299 - {json.dumps(words)}" for words in answer.warnings)
        return Answer(answer.status, json.loads(answer.body), warnings)


def memory_admin(server: ApiServer) -> MemoryClient:
    """Act as who may do everything."""
    return MemoryClient("https://memory", Path(), server.admin_token, server=server)


class Stored(MutableMapping[str, Object]):
    """The objects of a cluster by path, but for what is installed there."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def put(self, path: str, obj: Mapping[str, Any]) -> Object:
        """Store an object past all rules, with the defaults that a reader would see."""
        target = self._target(path)
        resource = target.resource
        filled = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        known = {"name": target.name, "namespace": target.namespace, "uid": f"uid-{target.name}"}
        filled["metadata"] = {**known, **obj["metadata"]}
        if resource.schema is not None:
            filled = resource.schema.defaulted(filled)
        return self._server.storage.put(resource.key, (target.namespace, target.name), filled)

    def __getitem__(self, path: str) -> Object:
        try:
            return self._server.get(path)
        except StatusError as error:
            raise KeyError(path) from error

    def __setitem__(self, path: str, obj: Object) -> None:
        self.put(path, obj)

    def __delitem__(self, path: str) -> None:
        self[path]
        target = self._target(path)
        self._server.storage.remove(target.resource.key, (target.namespace, target.name))

    def __iter__(self) -> Iterator[str]:
        for (group, plural), kind in self._server.storage:
            if group in _INSTALLED or plural == "namespaces":
                continue
            root = f"/apis/{group}" if group else "/api"
            version = "v1alpha1" if group == "asyncjob.dev" else "v1"
            for namespace, name in kind.keys:
                yield f"{root}/{version}/namespaces/{namespace}/{plural}/{name}"

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _target(self, path: str) -> Target:
        return self._server.registry.resolve(path)
