"""Whether a bill of materials (CycloneDX) lists what was installed, neither more nor less. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_PIN: Final = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)(\s*;.*?)?\s*\\?$", re.MULTILINE
)


def pins(requirements: str) -> dict[str, str]:
    """Return name → version of what a requirement file pins for every platform."""
    found = _PIN.findall(requirements)
    return {_normalized_name(name): version for name, version, marker in found if not marker}


def _normalized_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def components(bill: Mapping[str, Any]) -> dict[str, str]:
    """Return name → version of what a bill lists."""
    return {_normalized_name(one["name"]): one["version"] for one in bill.get("components", ())}


def without_local_paths(bill: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bill without the places on the machine that made it."""
    return {
        **bill,
        "components": [_component_without_local_paths(one) for one in bill.get("components", ())],
    }


def _component_without_local_paths(component: Mapping[str, Any]) -> dict[str, Any]:
    kept = [
        one for one in component.get("externalReferences", ()) if not one["url"].startswith("file:")
    ]
    rest = {name: value for name, value in component.items() if name != "externalReferences"}
    return {**rest, "externalReferences": kept} if kept else rest


def bill_problems(
    bill: Mapping[str, Any], requirements: str, own: Mapping[str, str]
) -> Iterator[str]:
    """Yield what is missing from the bill or has another version; `own` are our distributions."""
    listed = components(bill)
    for name, version in {**pins(requirements), **own}.items():
        if listed.get(name) != version:
            yield f"{name}: {version} was to be installed, the bill has {listed.get(name)}"
    if not bill.get("dependencies"):
        yield "the bill does not say what depends on what"
