"""What the operator says of policies that are not in force, and how often."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.errors import ForbiddenError, UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.rules.policies import POLICIES
from asyncjob_operator import loops
from asyncjob_operator.kube.preflight import (
    MISSING_POLICY_RISKS,
    POLICIES_NOT_READABLE,
    find_missing_policies,
)
from support.vitals import loop_health

NAMES = [policy.name for policy in POLICIES]


class Server:
    """Answers with policies, all of them bound to deny unless told otherwise."""

    def __init__(self) -> None:
        made = [policy.manifests() for policy in POLICIES]
        self.policies = [cast("Any", policy) for policy, _ in made]
        self.bindings = [cast("Any", binding) for _, binding in made]
        self.error: Exception | None = None

    async def get(self, path: str) -> JsonObject:
        if self.error:
            raise self.error
        return {"items": self.bindings if path.endswith("bindings") else self.policies}

    async def missing(self) -> list[str]:
        return await find_missing_policies(cast("KubeSession", self))


def test_every_policy_of_the_book_is_looked_for() -> None:
    assert set(MISSING_POLICY_RISKS) == set(NAMES)


async def test_where_all_policies_are_bound_nothing_is_said() -> None:
    assert await Server().missing() == []


@pytest.mark.parametrize("name", NAMES)
async def test_a_missing_policy_is_named_with_what_it_means_and_what_to_do(name: str) -> None:
    server = Server()
    server.policies = [one for one in server.policies if one["metadata"]["name"] != name]
    [line] = await server.missing()
    assert line.startswith(f"the policy {name} is not in force: {MISSING_POLICY_RISKS[name]}; ")
    assert line.endswith("kubectl apply -f crds/ (asyncjob explain policy-missing)")


@pytest.mark.parametrize("name", NAMES)
async def test_a_policy_whose_binding_is_gone_is_not_in_force(name: str) -> None:
    server = Server()
    server.bindings = [one for one in server.bindings if one["spec"]["policyName"] != name]
    [line] = await server.missing()
    assert name in line


async def test_a_policy_that_only_warns_is_not_in_force() -> None:
    server = Server()
    for binding in server.bindings:
        binding["spec"] = {**binding["spec"], "validationActions": ["Warn", "Audit"]}
    assert len(await server.missing()) == len(NAMES)


async def test_without_the_permission_it_says_that_it_cannot_see() -> None:
    server = Server()
    server.error = ForbiddenError("no")
    assert await server.missing() == [POLICIES_NOT_READABLE]


async def test_while_running_only_a_change_is_logged_and_that_all_is_whole_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone, outage = ["gone"], UnknownOutcomeError("no answer")
    answers: list[Any] = [[], gone, gone, outage, gone, ["gone", "too"], [], []]

    async def look(_session: Any) -> list[str]:
        if not answers:
            raise asyncio.CancelledError
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return cast("list[str]", answer)

    monkeypatch.setattr(loops, "find_missing_policies", look)
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await loops.run_policy_checks(cast("Any", None), [], 0.0, loop_health())
    assert [entry["event"] for entry in logs] == [
        "gone",
        "policies not checked",
        "gone",
        "too",
        "all policies are in force again",
    ]


async def test_what_was_said_at_the_start_is_not_said_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [["gone"], ["gone"]]

    async def look(_session: Any) -> list[str]:
        if not answers:
            raise asyncio.CancelledError
        return answers.pop()

    monkeypatch.setattr(loops, "find_missing_policies", look)
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await loops.run_policy_checks(cast("Any", None), ["gone"], 0.0, loop_health())
    assert logs == []
