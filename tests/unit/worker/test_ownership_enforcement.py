"""No claim before it is proven that ownership is enforced."""

import asyncio
from typing import Any

import pytest

from asyncjob.errors import ConflictError, ForbiddenError, InvalidError
from asyncjob_worker.errors import PolicyMissingError
from asyncjob_worker.leases.ownership import MAX_CHECKS, EnforcementCheck
from support.parts.worker_parts import Pauses, ScriptedSession, candidate

PASSED: dict[str, Any] = {}
DENIED = ForbiddenError("ValidatingAdmissionPolicy 'ownership.asyncjob.dev' denied request")
DENIED_OTHERWISE = InvalidError("ValidatingAdmissionPolicy 'lifecycle.asyncjob.dev' denied request")


def enforcement(session: ScriptedSession) -> EnforcementCheck:
    return EnforcementCheck(session.session, required=True, pause=Pauses())


async def test_a_refusal_by_policy_is_the_proof_and_is_asked_for_once() -> None:
    session = ScriptedSession(merge_patch=[DENIED])
    asked = enforcement(session)
    assert await asyncio.gather(*[asked.is_proven(candidate()) for _ in range(8)]) == [True] * 8
    (call,) = session.calls
    assert call.params == {"dryRun": "All"}
    assert call.body["status"]["lease"]["holder"] != "worker-0"


async def test_a_policy_applied_a_moment_ago_is_waited_for() -> None:
    session = ScriptedSession(merge_patch=[PASSED, PASSED, DENIED])
    unproven = []

    async def pause(_: float) -> None:
        unproven.append(asked.unproven)

    asked = EnforcementCheck(session.session, required=True, pause=pause)
    assert not asked.unproven
    assert await asked.is_proven(candidate())
    assert (unproven, asked.unproven) == ([True, True], False)


async def test_without_the_policy_the_worker_refuses_to_run() -> None:
    session = ScriptedSession(merge_patch=[PASSED])
    with pytest.raises(PolicyMissingError, match="kubectl apply -f crds/"):
        await enforcement(session).is_proven(candidate())
    assert len(session.calls) == MAX_CHECKS


@pytest.mark.parametrize(
    "answer", [ConflictError("changed"), InvalidError("another rule"), DENIED_OTHERWISE]
)
async def test_a_job_that_cannot_tell_is_not_claimed(answer: Exception) -> None:
    session = ScriptedSession(merge_patch=[answer, DENIED])
    asked = enforcement(session)
    assert not await asked.is_proven(candidate())
    assert await asked.is_proven(candidate("other"))


async def test_missing_permission_proves_nothing() -> None:
    with pytest.raises(ForbiddenError):
        await enforcement(ScriptedSession(merge_patch=[ForbiddenError("rbac")])).is_proven(
            candidate()
        )


async def test_who_does_not_demand_it_does_not_ask() -> None:
    session = ScriptedSession()
    assert await EnforcementCheck(session.session, required=False).is_proven(candidate())
    assert not session.calls
