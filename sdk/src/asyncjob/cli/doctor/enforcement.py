"""Whether the API server refuses what the policies forbid: shown by dry runs of such writes."""

from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.cli.doctor.finding import Finding, ok, problem, warning
from asyncjob.errors import ApiError, ForbiddenError, InvalidError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import API_VERSION, JOB_KIND, JOBS, collection_path, job_path
from asyncjob.schema.policies.spec import CREATION_POLICY, SPEC_POLICY

ENFORCEMENT_CHECK: Final = "Enforcement"
DRY_RUN: Final = {"dryRun": "All"}


class ProbeResult(StrEnum):
    """What came of a forbidden write."""

    REFUSED = "refused"
    PASSED = "passed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class EnforcementFacts:
    """What came of each trial."""

    creation: ProbeResult
    change: ProbeResult


async def probe_enforcement(session: KubeSession) -> EnforcementFacts:
    """Try to create a job that begins redriven, and to change the type of one that there is."""
    return EnforcementFacts(await _probe_creation(session), await _probe_change(session))


async def _probe_creation(session: KubeSession) -> ProbeResult:
    body: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {"generateName": "asyncjob-doctor-"},
        "spec": {"type": "asyncjob-doctor", "redrive": 1},
    }
    path = collection_path(session.access.namespace, JOBS)
    return await _probe(session.create(path, body, DRY_RUN), CREATION_POLICY.name)


async def _probe_change(session: KubeSession) -> ProbeResult:
    try:
        page = await session.get(collection_path(session.access.namespace, JOBS), {"limit": "1"})
    except ApiError:
        return ProbeResult.NOT_TRIED
    for one in items(page, "items"):
        name = text(child(as_object(one), "metadata"), "name")
        path = job_path(session.access.namespace, name)
        body: JsonObject = {"spec": {"type": "asyncjob-doctor"}}
        return await _probe(session.merge_patch(path, body, DRY_RUN), SPEC_POLICY.name)
    return ProbeResult.NOT_TRIED


async def _probe(write: Awaitable[JsonObject], policy: str) -> ProbeResult:
    """Return what came of it; only the policy's own refusal proves anything."""
    try:
        await write
    except (ForbiddenError, InvalidError) as error:
        return ProbeResult.REFUSED if policy in str(error) else ProbeResult.NOT_TRIED
    except ObjectNotFoundError:
        return ProbeResult.NOT_TRIED
    return ProbeResult.PASSED


def check_enforcement(facts: EnforcementFacts) -> Finding:
    """Return whether forbidden writes are refused."""
    trials = (facts.creation, facts.change)
    if ProbeResult.PASSED in trials:
        said = "the API server let a forbidden write pass (in a dry run)"
        way = "kubectl apply -f crds/; policies take some seconds to come into force"
        return problem(ENFORCEMENT_CHECK, said, way)
    if ProbeResult.REFUSED in trials:
        count = trials.count(ProbeResult.REFUSED)
        return ok(
            ENFORCEMENT_CHECK,
            f"{count} forbidden write{'s' * (count > 1)} tried, in a dry run: refused",
        )
    said = "no forbidden write could be tried"
    return warning(ENFORCEMENT_CHECK, said, "needs create or patch on asyncjobs in this namespace")
