"""Whether an operator is at work: its Lease says who leads, and since when it is silent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.cli.doctor.finding import Finding, ok, problem, warning
from asyncjob.cli.durations import age, moment
from asyncjob.errors import ForbiddenError
from asyncjob.json_types import JsonObject, as_object, child, integer, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import OPERATOR_LEASE

CHECK: Final = "Operator"
START: Final = "start it; asyncjob-operator check tells what keeps it from working"
LATE: Final = 3
"""A leader renews several times within its Lease; one so many Leases late is gone."""


@dataclass(frozen=True, slots=True)
class Election:
    """A Lease by which operators elect their leader."""

    namespace: str
    holder: str
    renewed: str
    seconds: int


async def look(session: KubeSession) -> list[Election] | None:
    """Return the Leases of operators in all namespaces, or in ours; None if we may see neither."""
    ours = f"/apis/coordination.k8s.io/v1/namespaces/{session.access.namespace}/leases"
    for path in ("/apis/coordination.k8s.io/v1/leases", ours):
        try:
            found = await session.get(path, {"fieldSelector": f"metadata.name={OPERATOR_LEASE}"})
        except ForbiddenError:
            continue
        return [_election(as_object(one)) for one in items(found, "items")]
    return None


def _election(lease: JsonObject) -> Election:
    said = child(lease, "spec")
    return Election(
        text(child(lease, "metadata"), "namespace"),
        text(said, "holderIdentity"),
        text(said, "renewTime"),
        integer(said, "leaseDurationSeconds", 15),
    )


def judge(elections: Sequence[Election] | None, now: datetime) -> list[Finding]:
    """Return whether one leads; `now` by the API server's clock."""
    if elections is None:
        return [warning(CHECK, "no permission to see its Lease", "needs list on leases")]
    if not elections:
        return [problem(CHECK, f"no Lease {OPERATOR_LEASE}: none has ever run here", START)]
    return [_judge(one, now) for one in elections]


def _judge(election: Election, now: datetime) -> Finding:
    renewed, where = moment(election.renewed), f"namespace {election.namespace}"
    if not election.holder or renewed is None:
        return problem(CHECK, f"none leads in {where}", START)
    silent = (now - renewed).total_seconds()
    said = f"{election.holder} leads, in {where}"
    if silent > LATE * election.seconds:
        return problem(CHECK, f"{said}, but has been silent for {age(silent)}", START)
    return ok(CHECK, f"{said}, seen {age(silent)} ago")
