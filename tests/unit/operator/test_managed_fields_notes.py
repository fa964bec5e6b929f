"""What the operator says, as it starts, of managedFields that jobs have or lack."""

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.errors import ForbiddenError
from asyncjob_operator.kube.preflight import ManagedFields, preflight
from asyncjob_operator.settings import Settings
from asyncjob_operator.startup_checks import wait_for_prerequisites
from support.fake_session import FakeSession

BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
SETTINGS = Settings(lease_namespace="home")


class Session(FakeSession):
    """An API server that answers about policies that change writes as it is told."""

    def __init__(self, *policies: str | None, readable: bool = True) -> None:
        super().__init__()
        self._policies = policies
        if not readable:
            self.fail("GET", BINDINGS, ForbiddenError("not you"))

    async def get(self, path: str, params: Any = None) -> Any:
        if path == BINDINGS and self._policies:
            bound = [{"spec": {"policyName": name}} for name in self._policies]
            return {"items": bound}
        return await super().get(path, params)


IN_FORCE = Session("others.example.org", "managed-fields.asyncjob.dev")


@pytest.mark.parametrize(
    ("session", "found", "said"),
    [
        (IN_FORCE, ManagedFields.DROPPED, None),
        (Session("others.example.org"), ManagedFields.KEPT, "kubectl apply -f crds/mutating/"),
        (Session(), ManagedFields.NOT_SERVED, "does not serve MutatingAdmissionPolicy"),
        (Session(readable=False), ManagedFields.UNKNOWN, None),
    ],
    ids=["in force", "not in force", "not served", "not readable"],
)
async def test_it_says_why_jobs_have_managed_fields_and_what_that_means(
    session: Session, found: ManagedFields, said: str | None
) -> None:
    findings = await preflight(session, ())
    assert findings.managed_fields is found
    assert [*findings.errors, *findings.warnings, *findings.missing_policies] == []
    if said is None:
        assert findings.notes == []
    else:
        [note] = findings.notes
        assert said in note
        assert "each of their writes costs more, nothing else differs" in note


@pytest.mark.parametrize("elects", [True, False])
async def test_it_warns_where_nothing_would_outlive_it_that_tells_when_jobs_ended(
    *, elects: bool
) -> None:
    with capture_logs() as logs:
        await wait_for_prerequisites(IN_FORCE, replace(SETTINGS, leader_elect=elects))
    warned = [line for line in logs if "retention counts their age" in line["event"]]
    assert [line["log_level"] for line in warned] == ([] if elects else ["warning"])


async def test_a_note_is_logged_once_the_operator_can_work() -> None:
    with capture_logs() as logs:
        await wait_for_prerequisites(Session(), SETTINGS)
    [line] = [line for line in logs if "MutatingAdmissionPolicy" in line["event"]]
    assert line["log_level"] == "info"
