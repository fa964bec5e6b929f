"""What a scenario needs of a cluster, fake or real."""

from collections.abc import Callable
from typing import Any, Protocol

from asyncjob.names import API_VERSION, ARRAY_KIND

Obj = dict[str, Any]
Condition = Callable[[Obj], object]


def array_manifest(name: str, type_: str, items: Any, spec: Obj) -> Obj:
    """Return an array of so many items, of a list of them, or of whatever else is given."""
    source = {"count": items} if isinstance(items, int) else items
    return {
        "apiVersion": API_VERSION,
        "kind": ARRAY_KIND,
        "metadata": {"name": name},
        "spec": {
            "type": type_,
            "items": {"inline": source} if isinstance(source, list) else source,
            **spec,
        },
    }


class Cluster(Protocol):
    """One scenario's view: jobs by name, in a queue of the scenario's own if it wants one."""

    queue: str

    def full_name(self, name: str) -> str:
        """Return what an object is called in its namespace, which other scenarios share."""

    async def create(self, name: str, type_: str, payload: Any = None, **spec: Any) -> None:
        """Create a job as kubectl does; raises InvalidError if it is refused."""

    async def change(self, name: str, **spec: Any) -> None:
        """Change fields of its spec; raises InvalidError if that is refused."""

    async def tell(self, name: str, signal: str, payload: Any) -> bool:
        """Send it a signal as a client does; return whether it was taken."""

    async def get(self, name: str) -> Obj:
        """Return the job."""

    async def until(self, name: str, condition: Condition) -> Obj:
        """Return the job once the condition holds for its status."""

    async def crash_worker_of(self, name: str) -> None:
        """Kill the process that runs the job; another one takes its place."""

    async def drain_worker_of(self, name: str) -> None:
        """Have the worker of the job shut down without grace; another one takes its place."""

    async def create_array(self, name: str, type_: str, items: Any, **spec: Any) -> None:
        """Create an array of so many items, or of these; raises InvalidError if it is refused."""

    async def change_array(self, name: str, **spec: Any) -> None:
        """Change fields of its spec; raises InvalidError if that is refused."""

    async def until_array(self, name: str, condition: Condition) -> Obj:
        """Return the array once the condition holds for its status."""

    async def chunks_of(self, name: str) -> list[Obj]:
        """Return the chunks of an array that there are."""

    def time(self, seconds: float) -> str:
        """Return the time so many seconds from now."""
