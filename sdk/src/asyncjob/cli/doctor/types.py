"""Whether the resource types are installed, and those of this release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from asyncjob.cli.doctor.differences import differences
from asyncjob.cli.doctor.finding import Finding, join_some, ok, problem, warning
from asyncjob.errors import ForbiddenError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import API_VERSION
from asyncjob.schema.crd import CUSTOM_RESOURCES, crd

RESOURCE_TYPES_CHECK: Final = "Resource types"
APPLY_RELEASE_CRDS: Final = "kubectl apply -f crds/ of the release that runs in the cluster"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class ResourceTypeFacts:
    """Names that are served, and the definitions, None where we may not see them."""

    served: frozenset[str]
    definitions: Mapping[str, JsonObject] | None


async def fetch_resource_type_facts(session: KubeSession) -> ResourceTypeFacts:
    """Ask what is served, and for the definitions."""
    try:
        answer = await session.get(f"/apis/{API_VERSION}")
    except ObjectNotFoundError:
        answer = {}
    served = frozenset(text(as_object(one), "name") for one in items(answer, "resources"))
    try:
        found = {r.plural: await _get_definition(session, r.plural) for r in CUSTOM_RESOURCES}
    except ForbiddenError:
        return ResourceTypeFacts(served, None)
    return ResourceTypeFacts(served, found)


async def _get_definition(session: KubeSession, plural: str) -> JsonObject:
    try:
        return await session.get(f"{_DEFINITIONS}/{plural}.{API_VERSION.split('/')[0]}")
    except ObjectNotFoundError:
        return {}


def check_resource_types(facts: ResourceTypeFacts) -> Finding:
    """Return whether all are served, and defined as in this release."""
    missing = [r.plural for r in CUSTOM_RESOURCES if r.plural not in facts.served]
    if missing:
        return problem(
            RESOURCE_TYPES_CHECK, f"not served: {join_some(missing)}", APPLY_RELEASE_CRDS
        )
    if facts.definitions is None:
        said = "served; no permission to compare them with this release's"
        return warning(RESOURCE_TYPES_CHECK, said, "needs get on customresourcedefinitions")
    other = [
        where
        for r in CUSTOM_RESOURCES
        for where in _definition_differences(facts.definitions[r.plural], r.plural)
    ]
    if other:
        said = f"not those of this release: {join_some(other, 3)}"
        return warning(
            RESOURCE_TYPES_CHECK,
            said,
            f"{APPLY_RELEASE_CRDS}, or use the command line of that release",
        )
    return ok(RESOURCE_TYPES_CHECK, "installed, and those of this release")


def _definition_differences(installed: JsonObject, plural: str) -> list[str]:
    """Return where a definition is not as this release has it."""
    resource = next(one for one in CUSTOM_RESOURCES if one.plural == plural)
    expected = child(crd(resource), "spec")
    return [f"{plural} {path}" for path in differences(expected, installed.get("spec"))][:3]
