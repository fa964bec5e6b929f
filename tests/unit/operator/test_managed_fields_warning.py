"""The operator warns as it starts where no managedFields, and nothing else, tell jobs' ages."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from asyncjob.errors import ApiError, ForbiddenError, ObjectNotFoundError
from asyncjob_operator.kube.preflight import preflight
from asyncjob_operator.settings import Settings
from asyncjob_operator.startup_checks import AGES_NOT_STORED, wait_for_prerequisites
from support.in_memory.fake_session import FakeSession

BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
SETTINGS = Settings(lease_namespace="home")


def session(*policies: str, error: ApiError | None = None) -> FakeSession:
    """Return a session to an API server with bindings of these policies that change writes."""
    made = FakeSession()
    made.server.install(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": f"of-{name}"},
            "spec": {"policyName": name},
        }
        for name in policies
    )
    if error:
        made.fail("GET", BINDINGS, error)
    return made


IN_FORCE = ("others.example.org", "managed-fields.asyncjob.dev")


@pytest.mark.parametrize(
    ("policies", "error", "drops"),
    [
        (IN_FORCE, None, True),
        (IN_FORCE[:1], None, False),
        ((), ObjectNotFoundError("before Kubernetes 1.36"), False),
        (IN_FORCE, ForbiddenError("not you"), False),
    ],
    ids=["in force", "not in force", "not served", "not readable"],
)
async def test_whether_jobs_have_managed_fields_keeps_no_operator_from_working(
    policies: tuple[str, ...], error: ApiError | None, *, drops: bool
) -> None:
    findings = await preflight(session(*policies, error=error), ())
    assert findings.drops_managed_fields is drops
    assert [*findings.errors, *findings.warnings, *findings.missing_policies] == []


@pytest.mark.parametrize(
    ("policies", "elects", "warns"),
    [(IN_FORCE, False, True), (IN_FORCE, True, False), ((), False, False)],
    ids=["alone without them", "elected without them", "alone with them"],
)
async def test_it_warns_only_where_nothing_that_tells_when_jobs_ended_outlives_it(
    policies: tuple[str, ...], *, elects: bool, warns: bool
) -> None:
    with capture_logs() as logs:
        await wait_for_prerequisites(session(*policies), replace(SETTINGS, leader_elect=elects))
    said = [(line["log_level"], line["event"]) for line in logs]
    assert said == ([("warning", AGES_NOT_STORED)] if warns else [])
