"""What a probe is: a function of the project, done with somebody's rights."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from asyncjob.names import GROUP
from support.processes.gateway import PLAIN
from support.rights.model import Right
from support.rights.principals import Principal

JOBS, QUEUES, CRONS = "asyncjobs", "asyncqueues", "asynccronjobs"
ARRAYS = "asyncarrays"
LEASES = "leases"
COORDINATION = "coordination.k8s.io"


@dataclass(frozen=True)
class ProbeSetup:
    """What is there for all probes: a gateway with its full rights, a worker, kubectl."""

    gateway_url: str
    worker: Principal
    kubectl: Path

    def http(self, principal: Principal) -> httpx.Client:
        """Return a client of the gateway in the principal's name; the caller closes it."""
        headers = {"Authorization": f"Bearer {principal.client.token}"}
        return httpx.Client(
            base_url=self.gateway_url, headers=headers, trust_env=False, timeout=20, verify=PLAIN
        )


Run = Callable[[Principal, ProbeSetup, str], Awaitable[None]]
"""Takes a name that nobody else uses. Raises if what it tries does not work."""


@dataclass(frozen=True)
class Probe:
    """`does` is what a part does with the right, and cannot do without it.

    `direct`: the account asks the API server itself, which then has the refusal in its audit log.
    """

    does: str
    run: Run
    direct: bool = True
    tolerates: frozenset[Right] = frozenset()
    """Rights that it asks for and does well without."""


def ours(resource: str, verbs: str, probe: Probe) -> Mapping[Right, Probe]:
    """Return the probe for verbs, separated by spaces, on a resource of ours."""
    return {Right(GROUP, resource, verb): probe for verb in verbs.split()}


def on_leases(verbs: str, probe: Probe, name: str = "") -> Mapping[Right, Probe]:
    """Return the probe for verbs on Leases, or on one of them."""
    return {Right(COORDINATION, LEASES, verb, name): probe for verb in verbs.split()}
