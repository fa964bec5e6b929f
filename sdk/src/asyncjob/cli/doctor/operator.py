"""Whether an operator is at work: its Lease says who leads, and since when it is silent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.cli.doctor.finding import Finding, ok, problem, warning
from asyncjob.cli.durations import human_duration, parse_time
from asyncjob.errors import ForbiddenError
from asyncjob.json_types import JsonObject, as_object, child, integer, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import OPERATOR_LEASE

OPERATOR_CHECK: Final = "Operator"
START_OPERATOR: Final = "start it; asyncjob-operator check tells what keeps it from working"
MAX_MISSED_LEASES: Final = 3
"""A leader renews several times within its Lease; one so many Leases late is gone."""


@dataclass(frozen=True, slots=True)
class OperatorLease:
    """A Lease by which operators elect their leader."""

    namespace: str
    holder: str
    renew_time: str
    lease_duration_seconds: int


async def fetch_operator_leases(session: KubeSession) -> list[OperatorLease] | None:
    """Return the Leases of operators in all namespaces, or in ours; None if we may see neither."""
    ours = f"/apis/coordination.k8s.io/v1/namespaces/{session.access.namespace}/leases"
    for path in ("/apis/coordination.k8s.io/v1/leases", ours):
        try:
            found = await session.get(path, {"fieldSelector": f"metadata.name={OPERATOR_LEASE}"})
        except ForbiddenError:
            continue
        return [_read_lease(as_object(one)) for one in items(found, "items")]
    return None


def _read_lease(lease: JsonObject) -> OperatorLease:
    said = child(lease, "spec")
    return OperatorLease(
        text(child(lease, "metadata"), "namespace"),
        text(said, "holderIdentity"),
        text(said, "renewTime"),
        integer(said, "leaseDurationSeconds", 15),
    )


def check_operator(leases: Sequence[OperatorLease] | None, now: datetime) -> list[Finding]:
    """Return whether one leads; `now` by the API server's clock."""
    if leases is None:
        return [warning(OPERATOR_CHECK, "no permission to see its Lease", "needs list on leases")]
    if not leases:
        return [
            problem(
                OPERATOR_CHECK, f"no Lease {OPERATOR_LEASE}: none has ever run here", START_OPERATOR
            )
        ]
    return [_check_leader(one, now) for one in leases]


def _check_leader(lease: OperatorLease, now: datetime) -> Finding:
    renewed, where = parse_time(lease.renew_time), f"namespace {lease.namespace}"
    if not lease.holder or renewed is None:
        return problem(OPERATOR_CHECK, f"none leads in {where}", START_OPERATOR)
    silent = (now - renewed).total_seconds()
    said = f"{lease.holder} leads, in {where}"
    if silent > MAX_MISSED_LEASES * lease.lease_duration_seconds:
        return problem(
            OPERATOR_CHECK,
            f"{said}, but has been silent for {human_duration(silent)}",
            START_OPERATOR,
        )
    return ok(OPERATOR_CHECK, f"{said}, seen {human_duration(silent)} ago")
