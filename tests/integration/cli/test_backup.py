"""A namespace is exported from one API server, restored on another, and its jobs come to an end."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    ARRAYS,
    CRON_JOBS,
    PARENT_LABEL,
    QUEUES,
    array_status_path,
    collection_path,
    cron_job_path,
    queue_path,
)
from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.identities import Space
from support.cluster.installation import install
from support.driven.lives import Life
from support.objects.builders import cron_job, job
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(120)]

SPEC = {"type": "flaky.call", "payload": {"failures": 0}}
NOTES = {"type": "note", "queue": "items", "items": {"count": 7}, "chunkSize": 3}
HALF_DONE = {
    "phase": "Running",
    "total": 7,
    "next": 5,
    "succeeded": 3,
    "failed": 1,
    "failedItems": "3",
    "requeued": "1",
    "generation": 2,
}
MANY = 230
Say = Callable[..., str]


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[tuple[ControlPlane, Path]]:
    """Run the API server that will be lost; it has no operator."""
    with ControlPlane() as plane:
        kubeconfig = tmp_path / "lost"
        user = {"token": plane.admin_token}
        write_kubeconfig(
            kubeconfig, url=plane.url, ca_file=plane.ca_file, user=user, namespace="shop"
        )
        yield plane, kubeconfig


def populated(plane: ControlPlane) -> None:
    """Create a queue, a cron job, jobs in every phase, a family, and who waits for whom."""
    admin = install(plane)
    space = Space("shop", admin).create()
    worker = space.worker("worker-0")
    admin.create(
        collection_path("shop", QUEUES), {**_named("AsyncQueue", "mail"), "spec": {}}
    ).object()
    schedule = cron_job("yearly", schedule="@yearly", trigger=2)
    uid = admin.create(collection_path("shop", CRON_JOBS), schedule).object()["metadata"]["uid"]
    assert uid

    thumbs = {**_named("AsyncArray", "notes"), "spec": NOTES}
    admin.create(collection_path("shop", ARRAYS), thumbs).object()
    admin.merge(array_status_path("shop", "notes"), {"status": HALF_DONE}).object()

    def life(name: str, phase: Phase = Phase.QUEUED, **spec: object) -> Life:
        one = Life("shop", name, admin, worker)
        one.create(**{**SPEC, **spec})
        return one.bring(phase)

    for phase in Phase:
        spec = {"notBefore": "2026-01-01T00:00:00Z"} if phase is Phase.SCHEDULED else {}
        life(f"was-{phase.lower()}", phase, **spec)
    life("after", dependsOn=[{"name": "was-succeeded"}, {"name": "was-running"}])
    parent = life("parent", Phase.RUNNING)
    child = job("child", **SPEC)
    child["metadata"]["labels"] = {PARENT_LABEL: parent.read()["metadata"]["uid"]}
    admin.create(collection_path("shop", "asyncjobs"), child).object()
    for number in range(MANY):
        life(f"many-{number:03}", queue="elsewhere")


def _named(kind: str, name: str) -> dict[str, object]:
    return {"apiVersion": "asyncjob.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}


def test_what_was_lost_with_an_api_server_comes_back_on_another_and_ends(
    say: Say,
    ns: WorkerNamespace,
    lost: tuple[ControlPlane, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plane, kubeconfig = lost
    populated(plane)
    there, file = ("--kubeconfig", str(kubeconfig)), str(tmp_path / "backup.jsonl")
    submitted = ("submit", "flaky.call", "failures:=0", "--idempotency-key", "order-1")
    say(*submitted, *there)

    said = say("export", file, *there)

    assert f"1 queue, 1 cron job, 1 array and {MANY + 12} jobs" in said
    kept = [json.loads(line) for line in Path(file).read_text().splitlines()]
    names = [one["metadata"]["name"] for one in kept[1:-1]]
    assert len(names) == len(set(names)) == MANY + 15
    [done] = [one for one in kept if one.get("metadata", {}).get("name") == "was-succeeded"]
    assert done["status"]["result"] == {"sum": 3}

    # On another API server, in another namespace: first in vain, then in earnest, then again.
    into = ("restore", file, "-n", ns.namespace, "-q", "default", "-q", "mail", "-q", "items")
    before = len(ns.jobs())
    assert "would restore 1 queue, 1 cron job, 1 array and 8 jobs" in say(*into, "--dry-run")
    assert len(ns.jobs()) == before
    told = say(*into)
    assert "restored 1 queue, 1 cron job, 1 array and 8 jobs" in told
    assert "left out, children of restored jobs" in told
    assert "3 jobs had started" in told
    assert "there already: 1 queue, 1 cron job, 1 array and 8 jobs" in say(*into)

    # Nothing starts by itself, and no trigger of the life before fires.
    chosen = ("list", "-l", "asyncjob.dev/restored=suspended", "-o", "name")
    names = sorted(say(*chosen).split())
    assert len(names) == 8
    assert not {"was-succeeded", "was-cancelled", "was-deadletter", "child"} & set(names)
    schedule = ns.api.get(cron_job_path(ns.namespace, "yearly"))
    assert schedule["spec"]["suspend"] is True
    assert "trigger" not in schedule["spec"]
    ns.api.get(queue_path(ns.namespace, "mail"))
    for name in names:
        ns.until_phase(name, "Pending")

    # The same key is the same job here, too; then all of them end.
    assert "exists" in say(*submitted)
    say("resume", *names)
    assert say("wait", *names, "--timeout", "60s")
    after = ns.get("after")
    assert [one["name"] for one in after["spec"]["dependsOn"]] == ["was-running"]
    assert not any(one["metadata"]["name"].startswith("yearly-") for one in ns.jobs())

    # An array runs its items in chunks of its own.
    assert "1 array had started: " in told
    assert "Suspended" in say("array", "get", "notes")
    say("array", "resume", "notes")
    ns.worker("worker-items", "--queue=items", "--concurrency=4", app="support.apps.items:app")
    assert "notes Succeeded 100% of 7 items" in say("array", "wait", "notes", "--timeout", "60s")
    # Those that were done on the lost API server are not run again.
    assert sorted(int(line.split()[2]) for line in ns.trace("done notes ")) == [1, 3, 5, 6]
