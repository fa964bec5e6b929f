"""What the operator says of policies that are not in force, and how often."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.errors import UnknownOutcomeError
from asyncjob.rules.policies import POLICIES
from asyncjob_operator import loops
from asyncjob_operator.kube.preflight import (
    MISSING_POLICY_RISKS,
    POLICIES_NOT_READABLE,
    find_missing_policies,
)
from support.in_memory.fake_session import OPERATOR, FakeSession, Object
from support.parts.vitals import loop_health

NAMES = [policy.name for policy in POLICIES]
ADMISSION, RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
BINDINGS = (ADMISSION, "validatingadmissionpolicybindings")


def bindings(cluster: FakeSession) -> list[Object]:
    """Return the bindings of policies."""
    return list(cluster.server.storage.collection(BINDINGS).objects.values())


class PolicyCluster(FakeSession):
    """A cluster with all policies, each bound to deny."""

    async def missing(self) -> list[str]:
        return await find_missing_policies(self)


def test_every_policy_of_the_book_is_looked_for() -> None:
    assert set(MISSING_POLICY_RISKS) == set(NAMES)


async def test_where_all_policies_are_bound_nothing_is_said() -> None:
    assert await PolicyCluster().missing() == []


@pytest.mark.parametrize("name", NAMES)
async def test_a_missing_policy_is_named_with_what_it_means_and_what_to_do(name: str) -> None:
    cluster = PolicyCluster()
    cluster.server.storage.remove((ADMISSION, "validatingadmissionpolicies"), ("", name))
    [line] = await cluster.missing()
    assert line.startswith(f"the policy {name} is not in force: {MISSING_POLICY_RISKS[name]}; ")
    assert line.endswith("kubectl apply -f crds/ (asyncjob explain policy-missing)")


@pytest.mark.parametrize("name", NAMES)
async def test_a_policy_whose_binding_is_gone_is_not_in_force(name: str) -> None:
    cluster = PolicyCluster()
    [binding] = [one for one in bindings(cluster) if one["spec"]["policyName"] == name]
    cluster.server.storage.remove(BINDINGS, ("", binding["metadata"]["name"]))
    [line] = await cluster.missing()
    assert name in line


async def test_a_policy_that_only_warns_is_not_in_force() -> None:
    cluster = PolicyCluster()
    for binding in bindings(cluster):
        spec = {**binding["spec"], "validationActions": ["Warn", "Audit"]}
        name = binding["metadata"]["name"]
        cluster.server.storage.put(BINDINGS, ("", name), {**binding, "spec": spec})
    assert len(await cluster.missing()) == len(NAMES)


async def test_without_the_permission_it_says_that_it_cannot_see() -> None:
    cluster = PolicyCluster()
    cluster.server.storage.remove((RBAC, "clusterrolebindings"), ("", f"{OPERATOR}-install"))
    assert await cluster.missing() == [POLICIES_NOT_READABLE]


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
