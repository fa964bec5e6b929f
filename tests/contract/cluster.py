"""What a scenario needs of a cluster, fake or real."""

from collections.abc import Callable
from typing import Any, Protocol

Obj = dict[str, Any]
Condition = Callable[[Obj], object]


class Cluster(Protocol):
    """One scenario's view: jobs by name, in a queue of the scenario's own if it wants one."""

    queue: str

    async def create(self, name: str, type_: str, payload: Any = None, **spec: Any) -> None:
        """Create a job as kubectl does; raises InvalidError if it is refused."""

    async def change(self, name: str, **spec: Any) -> None:
        """Change fields of its spec; raises InvalidError if that is refused."""

    async def get(self, name: str) -> Obj:
        """Return the job."""

    async def until(self, name: str, condition: Condition) -> Obj:
        """Return the job once the condition holds for its status."""

    async def crash_worker_of(self, name: str) -> None:
        """Kill the process that runs the job; another one takes its place."""

    async def drain_worker_of(self, name: str) -> None:
        """Have the worker of the job shut down without grace; another one takes its place."""

    def time(self, seconds: float) -> str:
        """Return the time so many seconds from now."""
