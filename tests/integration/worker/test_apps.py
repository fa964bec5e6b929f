"""What an app has besides handlers, with real workers: resources, middleware, hooks, limits."""

import pytest

from support.workers import Field, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

APP = "support.shared_app:app"


def test_resources_middleware_and_hooks_surround_the_handlers_of_a_worker(field: Field) -> None:
    worker = field.worker("worker-0", "--concurrency=2", "--log-format=json", app=APP)
    field.create("a", "shared", traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01")
    field.create("s", "shared-sync", 41)
    field.create("r", "retried")
    field.create("bad", "shared-sync", "no number")
    field.create("w", "waits", "never")
    assert field.until_phase("a", "Succeeded")["result"] is True
    assert field.until_phase("s", "Succeeded")["result"] == {"wrapped": 42}
    assert field.until_phase("r", "Succeeded")["result"] == 2
    assert field.until_phase("bad", "DeadLetter")["reason"] == "InvalidPayload"
    field.until_trace("begin w 1")
    field.cancel("w")
    field.until_phase("w", "Cancelled")
    field.until_trace("told cancelled w 1 Cancelled")
    worker.terminate()
    worker.wait_ended(20)
    assert worker.process.returncode == 0

    lines = field.trace()
    assert lines[:3] == ["open pool", "open files", "told worker-started default 2"]
    assert lines[-3:] == ["told worker-stopping default 2", "close files", "close pool"]
    assert "before s 1 True" in lines
    assert not field.trace("before bad")
    starts = [line for line in lines if line.startswith(("told claimed r", "told started r"))]
    assert starts == [f"told {what} r {n}" for n in (1, 2) for what in ("claimed", "started")]
    ends = [line for line in field.trace("told") if " r " in line and line not in starts]
    assert ends == ["told retried r 1 Retrying Retry", "told succeeded r 2 Succeeded"]
    assert "told dead-lettered bad 1 DeadLetter ValidationError" in lines
    assert "told started bad 1" not in lines
    log = field.log(worker)
    assert '"event": "handler speaks"' in log
    assert f'"trace_id": "{"ab" * 16}"' in log
    assert "hook failed" in log


def test_a_resource_that_cannot_be_opened_is_one_line_and_no_claim(field: Field) -> None:
    field.create("j", "shared")
    worker = field.start_worker("worker-0", app=APP, env={"POOL_FAILS": "1"})
    worker.wait_ended(20)
    assert worker.process.returncode == 1
    last = field.log(worker).splitlines()[-1]
    assert "pool) cannot be opened: ConnectionRefusedError: the pool is dry" in last
    assert field.status("j")["attempt"] == 0
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{field.namespace}/leases"
    assert not field.api.get(leases)["items"]


def test_a_resource_that_hangs_at_its_closing_does_not_hold_up_the_exit(field: Field) -> None:
    worker = field.worker("worker-0", "--stop-wait=0.5", app=APP, env={"POOL_HANGS": "1"})
    field.create("j", "shared")
    field.until_phase("j", "Succeeded")
    worker.terminate()
    worker.wait_ended(20)
    assert worker.process.returncode == 0
    assert "resource does not close and is given up" in field.log(worker)
    assert "close files" in field.trace()


def test_a_limited_type_leaves_the_slots_to_others_and_the_rest_to_other_workers(
    field: Field,
) -> None:
    first = field.worker("worker-0", "--concurrency=3", app=APP)
    for number in range(3):
        field.create(f"l{number}", "limited", "go")
    field.until_trace("begin l0 1")
    field.create("other", "shared")
    field.until_phase("other", "Succeeded")
    assert len(field.trace("begin l")) == 1
    field.worker("worker-1", "--concurrency=3", app=APP)
    field.until_log(first, "live=2")
    holders = {
        field.until_status(name, lambda status: status.get("lease"))["lease"]["holder"]
        for name in [line.split()[1] for line in two_begun(field)]
    }
    assert holders == {"worker-0", "worker-1"}
    field.open("go")
    for number in range(3):
        assert field.until_phase(f"l{number}", "Succeeded")["attempt"] == 1


def two_begun(field: Field) -> list[str]:
    return until(
        lambda: found if len(found := field.trace("begin l")) == 2 else None,
        10,
        lambda: str(field.trace()),
    )
