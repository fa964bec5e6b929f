"""What an app has besides handlers, with real workers: resources, middleware, hooks, limits."""

import pytest

from support.processes.workers import WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

APP = "support.apps.shared:app"


def test_resources_middleware_and_hooks_surround_the_handlers_of_a_worker(
    ns: WorkerNamespace,
) -> None:
    worker = ns.worker("worker-0", "--concurrency=2", "--log-format=json", app=APP)
    ns.create("a", "shared", traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01")
    ns.create("s", "shared-sync", 41)
    ns.create("r", "retried")
    ns.create("bad", "shared-sync", "no number")
    ns.create("w", "waits", "never")
    assert ns.until_phase("a", "Succeeded")["result"] is True
    assert ns.until_phase("s", "Succeeded")["result"] == {"wrapped": 42}
    assert ns.until_phase("r", "Succeeded")["result"] == 2
    assert ns.until_phase("bad", "DeadLetter")["reason"] == "InvalidPayload"
    ns.until_trace("begin w 1")
    ns.cancel("w")
    ns.until_phase("w", "Cancelled")
    ns.until_trace("told cancelled w 1 Cancelled")
    worker.terminate()
    worker.wait_ended(20)
    assert worker.process.returncode == 0

    lines = ns.trace()
    assert lines[:3] == ["open pool", "open files", "told worker-started default 2"]
    assert lines[-3:] == ["told worker-stopping default 2", "close files", "close pool"]
    assert "before s 1 True" in lines
    assert not ns.trace("before bad")
    starts = [line for line in lines if line.startswith(("told claimed r", "told started r"))]
    assert starts == [f"told {what} r {n}" for n in (1, 2) for what in ("claimed", "started")]
    ends = [line for line in ns.trace("told") if " r " in line and line not in starts]
    assert ends == ["told retried r 1 Retrying Retry", "told succeeded r 2 Succeeded"]
    assert "told dead-lettered bad 1 DeadLetter ValidationError" in lines
    assert "told started bad 1" not in lines
    log = ns.log(worker)
    assert '"event": "handler speaks"' in log
    assert f'"trace_id": "{"ab" * 16}"' in log
    assert "hook failed" in log


def test_a_resource_that_cannot_be_opened_is_one_line_and_no_claim(ns: WorkerNamespace) -> None:
    ns.create("j", "shared")
    worker = ns.start_worker("worker-0", app=APP, env={"POOL_FAILS": "1"})
    worker.wait_ended(20)
    assert worker.process.returncode == 1
    last = ns.log(worker).splitlines()[-1]
    assert "pool) cannot be opened: ConnectionRefusedError: the pool is dry" in last
    assert ns.status("j")["attempt"] == 0
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{ns.namespace}/leases"
    assert not ns.api.get(leases)["items"]


def test_a_resource_that_hangs_at_its_closing_does_not_hold_up_the_exit(
    ns: WorkerNamespace,
) -> None:
    worker = ns.worker("worker-0", "--stop-wait=0.5", app=APP, env={"POOL_HANGS": "1"})
    ns.create("j", "shared")
    ns.until_phase("j", "Succeeded")
    worker.terminate()
    worker.wait_ended(20)
    assert worker.process.returncode == 0
    assert "resource does not close and is given up" in ns.log(worker)
    assert "close files" in ns.trace()


def test_a_limited_type_leaves_the_slots_to_others_and_the_rest_to_other_workers(
    ns: WorkerNamespace,
) -> None:
    first = ns.worker("worker-0", "--concurrency=3", app=APP)
    for number in range(3):
        ns.create(f"l{number}", "limited", "go")
    ns.until_trace("begin l0 1")
    ns.create("other", "shared")
    ns.until_phase("other", "Succeeded")
    assert len(ns.trace("begin l")) == 1
    ns.worker("worker-1", "--concurrency=3", app=APP)
    ns.until_log(first, "live=2")
    holders = {
        ns.until_status(name, lambda status: status.get("lease"))["lease"]["holder"]
        for name in [line.split()[1] for line in two_begun(ns)]
    }
    assert holders == {"worker-0", "worker-1"}
    ns.open("go")
    for number in range(3):
        assert ns.until_phase(f"l{number}", "Succeeded")["attempt"] == 1


def two_begun(ns: WorkerNamespace) -> list[str]:
    return until(
        lambda: found if len(found := ns.trace("begin l")) == 2 else None,
        10,
        lambda: str(ns.trace()),
    )
