"""Does the steps of a client's operation with the gateway's own connections, and looks on."""

from collections.abc import Awaitable, Callable

from asyncjob.client.on_kubernetes.world import KubeWorld
from asyncjob.client.steps import Answer, Call, Step
from asyncjob.kube import KubeSession

ResponseHook = Callable[[Call, Answer], Awaitable[None]]
"""Called with each answer before the operation gets it; what it raises, the operation gets."""


class HookedWorld:
    """The API server, where somebody looks at each answer first."""

    def __init__(self, session: KubeSession, hook: ResponseHook) -> None:
        self._world = KubeWorld(session)
        self._hook = hook

    async def do(self, step: Step) -> Answer:
        """Do it; raises AsyncJobError."""
        answer = await self._world.do(step)
        if isinstance(step, Call):
            await self._hook(step, answer)
        return answer

    async def aclose(self) -> None:
        """Close the stream, if one is open."""
        await self._world.aclose()
