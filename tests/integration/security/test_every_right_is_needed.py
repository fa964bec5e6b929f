"""Take any one right away that the chart gives, and something definite no longer works.

Each right has a probe: a function of the project that somebody relies on. It works with all rights
of its part, and breaks with all but that one; the API server's own log then names that right as the
only one that was refused. So no verb, resource or name is given that nobody needs.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob.errors import AsyncJobError
from asyncjob.names import OPERATE_VERB, VOUCH_VERB
from asyncjob_dev.binaries import resolve
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.charts import NAMESPACE, Rendered
from support.processes.gateway import GatewayProcess
from support.rights import Part, Principal, Right, parts_of, rights_of
from support.rights.audit import Audit
from support.rights.happening import BrokenError
from support.rights.principals import Key, lesser, make_principals
from support.rights.probes import PROBES, Probe
from support.rights.probes.probe import ProbeSetup

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

BY_POLICY = {OPERATE_VERB, VOUCH_VERB}
"""Policies ask for these; RBAC itself refuses nobody for want of them."""

PLAIN_WORKER = "asyncjob-worker-default"
"""Has no right that the worker with payloads and children has not."""

CASES = [
    (account, role, right, probe)
    for (account, role), probes in PROBES.items()
    for right, probe in probes.items()
]
FULL = list(dict.fromkeys((account, probe) for account, _, _, probe in CASES))


@pytest.fixture(scope="module")
def parts(rendered: Rendered) -> list[Part]:
    return [part for part in parts_of(rendered, NAMESPACE) if part.account != PLAIN_WORKER]


@pytest.fixture(scope="module")
def principals(
    control_plane: ControlPlane, admin: Client, folder: Path, parts: list[Part]
) -> dict[Key, Principal]:
    return make_principals(control_plane, admin, folder, lesser(parts))


@pytest.fixture(scope="module")
def setup(
    control_plane: ControlPlane, principals: dict[Key, Principal], folder: Path
) -> Iterator[ProbeSetup]:
    own = principals["asyncjob-gateway", "", None]
    log = folder / "gateway.log"
    log.touch()
    with GatewayProcess(own.kubeconfig, log, "--auth-cache=0.01") as running:
        running.until_ready()
        worker = principals["asyncjob-worker-rich", "", None]
        yield ProbeSetup(running.url, worker, resolve("kubectl").path)


def test_every_right_of_the_chart_has_a_probe_and_is_given_once(parts: list[Part]) -> None:
    given = {
        (part.account, grant.role): Counter(rights_of(grant.rules))
        for part in parts
        for grant in part.grants
    }
    assert given == {key: Counter(list(probes)) for key, probes in PROBES.items()}


@pytest.mark.parametrize(("account", "probe"), FULL, ids=[f"{a}: {p.does}" for a, p in FULL])
async def test_with_all_rights_of_a_part_it_works(
    principals: dict[Key, Principal], setup: ProbeSetup, audit: Audit, account: str, probe: Probe
) -> None:
    principal = principals[account, "", None]
    await probe.run(principal, setup, f"full-{account}-{FULL.index((account, probe))}")
    assert audit.rights(principal.username, "forbid") <= probe.tolerates


@pytest.mark.parametrize(
    ("account", "role", "right", "probe"),
    CASES,
    ids=[f"{role}: {right}" for _, role, right, _ in CASES],
)
async def test_without_a_right_something_breaks(
    principals: dict[Key, Principal],
    setup: ProbeSetup,
    audit: Audit,
    account: str,
    role: str,
    right: Right,
    probe: Probe,
) -> None:
    principal = principals[account, role, right]
    with pytest.raises((BrokenError, AsyncJobError, AssertionError)) as broken:
        await probe.run(principal, setup, principal.account)

    refused = {Right(right.group, right.resource, right.verb)}
    said = str(broken.value)
    if right.verb in BY_POLICY:
        assert "ValidatingAdmissionPolicy" in said
        refused = set()
    elif not probe.direct:
        # A right that may be given for single jobs is asked for by the job's name.
        assert re.search(rf"may not {re.escape(str(right))}(/\S+)? in namespace", said)
        refused = set()
    assert audit.rights(principal.username, "forbid") - probe.tolerates == refused
