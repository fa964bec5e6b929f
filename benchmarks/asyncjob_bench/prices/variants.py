"""The installed manifests with one thing changed, whose price is what that saves or adds."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from asyncjob.names import GROUP, JOBS
from asyncjob.schema.policies.ownership import OWNERSHIP_POLICY
from asyncjob.schema.structural import PRESERVE, VALIDATIONS

Manifest = dict[str, Any]
Manifests = list[Manifest]
Change = Callable[[Manifests], Manifests]

ATOMIC: Final = "x-kubernetes-map-type"
UNCHANGED: Final = "as installed"


def _as_installed(them: Manifests) -> Manifests:
    return them


def _ownership_alone(them: Manifests) -> Manifests:
    """Leave out the other policies; this one is what tells a space that policies are in force."""
    return [it for it in them if "Policy" not in it["kind"] or _name(it) == OWNERSHIP_POLICY.name]


def _without_rules(them: Manifests) -> Manifests:
    return _without_keywords(them, VALIDATIONS)


def _without_forms(them: Manifests) -> Manifests:
    return _without_keywords(them, "pattern", "format")


def _without_selectors(them: Manifests) -> Manifests:
    del _version(them)["selectableFields"]
    return them


def _status_by_field(them: Manifests) -> Manifests:
    del _parts(them)["status"][ATOMIC]
    return them


def _spec_whole(them: Manifests) -> Manifests:
    _parts(them)["spec"][ATOMIC] = "atomic"
    return them


def _shapeless(them: Manifests) -> Manifests:
    """Let spec and status hold anything; only what is selected by keeps its type."""
    for part in _parts(_without_keywords(them, VALIDATIONS)).values():
        properties = part.get("properties", {})
        named = [path.split(".")[2] for path in _selected(them)]
        part["properties"] = {name: properties[name] for name in named if name in properties}
        part |= {PRESERVE: True, ATOMIC: "atomic"}
        part.pop("required", None)
    return _ownership_alone(them)


VARIANTS: Final[Mapping[str, Change]] = {
    UNCHANGED: _as_installed,
    "with the policy of ownership alone": _ownership_alone,
    "without rules in the CRD": _without_rules,
    "without patterns and formats": _without_forms,
    "without selectable fields": _without_selectors,
    "status owned field by field": _status_by_field,
    "spec owned whole": _spec_whole,
    "shapeless, with the policy of ownership alone": _shapeless,
}


def _name(manifest: Manifest) -> str:
    name: str = manifest["metadata"]["name"]
    return name


def _version(them: Manifests) -> Manifest:
    crd = next(it for it in them if _name(it) == f"{JOBS}.{GROUP}")
    version: Manifest = crd["spec"]["versions"][0]
    return version


def _selected(them: Manifests) -> list[str]:
    return [it["jsonPath"] for it in _version(them)["selectableFields"]]


def _parts(them: Manifests) -> dict[str, Manifest]:
    """Return the schemas of spec and status."""
    properties = _version(them)["schema"]["openAPIV3Schema"]["properties"]
    return {name: properties[name] for name in ("spec", "status")}


def _without_keywords(them: Manifests, *keywords: str) -> Manifests:
    for part in _parts(them).values():
        for schema in _schemas(part):
            for keyword in keywords:
                schema.pop(keyword, None)
    return them


def _schemas(schema: Manifest) -> Iterator[Manifest]:
    """Yield a schema and all below it."""
    yield schema
    below = [*schema.get("properties", {}).values()]
    below += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    for one in below:
        yield from _schemas(one)
