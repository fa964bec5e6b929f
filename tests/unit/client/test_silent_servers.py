"""A wait ends in time although the server takes the connection and then says nothing."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from asyncjob.client import (
    AsyncJobsClient,
    AsyncKubernetesJobsClient,
    JobsClient,
    KubernetesJobsClient,
)
from asyncjob.client.errors import WaitTimeoutError

WAIT = 0.5
AT_LATEST = WAIT + 3.0


@pytest.fixture
def silent() -> Iterator[str]:
    """Listen without ever answering; the kernel itself accepts the connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def kubeconfig(silent: str, tmp_path: Path) -> str:
    """Name it as a cluster."""
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
                "clusters": [{"name": "it", "cluster": {"server": silent}}],
                "users": [{"name": "me", "user": {}}],
            }
        )
    )
    return str(path)


def by_rest(url: str, _: str) -> None:
    with JobsClient(url) as jobs:
        jobs.wait("one", WAIT)


def by_rest_async(url: str, _: str) -> None:
    async def wait() -> None:
        async with AsyncJobsClient(url) as jobs:
            await jobs.wait("one", WAIT)

    asyncio.run(wait())


def on_kubernetes(_: str, kubeconfig: str) -> None:
    with KubernetesJobsClient.connect(kubeconfig) as jobs:
        jobs.wait("one", WAIT)


def on_kubernetes_async(_: str, kubeconfig: str) -> None:
    async def wait() -> None:
        async with await AsyncKubernetesJobsClient.connect(kubeconfig) as jobs:
            await jobs.wait("one", WAIT)

    asyncio.run(wait())


@pytest.mark.parametrize(
    "wait",
    [by_rest, by_rest_async, on_kubernetes, on_kubernetes_async],
    ids=lambda wait: wait.__name__,
)
def test_a_wait_ends_in_time(
    wait: Callable[[str, str], None], silent: str, kubeconfig: str
) -> None:
    began = time.monotonic()
    with pytest.raises(WaitTimeoutError, match="could not be read"):
        wait(silent, kubeconfig)
    assert time.monotonic() - began < AT_LATEST
