"""Puts into the archives what the development server takes from elsewhere in the repository."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLED = {
    "crds": "../crds",
    "manifests": "manifests",
    **{f"tools/{tool}": f"tools/{tool}" for tool in ("etcd", "kube-apiserver", "kubectl")},
    **{f"examples/{part}": f"../examples/{part}" for part in ("data", "handlers")},
}
"""Name in the package → place in the repository, as seen from this folder."""

DEMO = "../examples/*.yaml"


class BundleHook(BuildHookInterface):  # type: ignore[misc]  # hatchling ships no types that mypy finds
    """Adds it inside of the package, where `asyncjob_dev.bundled` looks.

    A source archive has it there as well, so that a wheel can be built away from the repository.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, unless they are there, or what is built is a link to the repository."""
        here = Path(self.root)
        if version == "editable" or not (here / "../crds").is_dir():
            return
        places = {name: here / place for name, place in BUNDLED.items()}
        places |= {f"examples/{path.name}": path for path in here.glob(DEMO)}
        for name, place in places.items():
            build_data["force_include"][str(place.resolve())] = f"asyncjob_dev/{name}"
