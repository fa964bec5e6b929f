"""Files that come along and are no Python: CRDs, roles, examples, modules that pin programs.

A wheel has them inside of the package. A checkout has each once, where people look for it.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parents[1]
"""The repository, if this is a checkout."""

_IN_A_CHECKOUT = {
    "crds": "crds",
    "examples": "examples",
    "manifests": "dev/manifests",
    "tools": "dev/tools",
}


def bundled(name: str) -> Path:
    """Return the folder of that name, one of those that are bundled."""
    packed = PACKAGE / name
    return packed if packed.is_dir() else CHECKOUT / _IN_A_CHECKOUT[name]
