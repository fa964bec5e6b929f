"""A client that lists all jobs straight on Kubernetes, measured; prints how many and the memory.

Arguments: kubeconfig and namespace.
"""

import asyncio
import os
import sys

from asyncjob.client import AsyncKubernetesJobsClient
from support.programs.loop_watch import peak_mib, watch_loop


async def _list(kubeconfig: str, namespace: str) -> None:
    async with await AsyncKubernetesJobsClient.connect(kubeconfig, namespace) as jobs:
        count = 0
        async for _ in jobs.list():
            count += 1
    print(count, peak_mib(os.getpid()))  # noqa: T201  # this is what it is run for


if __name__ == "__main__":
    watch_loop()
    asyncio.run(_list(*sys.argv[1:]))
