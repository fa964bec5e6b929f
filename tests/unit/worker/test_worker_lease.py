"""The worker's own Lease, from the first announcement to the last."""

from typing import Any

import pytest

from asyncjob.errors import (
    AlreadyExistsError,
    ForbiddenError,
    ObjectNotFoundError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob_worker.errors import CannotStartError
from asyncjob_worker.leases.registration import WorkerLease, WorkerRegistration
from support.worker_parts import ME, FakeSession, Pauses

OK: dict[str, Any] = {}
AWAY = UnknownOutcomeError("connection refused")
ABSENT = ObjectNotFoundError("no lease")


def announcer(session: FakeSession, pauses: Pauses | None = None) -> WorkerRegistration:
    announcement = WorkerLease(ME, "default", 2, ["echo"], 15.0)
    return WorkerRegistration(session.session, announcement, pauses or Pauses())


async def test_the_first_announcement_creates_the_lease() -> None:
    session = FakeSession(merge_patch=[ABSENT], create=[OK])
    await announcer(session).register()
    (call,) = session.made("create")
    assert call.path.endswith("/leases")
    assert call.body["spec"]["holderIdentity"] == ME.worker


async def test_a_restarted_worker_takes_its_pods_lease_over() -> None:
    session = FakeSession(merge_patch=[OK])
    await announcer(session).register()
    assert [call.verb for call in session.calls] == ["merge_patch"]


async def test_a_lease_that_appears_meanwhile_is_no_obstacle() -> None:
    session = FakeSession(merge_patch=[ABSENT, OK], create=[AlreadyExistsError("there")])
    await announcer(session).register()


async def test_an_api_server_that_is_away_is_waited_for() -> None:
    session, pauses = FakeSession(merge_patch=[*[AWAY] * 10, OK]), Pauses()
    await announcer(session, pauses).register()
    assert len(pauses.seconds) == 10
    assert max(pauses.seconds) <= 60


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"merge_patch": [ForbiddenError("rbac")]}, "check the worker's RBAC"),
        ({"merge_patch": [UnauthorizedError("401")]}, "token"),
        ({"merge_patch": [ABSENT], "create": [ABSENT]}, "namespace 'ns' does not exist"),
    ],
)
async def test_where_waiting_is_of_no_use_it_says_what_to_do(answers: Any, words: str) -> None:
    with pytest.raises(CannotStartError, match=words):
        await announcer(FakeSession(**answers)).register()


async def test_it_is_renewed_through_outages() -> None:
    class EnoughError(Exception):
        pass

    session, rounds = FakeSession(merge_patch=[AWAY, OK]), list[int]()

    def count() -> None:
        rounds.append(1)
        if len(rounds) > 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        await announcer(session).renew_periodically(count)
    assert len(session.calls) == 3


async def test_a_draining_worker_says_so_and_goes_on_saying_so() -> None:
    session = FakeSession(merge_patch=[OK])
    ours = announcer(session)
    await ours.mark_draining()
    await ours.register()
    for call in session.calls:
        assert '"draining":true' in call.body["metadata"]["annotations"]["asyncjob.dev/worker"]


async def test_the_end_empties_the_lease_and_no_error_stops_it() -> None:
    session = FakeSession(merge_patch=[AWAY])
    await announcer(session).deregister()
    assert session.calls[0].body == {"spec": {"holderIdentity": ""}}
