"""Stores what the next version is tested on, and says what a release still lacks.

Matching versions, a changelog entry, stored fixtures, and base images named by a digest.
"""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from filecmp import dircmp
from pathlib import Path
from typing import Final

import yaml

from asyncjob_dev.release.writes import record_lives

DOCKERFILES: Final = (Path("worker-image/Dockerfile"), Path("operator/Dockerfile"))

_PINNED: Final = re.compile(r"\S+@sha256:[0-9a-f]{64}")
_ARG: Final = re.compile(r"ARG\s+(\w+)=(\S+)")
_FROM: Final = re.compile(r"FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")


def unpinned_images(root: Path, given: Mapping[str, str]) -> Iterator[str]:
    """Yield what is built on an image without a digest, with the way out.

    `given` are build arguments, as the release workflow gives them.
    """
    for file in DOCKERFILES:
        for image in dict.fromkeys(images((root / file).read_text(encoding="utf-8"), given)):
            if not _PINNED.fullmatch(image):
                yield (
                    f"{file}: {image} is a base without a digest: BASE=image@sha256:… says which "
                    "(the release workflow takes it from the repository variable IMAGE_BASE)"
                )


def images(dockerfile: str, given: Mapping[str, str]) -> Iterator[str]:
    """Yield the images that the stages of a Dockerfile begin with, but for other stages."""
    arguments: dict[str, str] = {}
    stages = {"scratch"}
    for line in dockerfile.splitlines():
        if argument := _ARG.fullmatch(line.strip()):
            name, default = argument.groups()
            arguments[name] = given.get(name) or _filled(default, arguments)
        elif stage := _FROM.fullmatch(line.strip()):
            image, name = _filled(stage[1], arguments), stage[2]
            if image not in stages:
                yield image
            if name:
                stages.add(name)


def _filled(text: str, arguments: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: arguments.get(found[1], found[0]), text)


DISTRIBUTIONS: Final = ("sdk", "operator", "worker-image", "dev")
RELEASES: Final = Path("tests/releases")
CHART: Final = Path("charts/asyncjob")
WRITES: Final = "writes.json"


def store(root: Path, version: str) -> Path:
    """Write the chart as it is, and the writes of this version's code, into their folder."""
    folder = root / RELEASES / version
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(root / CHART, folder / "chart")
    (folder / WRITES).write_text(_writes(version), encoding="utf-8")
    return folder


def _writes(version: str) -> str:
    return json.dumps(record_lives(version), indent=1) + "\n"


def missing_for_release(root: Path) -> Iterator[str]:
    """Yield what keeps the tree from being released, with the way out."""
    found = versions(root)
    if len(set(found.values())) > 1:
        told = ", ".join(f"{where} {version}" for where, version in found.items())
        yield f"versions differ: {told}"
    version = found["charts/asyncjob"]
    if not re.search(
        rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d$", _changelog(root), re.MULTILINE
    ):
        yield f"CHANGELOG.md: no heading `## {version}, YYYY-MM-DD`"
    folder = root / RELEASES / version
    if not folder.is_dir():
        yield f"{RELEASES / version} is missing: make release-fixtures"
    elif list(_differences(dircmp(root / CHART, folder / "chart"))):
        yield f"{RELEASES / version}/chart is not the chart: make release-fixtures"
    elif (folder / WRITES).read_text(encoding="utf-8") != _writes(version):
        yield f"{RELEASES / version}/{WRITES} is not what the code writes: make release-fixtures"


def versions(root: Path) -> dict[str, str]:
    """Return the version of each part."""
    found = {
        part: tomllib.loads((root / part / "pyproject.toml").read_text())["project"]["version"]
        for part in DISTRIBUTIONS
    }
    chart = yaml.safe_load((root / CHART / "Chart.yaml").read_text())
    return {**found, "charts/asyncjob": chart["version"], "appVersion": chart["appVersion"]}


def _changelog(root: Path) -> str:
    return (root / "CHANGELOG.md").read_text(encoding="utf-8")


def _differences(compared: "dircmp[str]") -> Iterator[str]:
    yield from (*compared.left_only, *compared.right_only, *compared.diff_files)
    for inner in compared.subdirs.values():
        yield from _differences(inner)
