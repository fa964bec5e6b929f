"""Whether the resource types are installed, and those of this release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from asyncjob.cli.doctor.differences import differences
from asyncjob.cli.doctor.finding import Finding, listed, ok, problem, warning
from asyncjob.errors import ForbiddenError, NotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import API_VERSION
from asyncjob.schema.crd import RESOURCES, crd

CHECK: Final = "Resource types"
APPLY: Final = "kubectl apply -f crds/ of the release that runs in the cluster"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """Names that are served, and the definitions, None where we may not see them."""

    served: frozenset[str]
    definitions: Mapping[str, JsonObject] | None


async def look(session: KubeSession) -> TypeFacts:
    """Ask what is served, and for the definitions."""
    try:
        answer = await session.get(f"/apis/{API_VERSION}")
    except NotFoundError:
        answer = {}
    served = frozenset(text(as_object(one), "name") for one in items(answer, "resources"))
    try:
        found = {r.plural: await _definition(session, r.plural) for r in RESOURCES}
    except ForbiddenError:
        return TypeFacts(served, None)
    return TypeFacts(served, found)


async def _definition(session: KubeSession, plural: str) -> JsonObject:
    try:
        return await session.get(f"{_DEFINITIONS}/{plural}.{API_VERSION.split('/')[0]}")
    except NotFoundError:
        return {}


def judge(facts: TypeFacts) -> Finding:
    """Return whether all are served, and defined as in this release."""
    missing = [r.plural for r in RESOURCES if r.plural not in facts.served]
    if missing:
        return problem(CHECK, f"not served: {listed(missing)}", APPLY)
    if facts.definitions is None:
        said = "served; no permission to compare them with this release's"
        return warning(CHECK, said, "needs get on customresourcedefinitions")
    other = [where for r in RESOURCES for where in _other(facts.definitions[r.plural], r.plural)]
    if other:
        said = f"not those of this release: {listed(other, 3)}"
        return warning(CHECK, said, f"{APPLY}, or use the command line of that release")
    return ok(CHECK, "installed, and those of this release")


def _other(installed: JsonObject, plural: str) -> list[str]:
    """Return where a definition is not as this release has it."""
    resource = next(one for one in RESOURCES if one.plural == plural)
    expected = child(crd(resource), "spec")
    return [f"{plural} {path}" for path in differences(expected, installed.get("spec"))][:3]
