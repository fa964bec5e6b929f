"""What people do with kubectl and with clients straight on Kubernetes."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asyncjob.client import AsyncKubernetesJobsClient
from asyncjob.lifecycle.phases import Phase
from support.objects import builders
from support.rights.happening import LOOK_SECONDS, PATIENCE, BrokenError
from support.rights.preparation import create_cron_job, create_queue, life, read_job
from support.rights.principals import Principal
from support.rights.probes.probe import ProbeSetup, Run

Preparation = Callable[[Principal, str], Any]


async def _kubectl(
    principal: Principal, setup: ProbeSetup, *arguments: str, lines: int = 0, manifest: Any = None
) -> list[str]:
    """Return what kubectl prints: all, or so many lines of what it would go on with for ever."""
    process = await asyncio.create_subprocess_exec(
        str(setup.kubectl),
        f"--kubeconfig={principal.kubeconfig}",
        f"--cache-dir={principal.kubeconfig.parent / 'discovery'}",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            return await _output(process, lines, json.dumps(manifest).encode())
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _output(process: asyncio.subprocess.Process, lines: int, sent: bytes) -> list[str]:
    assert process.stdout
    if lines:
        found = [(await process.stdout.readline()).decode() for _ in range(lines)]
        if all(found):
            return found
    out, complaint = await process.communicate(sent)
    if process.returncode or lines:
        raise BrokenError(complaint.decode())
    return out.decode().splitlines()


_PLURALS = {"aa": "asyncarrays", "acj": "asynccronjobs", "aq": "asyncqueues"}


def watches(kind: str, prepare: Preparation) -> Run:
    """Return a probe that watches: the table's head and one row are listed, a change comes next."""

    async def run(principal: Principal, setup: ProbeSetup, name: str) -> None:
        made = prepare(principal, name)
        path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{principal.namespace}"
        plural = _PLURALS[kind]
        stop = threading.Event()

        def touch() -> None:
            number = 0
            while not stop.wait(0.05):
                number += 1
                labels = {"metadata": {"labels": {"touched": str(number)}}}
                principal.admin.merge(f"{path}/{plural}/{made['metadata']['name']}", labels)

        toucher = threading.Thread(target=touch)
        toucher.start()
        selector = f"--field-selector=metadata.name={name}"
        try:
            await _kubectl(principal, setup, "get", kind, selector, "--watch", lines=4)
        finally:
            stop.set()
            toucher.join()

    return run


def deletes(kind: str, prepare: Preparation) -> Run:
    """Return a probe that deletes."""

    async def run(principal: Principal, setup: ProbeSetup, name: str) -> None:
        prepare(principal, name)
        await _kubectl(principal, setup, "delete", kind, name, "--wait=false")

    return run


async def creates_queue(principal: Principal, setup: ProbeSetup, name: str) -> None:
    await _kubectl(principal, setup, "create", "-f", "-", manifest=builders.queue(name))


async def creates_cron_job(principal: Principal, setup: ProbeSetup, name: str) -> None:
    await _kubectl(principal, setup, "create", "-f", "-", manifest=builders.cron_job(name))


async def replaces_queue(principal: Principal, setup: ProbeSetup, name: str) -> None:
    await _kubectl(principal, setup, "replace", "-f", "-", manifest=create_queue(principal, name))


async def replaces_cron_job(principal: Principal, setup: ProbeSetup, name: str) -> None:
    await _kubectl(
        principal, setup, "replace", "-f", "-", manifest=create_cron_job(principal, name)
    )


async def _connect(principal: Principal) -> AsyncKubernetesJobsClient:
    return await AsyncKubernetesJobsClient.connect(str(principal.kubeconfig), principal.namespace)


async def cancels(principal: Principal, setup: ProbeSetup, name: str) -> None:
    life(principal, name, setup.worker).create()
    async with await _connect(principal) as client:
        await client.cancel(name)


async def signals(principal: Principal, setup: ProbeSetup, name: str) -> None:
    life(principal, name, setup.worker).create()
    async with await _connect(principal) as client:
        await client.signal(name, "approval", payload=True)


async def lists_workers(principal: Principal, _ground: ProbeSetup, _: str) -> None:
    async with await _connect(principal) as client:
        await client.workers()


async def submits_and_waits(principal: Principal, setup: ProbeSetup, name: str) -> None:
    """Do what the chart's test does, while a worker does the job."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("asyncjob")),
        *("submit", "test", f"--name={name}", f"--kubeconfig={principal.kubeconfig}"),
        *(f"--namespace={principal.namespace}", "--wait", f"--timeout={PATIENCE:.0f}s"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    while not read_job(principal, name) and process.returncode is None:  # noqa: ASYNC110  # processes
        await asyncio.sleep(LOOK_SECONDS)
    if process.returncode is None:
        await asyncio.to_thread(life(principal, name, setup.worker).bring, Phase.SUCCEEDED)
    _, complaint = await process.communicate()
    if process.returncode:
        raise BrokenError(complaint.decode())
