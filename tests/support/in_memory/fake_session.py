"""A session to the API server in memory: what was stored by hand, what was asked, what fails."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from asyncjob.kube import KubeSession
from asyncjob_simulation.apiserver import ApiServer, MemoryAccess, MemoryConnections
from asyncjob_simulation.apiserver.identities import account_identity
from support.in_memory.memory import Clock, Stored, memory_server

Object = dict[str, Any]

NAMESPACES = ("ns", "other", "home")
OPERATOR = "asyncjob-operator"


class FakeSession(KubeSession):
    """The operator's session, in a cluster of its own unless one is given.

    `put` stores objects by path past all rules; what the session itself writes is judged by them.
    `fail` maps a method and path to an error, raised always. `before_write` is called with the path
    of each write, to let somebody else be quicker.
    """

    def __init__(
        self, objects: Mapping[str, Object] | None = None, *, server: ApiServer | None = None
    ) -> None:
        self.server: ApiServer = server or operator_cluster(Clock())
        token = self.server.tokens.issue(account_identity("ns", OPERATOR))
        access = MemoryAccess(MemoryConnections(self.server), token, "ns")
        super().__init__(access, field_manager=OPERATOR)
        self.objects = Stored(self.server)
        self.requests: list[tuple[str, str, Any]] = []
        self.failures: dict[tuple[str, str], Exception] = {}
        self.before_write: Any = lambda _path: None
        for path, obj in (objects or {}).items():
            self.put(path, obj)

    @property
    def writes(self) -> list[tuple[str, str, Any]]:
        """The requests that were to change something."""
        return [request for request in self.requests if request[0] != "GET"]

    def fail(self, method: str, path: str, error: Exception) -> None:
        """Answer such requests with an error from now on."""
        self.failures[method, path] = error

    def put(self, path: str, obj: Mapping[str, Any]) -> Object:
        """Store an object as a new version."""
        return self.objects.put(path, obj)

    async def get(self, path: str, params: Any = None) -> Any:
        self._note("GET", path, None)
        return await super().get(path, params)

    async def create(self, path: str, body: Any, params: Any = None) -> Any:
        self._note("POST", path, body)
        return await super().create(path, body, params)

    async def merge_patch(self, path: str, body: Any, params: Any = None, **more: Any) -> Any:
        self._note("PATCH", path, body)
        return await super().merge_patch(path, body, params, **more)

    async def delete(self, path: str, body: Any = None) -> Any:
        self._note("DELETE", path, body)
        return await super().delete(path, body)

    async def pages(
        self, path: str, params: Any = None, *, accept: str = "application/json"
    ) -> AsyncIterator[Any]:
        self._note("GET", path, None)
        async for page in super().pages(path, params, accept=accept):
            yield page

    def _note(self, method: str, path: str, body: Any) -> None:
        self.requests.append((method, path, body))
        if method != "GET":
            self.before_write(path)
        if (method, path) in self.failures:
            raise self.failures[method, path]


def operator_cluster(clock: Callable[[], float]) -> ApiServer:
    """Return a cluster in which the operator has the roles that the chart gives it."""
    server = memory_server(clock)
    for namespace in NAMESPACES:
        server.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    server.install(_bindings())
    return server


def _bindings() -> Iterator[Object]:
    subject = {"kind": "ServiceAccount", "name": OPERATOR, "namespace": "ns"}
    for role in (OPERATOR, f"{OPERATOR}-election", f"{OPERATOR}-install"):
        yield {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [subject],
        }
