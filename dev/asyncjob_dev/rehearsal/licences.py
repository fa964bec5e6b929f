"""Whether all that is installed with ours may be passed on with it under Apache-2.0."""

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

ALLOWED: Final = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "PSF-2.0"),
        "MIT-0",  # MIT without its only condition
        "MPL-2.0",  # by file: what is passed on unchanged asks for nothing else
    }
)

_SPDX_BY_NAME: Final[Mapping[str, str]] = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
}
"""Names of classifiers, and of the older field `License`."""

_OPERATORS: Final = frozenset({"AND", "OR", "WITH"})


def licences(expression: str, classifiers: list[str], name: str) -> frozenset[str]:
    """Return all licences that a distribution names; what is not known stands as it is.

    Its expression counts first, then its classifiers, then the older field.
    """
    if expression:
        return frozenset(re.findall(r"[A-Za-z0-9.+-]+", expression)) - _OPERATORS
    said = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: ")]
    return frozenset(_SPDX_BY_NAME.get(one, one) for one in said or [name.strip()[:60]])


def installed_licences(site_packages: Path) -> dict[str, frozenset[str]]:
    """Return name and version → licences of all that is installed there."""
    found = distributions(path=[str(site_packages)])
    return {
        f"{one.name} {one.version}": _licences_of(one)
        for one in sorted(found, key=lambda one: one.name.lower())
    }


def problems(found: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield each distribution with a licence that is not allowed: all that it names have to be."""
    for name, named in found.items():
        if bad := named - ALLOWED:
            listed = ", ".join(sorted(filter(None, bad)))
            yield f"{name}: {listed} is not on the list" if listed else f"{name} names no licence"


def _licences_of(one: Distribution) -> frozenset[str]:
    metadata = one.metadata
    return licences(
        metadata["License-Expression"] or "",
        metadata.get_all("Classifier") or [],
        metadata["License"] or "",
    )
