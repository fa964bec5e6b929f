"""Heartbeats on their way, whatever the answers are."""

import asyncio
from collections.abc import Callable, Container
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.app.context import Stop
from asyncjob.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob_worker.leases import heartbeat, ownership
from asyncjob_worker.leases.heartbeat import HeartbeatCounts, HeartbeatSender
from asyncjob_worker.leases.held_job import HeldJob
from support.parts.worker_parts import Call, ScriptedSession, held, job

OK: dict[str, Any] = {}
LEASE = job()["status"]["lease"]


class EveryJob(Container[HeldJob]):
    """Contains every job."""

    def __contains__(self, _: object) -> bool:
        return True


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "MIN_PAUSE_SECONDS", 0.0)


def short_lease(**changes: Any) -> HeldJob:
    """Return a job whose pauses between heartbeats are next to nothing."""
    effective = {**job()["status"]["effective"], "leaseDurationSeconds": 0}
    return held(effective=effective, **changes)


def sender(
    session: ScriptedSession,
    renewing: Container[HeldJob] | None = None,
    counts: HeartbeatCounts | None = None,
) -> HeartbeatSender:
    jobs = EveryJob() if renewing is None else renewing
    return HeartbeatSender(session.session, jobs, counts or HeartbeatCounts())


async def send(
    session: ScriptedSession,
    of: HeldJob,
    renewing: Container[HeldJob] | None = None,
    counts: HeartbeatCounts | None = None,
) -> None:
    async with sender(session, renewing, counts) as renewals:
        await renewals.send(of)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> HeldJob:
    """Return a job of ours; pauses after an error are skipped."""

    async def at_once(_: float) -> None:
        return

    monkeypatch.setattr("asyncjob_worker.leases.heartbeat.asyncio.sleep", at_once)
    return held()


async def test_a_heartbeat_carries_the_newest_report_once(ours: HeldJob) -> None:
    ours.progress(50, None)
    session = ScriptedSession(json_patch=[OK])
    await send(session, ours)
    await send(session, ours)
    first, second = session.calls
    assert first.operation("/status/progress")
    assert not second.operation("/status/progress")
    assert ours.renewals == 2


async def test_the_lease_is_counted_from_sending(
    ours: HeldJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([1000.0, 1015.0])
    monkeypatch.setattr(heartbeat, "boottime", lambda: next(times))
    await send(ScriptedSession(json_patch=[OK]), ours)
    assert ours.sent_at == 1000.0


async def test_a_report_made_while_a_heartbeat_is_on_its_way_goes_with_the_next(
    ours: HeldJob,
) -> None:
    def report_meanwhile(_: Any) -> dict[str, Any]:
        ours.checkpoint({"row": 2})
        return OK

    ours.checkpoint({"row": 1})
    session = ScriptedSession(json_patch=[report_meanwhile, OK])
    await send(session, ours)
    await send(session, ours)
    checkpoint = session.calls[1].operation("/status/checkpoint")
    assert checkpoint
    assert checkpoint["value"] == {"row": 2}


@pytest.mark.parametrize(
    "error", [UnknownOutcomeError("reset"), ConflictError("label"), ForbiddenError("rbac")]
)
async def test_an_error_alone_does_not_fence(ours: HeldJob, error: Exception) -> None:
    before, counts = ours.sent_at, HeartbeatCounts()
    await send(ScriptedSession(json_patch=[error], get=[job()]), ours, counts=counts)
    assert counts == HeartbeatCounts(stored=0, failed=1)
    assert ours.stopped is None
    assert (ours.sent_at, ours.renewals) == (before, 0)


@pytest.mark.parametrize(
    "found",
    [
        job(claim="c2"),
        job(uid="u2"),
        job(phase="Queued"),
        ObjectNotFoundError("gone"),
    ],
    ids=["claim", "uid", "phase", "deleted"],
)
async def test_a_fresh_read_fences(ours: HeldJob, found: Any) -> None:
    with capture_logs() as logs:
        await send(ScriptedSession(json_patch=[InvalidError("test failed")], get=[found]), ours)
    assert ours.stopped is Stop.FENCED
    assert any("fenced" in entry["event"] for entry in logs)


async def test_a_refused_token_fences_only_once_that_has_lasted(
    ours: HeldJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(ownership, "boottime", lambda: clock[0])
    refused = UnauthorizedError("the signing key is being changed")
    session = ScriptedSession(
        json_patch=[refused], get=[refused, refused, job(), refused, refused, refused]
    )
    for seconds in (0.0, 9.0, 0.1, 5.0, 9.0):
        clock[0] += seconds
        await send(session, ours)
        assert ours.stopped is None
    clock[0] += 1.5
    await send(session, ours)
    assert ours.stopped is Stop.FENCED


async def test_a_heartbeat_of_an_older_claim_holds_up_none_of_the_newer() -> None:
    class Silent(ScriptedSession):
        async def json_patch(self, path: str, operations: Any, **_: Any) -> Any:
            self.calls.append(Call("json_patch", path, operations))
            await asyncio.Event().wait()

    session = Silent()
    async with sender(session) as renewals:
        for of in (held(), held(claim="c2", attempt=2)):
            renewals.renew(of)
        await asyncio.sleep(0)
        assert len(session.calls) == 2


async def test_an_outcome_on_its_way_is_no_fence(ours: HeldJob) -> None:
    ours.writing_outcome = True
    with capture_logs() as logs:
        session = ScriptedSession(
            json_patch=[InvalidError("no lease")], get=[job(phase="Succeeded")]
        )
        await send(session, ours)
    assert ours.stopped is None
    assert not logs


async def test_a_job_let_go_meanwhile_is_not_judged(ours: HeldJob) -> None:
    session = ScriptedSession(json_patch=[InvalidError("no lease")], get=[job(phase="Succeeded")])
    await send(session, ours, renewing=())
    assert ours.stopped is None


async def test_a_heartbeat_whose_answer_was_lost_is_found_by_its_number(ours: HeldJob) -> None:
    ours.progress(50, None)
    claimed_at = ours.sent_at
    stored = job(lease={**LEASE, "renewals": 1})
    session = ScriptedSession(
        json_patch=[UnknownOutcomeError("reset"), InvalidError("test failed"), OK], get=[stored]
    )
    for _ in range(2):
        await send(session, ours)
    assert (ours.stopped, ours.renewals, ours.unconfirmed_since) == (None, 1, None)
    assert ours.sent_at > claimed_at
    await send(session, ours)
    assert ours.renewals == 2
    assert session.made("json_patch")[2].operation("/status/progress")


async def test_a_heartbeat_without_an_answer_is_given_up_after_a_third_of_the_lease() -> None:
    class Silent(ScriptedSession):
        async def json_patch(self, *_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

    ours = short_lease()
    with capture_logs() as logs:
        await send(Silent(), ours)
    assert [entry["event"] for entry in logs] == ["heartbeat failed"]
    assert ours.unconfirmed_since is not None


async def test_a_checkpoint_too_large_for_the_store_ends_the_attempt_not_the_lease(
    ours: HeldJob,
) -> None:
    ours.checkpoint("x" * 1000)
    session = ScriptedSession(json_patch=[TooLargeError("request is too large"), OK], get=[job()])
    await send(session, ours)
    await send(session, ours)
    assert ours.stopped is Stop.REFUSED
    assert "1002 bytes" in ours.refusal
    assert "1572864" in ours.refusal
    assert ours.renewals == 1
    assert not session.made("json_patch")[1].operation("/status/checkpoint")


async def test_a_report_that_the_api_server_refuses_is_left_out(ours: HeldJob) -> None:
    ours.progress(50, "words it does not like")
    session = ScriptedSession(json_patch=[InvalidError("progress.message"), OK], get=[job()])
    await send(session, ours)
    await send(session, ours)
    assert ours.stopped is None
    assert ours.renewals == 1
    assert not session.made("json_patch")[1].operation("/status/progress")


async def test_one_heartbeat_of_a_job_is_on_its_way_at_a_time() -> None:
    ours, session = held(), ScriptedSession(json_patch=[OK])
    async with sender(session) as renewals:
        renewals.renew(ours)
        renewals.renew(ours)
        await turns(until=lambda: ours.renewals == 1)
        renewals.reap()
        assert len(session.calls) == 1
        renewals.reap()
        renewals.renew(ours)
        await turns(until=lambda: ours.renewals == 2)


async def turns(*, until: Callable[[], bool]) -> None:
    """Let the others run; nothing here takes more than a few turns."""
    for _ in range(100):
        if until():
            return
        await asyncio.sleep(0)
    raise AssertionError("too many turns")


async def test_what_a_heartbeat_raises_unexpectedly_reaches_the_supervisor() -> None:
    session = ScriptedSession(json_patch=[ZeroDivisionError()])
    async with sender(session) as renewals:
        renewals.renew(held())
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            while True:
                await asyncio.sleep(0)
                renewals.reap()
