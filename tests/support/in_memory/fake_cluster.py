"""The API server in memory as the command line sees it: objects of several namespaces."""

from dataclasses import dataclass
from typing import Any

from asyncjob.client.connection import Answer, Call
from asyncjob.errors import ObjectNotFoundError
from asyncjob.names import collection_path
from support.in_memory.fake_api import NAMESPACE, FakeApi, Step

Obj = dict[str, Any]
PLURALS = {
    "AsyncQueue": "asyncqueues",
    "AsyncCronJob": "asynccronjobs",
    "AsyncArray": "asyncarrays",
    "AsyncJob": "asyncjobs",
}
NAMESPACES = ("other", "there", "team-a", "team-b")


@dataclass
class FakeCluster(FakeApi):
    """A `FakeApi` with more namespaces than one.

    As often as `forgotten` says, the server has forgotten the moment of a list that goes on.
    `unknown` is the plural of a type that it does not have.
    """

    forgotten: int = 0
    unknown: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in NAMESPACES:
            self.server.create("/api/v1/namespaces", {"metadata": {"name": name}})

    def do(self, step: Step) -> Answer:
        """Do one step."""
        if self.forgotten and isinstance(step, Call) and "continue" in dict(step.params):
            self.forgotten -= 1
            self._forget()
        if self.unknown and isinstance(step, Call) and step.path.endswith(f"/{self.unknown}"):
            raise ObjectNotFoundError("the server could not find the requested resource")
        return super().do(step)

    def store(self, *objects: Obj) -> None:
        """Store objects past all rules."""
        for obj in objects:
            meta = obj["metadata"]
            collection = collection_path(meta["namespace"], PLURALS[obj["kind"]])
            self.objects.put(f"{collection}/{meta['name']}", obj)

    def of(self, kind: str) -> dict[str, Obj]:
        """Return the objects of a kind by name."""
        found = [obj for path, obj in self.objects.items() if f"/{PLURALS[kind]}/" in path]
        return {obj["metadata"]["name"]: obj for obj in found}

    def sent(self, kind: str) -> dict[str, Obj]:
        """Return what was sent to be created of a kind, by name, in that order."""
        bodies: list[Any] = [call.body for call in self.writes]
        return {body["metadata"]["name"]: body for body in bodies if body["kind"] == kind}

    def remove_namespace(self) -> None:
        """Remove the namespace of the tests."""
        self.server.storage.remove(("", "namespaces"), ("", NAMESPACE))

    def _forget(self) -> None:
        """Let something change, and only the newest version be kept."""
        self.server.create("/api/v1/namespaces", {"metadata": {"generateName": "later-"}})
        self.server.storage.compact()
