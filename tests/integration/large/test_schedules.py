"""Many cron jobs with large payloads, and queues with large annotations.

An operator beside them stays small, its loop is not held, and the cron job of another tenant is
triggered at once. A gateway stays small as well, however many ask for lists of them.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from asyncjob.names import CRON_JOBS, QUEUES
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import Space
from support.cluster.installation import install
from support.driven.crowd import store, stored
from support.driven.jobs import Jobs, until
from support.objects.builders import cron_job, queue
from support.processes.gateway import GatewayProcess, gateway_kubeconfig, get
from support.processes.operator import OperatorProcess, operator_kubeconfig
from support.programs.loop_watch import held, peak_mib, times_listed
from support.tenants.honest import WITHIN, HonestSchedule, broken_loops

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.timeout(900)]

OBJECTS = 400
MOST_MIB = 300.0
MOST_HELD_SECONDS = 0.1
AT_ONCE = 4
"""Objects in one transaction of the store, which takes a megabyte and a half."""

ROWS: Any = [{"id": number, "text": f"row {number} ".ljust(240, "x")} for number in range(1_000)]
"""250 KB of JSON. Of more and smaller values the API server itself takes half a second each."""

NOTE = "x" * 250_000


def schedule(number: int) -> dict[str, Any]:
    """Return a cron job that is never due while the test runs."""
    body = cron_job(f"large-{number:03}", payload=ROWS)
    body["spec"]["schedule"] = "0 0 29 2 *"
    return body


def annotated(number: int) -> dict[str, Any]:
    """Return a queue with as large an annotation as there may be."""
    body = queue(f"large-{number:03}")
    body["metadata"]["annotations"] = {"note": NOTE}
    return body


KINDS: Any = {CRON_JOBS: schedule, QUEUES: annotated}
LISTS = {CRON_JOBS: "cron-jobs", QUEUES: "queues"}
ASKING = 16
"""Callers at a time."""


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """Run a control plane of its own for each kind: large lists hold it up."""
    with ControlPlane() as running:
        install(running)
        yield running


@pytest.mark.parametrize("kind", KINDS)
def test_an_operator_stays_small_and_quick_beside_many_large_objects(
    plane: ControlPlane, kind: str, tmp_path: Path
) -> None:
    assert len(json.dumps(ROWS)) > 250_000
    file = tmp_path / "held"
    access = operator_kubeconfig(plane, tmp_path / "kubeconfig")
    operator = OperatorProcess(access, tmp_path / "log", "--resync-interval=2")
    operator.run_module("support.programs.watched_operator", {"LOOP_WATCH": str(file)})
    space = Space("large", Client(plane.url, plane.ca_file, plane.admin_token)).create()
    honest = HonestSchedule(Jobs(plane.api))

    def check(what: str) -> None:
        waits = [round(honest.once(), 2) for _ in range(5)]
        assert max(waits) <= WITHIN, (what, waits)
        assert peak_mib(operator.pid) < MOST_MIB, what
        assert 0 < held(file) < MOST_HELD_SECONDS, what

    def compared() -> None:
        """Wait until the API server has caught up with its store, and the operator with both."""
        seen = times_listed(file, kind)
        until(lambda: times_listed(file, kind) > seen + 2, 180, "comparisons", every=0.5)

    with operator:
        operator.until_ready(120).until_leading()
        objects = [stored(space.name, KINDS[kind](number)) for number in range(OBJECTS)]
        store(plane, kind, objects, at_once=AT_ONCE)
        compared()
        check("after they were created")
        assert not broken_loops(operator)
        operator.stop()
    file.unlink()
    with operator:
        operator.until_ready(120).until_leading()
        compared()
        check("at another start")
        assert not broken_loops(operator)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gateway_stays_small_and_quick_however_many_list_large_objects(
    plane: ControlPlane, kind: str, tmp_path: Path
) -> None:
    file, log = tmp_path / "held", tmp_path / "log"
    log.touch()
    space = Space("large", Client(plane.url, plane.ca_file, plane.admin_token)).create()
    objects = [stored(space.name, KINDS[kind](number)) for number in range(OBJECTS)]
    store(plane, kind, objects, at_once=AT_ONCE)
    access = gateway_kubeconfig(plane, space, tmp_path / "kubeconfig")
    gateway = GatewayProcess(
        access,
        log,
        "--open",
        module="support.programs.watched_gateway",
        environment={"LOOP_WATCH": str(file)},
    )
    with gateway as running, ThreadPoolExecutor(ASKING) as callers:
        running.until_ready(120)
        path = f"{running.url}/api/v1/{LISTS[kind]}"
        for answer in callers.map(lambda _: get(path), range(4 * ASKING)):
            assert len(answer.json()) == OBJECTS
        assert running.process
        assert peak_mib(running.process.pid) < MOST_MIB
        assert 0 < held(file) < MOST_HELD_SECONDS
