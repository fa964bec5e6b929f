"""What schema and rules cost the API server.

The same three writes with one thing changed in the manifests at a time. What the server allocates
is steady within two hundredths, unlike its CPU time; collecting that again is a good part of its
work.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.transitions import StatusCounter
from asyncjob.names import GROUP, JOBS
from asyncjob.rules.job_policies import OWNERSHIP_POLICY
from asyncjob.schema.manifests import manifests, mutating_manifests
from asyncjob.schema.structural import PRESERVE, VALIDATIONS
from asyncjob_bench.harness.site import site
from asyncjob_bench.parts.ceiling import three_writes
from asyncjob_bench.parts.part import Numbers, Scale
from asyncjob_bench.stats.results import Row, round_order
from asyncjob_dev.environment.components import DEV_MANIFESTS

Manifest = dict[str, Any]
Manifests = list[Manifest]
Change = Callable[[Manifests], Manifests]

ATOMIC: Final = "x-kubernetes-map-type"
UNCHANGED: Final = "as installed"
UNTRACKED: Final = "without managedFields of jobs that nobody applies"


def _as_installed(them: Manifests) -> Manifests:
    return them


def _untracked(them: Manifests) -> Manifests:
    """Add what takes managedFields off jobs that nobody applies."""
    return [*them, *loaded(mutating_manifests())]


def _ownership_alone(them: Manifests) -> Manifests:
    """Leave out the other policies; this one is what tells a space that policies are in force."""
    return [it for it in them if "Policy" not in it["kind"] or _name(it) == OWNERSHIP_POLICY.name]


def _without_rules(them: Manifests) -> Manifests:
    return _without_keywords(them, VALIDATIONS)


def _zeros_stored(them: Manifests) -> Manifests:
    """Have counters stored from the start."""
    status = _parts(them)["status"]["properties"]
    for name in (*StatusCounter, "redrives", "reruns"):
        status[name]["default"] = 0
    return them


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
    UNTRACKED: _untracked,
    "with the policy of ownership alone": _ownership_alone,
    "without rules in the CRD": _without_rules,
    "with counters stored as 0": _zeros_stored,
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


ROUNDS: Final = 2


def measure_variants(
    scale: Scale, say: Callable[[str], None], names: Sequence[str] = tuple(VARIANTS)
) -> list[Row]:
    """Measure variants in rounds, `UNCHANGED` among them; `say` takes a line for whoever waits."""
    found: dict[str, list[Numbers]] = {name: [] for name in names}
    for number in range(ROUNDS):
        for name in round_order(list(found), number):
            found[name].append(measure_variant(VARIANTS[name], scale))
            say(f"{name}: {found[name][-1]['KiB/job']:.0f} KiB per job")
    return variant_rows(found)


def variant_rows(found: Mapping[str, list[Numbers]]) -> list[Row]:
    """Return the table: medians, and what each saves of what the installed manifests cost."""
    medians = {
        name: {key: median(one[key] for one in rounds) for key in rounds[0]}
        for name, rounds in found.items()
    }
    whole = medians[UNCHANGED]["KiB/job"]
    return [
        {"what": name, **numbers, "saves %": 100 * (1 - numbers["KiB/job"] / whole)}
        for name, numbers in medians.items()
    ]


def measure_variant(change: Change, scale: Scale) -> Numbers:
    """Return what one job costs with the changed manifests, on a control plane of its own."""
    with TemporaryDirectory(prefix="asyncjob-bench-") as folder:
        file = Path(folder) / "changed.yaml"
        file.write_text(yaml.safe_dump_all(change(installed())), encoding="utf-8")
        with site(controllers=False, manifests=(file.parent, DEV_MANIFESTS)) as here:
            return three_writes(here, scale)


def installed() -> Manifests:
    """Return the manifests again each time: a variant changes them in place."""
    return loaded(manifests())


def loaded(files: Mapping[str, Sequence[JsonObject]]) -> Manifests:
    """Return the objects of files, each apart from all others."""
    texts = yaml.safe_dump_all(one for objects in files.values() for one in objects)
    return list(yaml.safe_load_all(texts))
