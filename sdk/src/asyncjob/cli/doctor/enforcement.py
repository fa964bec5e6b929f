"""Whether the API server refuses what the policies forbid: shown by dry runs of such writes."""

from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.cli.doctor.finding import Finding, ok, problem, warning
from asyncjob.errors import ApiError, ForbiddenError, InvalidError, NotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import API_VERSION, JOB_KIND, JOBS, collection, job_path
from asyncjob.schema.policies.spec import CREATION, SPEC

CHECK: Final = "Enforcement"
DRY: Final = {"dryRun": "All"}


class Trial(StrEnum):
    """What came of a forbidden write."""

    REFUSED = "refused"
    PASSED = "passed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class EnforcementFacts:
    """What came of each trial."""

    creation: Trial
    change: Trial


async def look(session: KubeSession) -> EnforcementFacts:
    """Try to create a job that begins redriven, and to change the type of one that there is."""
    return EnforcementFacts(await _creation(session), await _change(session))


async def _creation(session: KubeSession) -> Trial:
    body: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {"generateName": "asyncjob-doctor-"},
        "spec": {"type": "asyncjob-doctor", "redrive": 1},
    }
    path = collection(session.access.namespace, JOBS)
    return await _tried(session.create(path, body, DRY), CREATION.name)


async def _change(session: KubeSession) -> Trial:
    try:
        page = await session.get(collection(session.access.namespace, JOBS), {"limit": "1"})
    except ApiError:
        return Trial.NOT_TRIED
    for one in items(page, "items"):
        name = text(child(as_object(one), "metadata"), "name")
        path = job_path(session.access.namespace, name)
        body: JsonObject = {"spec": {"type": "asyncjob-doctor"}}
        return await _tried(session.merge_patch(path, body, DRY), SPEC.name)
    return Trial.NOT_TRIED


async def _tried(write: Awaitable[JsonObject], policy: str) -> Trial:
    """Return what came of it; only the policy's own refusal proves anything."""
    try:
        await write
    except (ForbiddenError, InvalidError) as error:
        return Trial.REFUSED if policy in str(error) else Trial.NOT_TRIED
    except NotFoundError:
        return Trial.NOT_TRIED
    return Trial.PASSED


def judge(facts: EnforcementFacts) -> Finding:
    """Return whether forbidden writes are refused."""
    trials = (facts.creation, facts.change)
    if Trial.PASSED in trials:
        said = "the API server let a forbidden write pass (in a dry run)"
        way = "kubectl apply -f crds/; policies take some seconds to come into force"
        return problem(CHECK, said, way)
    if Trial.REFUSED in trials:
        count = trials.count(Trial.REFUSED)
        return ok(CHECK, f"{count} forbidden write{'s' * (count > 1)} tried, in a dry run: refused")
    said = "no forbidden write could be tried"
    return warning(CHECK, said, "needs create or patch on asyncjobs in this namespace")
