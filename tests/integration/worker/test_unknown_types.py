"""Types that not every worker of a queue knows, or none: with real workers of two apps."""

from datetime import UTC, datetime

import pytest

from asyncjob_dev.api import Object
from asyncjob_worker.leases.registration import lease_path
from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

QUEUE = "mixed"
STRICT = {"unknownType": "DeadLetter"}


def renew(ns: WorkerNamespace, *workers: str) -> None:
    """Renew registrations, as the workers themselves do every quarter of a minute."""
    time = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    for worker in workers:
        ns.api.merge(lease_path(ns.namespace, worker), {"spec": {"renewTime": time}})


def until_given_up(ns: WorkerNamespace, name: str, *workers: str) -> Object:
    """Return the status of the dead letter; the workers go on living meanwhile."""

    def look() -> Object | None:
        renew(ns, *workers)
        status = ns.status(name)
        return status if status["phase"] == "DeadLetter" else None

    return until(look, 15, lambda: str(ns.status(name)))


def test_a_type_goes_to_who_knows_it_and_is_given_up_once_no_live_worker_does(
    ns: WorkerNamespace,
) -> None:
    ns.queue(QUEUE, **STRICT)
    ns.queue("empty", **STRICT)
    ns.queue("patient", defaults={"queueTimeoutSeconds": 5})
    ns.create("nobody-there", "echo", queue="empty")
    usual = ("usual", f"--queue={QUEUE}")
    other = ns.worker("other", f"--queue={QUEUE}", app="support.apps.other_worker:app")
    ns.worker(*usual)
    ns.worker("patient", "--queue=patient")

    for name, job_type in (("one", "echo"), ("two", "elsewhere")):
        ns.create(name, job_type, 1, queue=QUEUE)
        status = ns.until_phase(name, "Succeeded")
        assert status["attempt"] == 1
        assert status["history"][-1]["worker"].startswith(
            "usual/" if job_type == "echo" else "other/"
        )

    ns.create("typo", "ehco", queue=QUEUE)
    ns.create("patient", "ehco", queue="patient")
    status = until_given_up(ns, "typo", "usual", "other", "patient")
    assert (status["reason"], status["attempt"]) == ("UnknownType", 0)
    assert (
        f"no live worker of queue {QUEUE} lists type ehco; 2 live workers list"
        in (status["message"])
    )
    assert ns.until_phase("patient", "DeadLetter")["reason"] == "QueueTimeout"

    ns.create("held", "wait", "go", queue=QUEUE)
    ns.until_trace("begin held 1")
    other.terminate()
    other.wait_ended(20)
    ns.create("orphaned", "elsewhere", queue=QUEUE)
    status = until_given_up(ns, "orphaned", "usual")
    assert "1 live worker lists" in status["message"]
    assert ns.status("held")["phase"] == "Running"
    assert ns.status("nobody-there")["phase"] == "Queued"
    ns.open("go")

    ns.worker("third", f"--queue={QUEUE}", app="support.apps.other_worker:app")
    ns.patch("orphaned", {"spec": {"redrive": 1}})
    assert ns.until_phase("orphaned", "Succeeded").get("redrives", 0) == 1
