"""Makes a bill of materials (CycloneDX) for each image.

It is made from the image's pinned requirements and our own wheels, installed, and checked to list
exactly those. It does not know the base image.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from asyncjob_dev.errors import DevError

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


PROGRAMS: Final = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its requirement file, and the folders of our distributions in it."""

    name: str
    requirements: str
    distributions: tuple[str, ...]


IMAGES: Final = (
    Image("asyncjob-worker", "worker", ("sdk", "worker-image")),
    Image("asyncjob-operator", "operator", ("sdk", "operator")),
)


class BillError(DevError):
    """A bill of materials could not be made, or is not what was installed."""


def make_bill(image: Image, root: Path, out: Path) -> Path:
    """Write `out`/NAME.cdx.json; raises BillError."""
    pinned = root / "requirements" / f"{image.requirements}.txt"
    target = out / f"{image.name}.cdx.json"
    with TemporaryDirectory() as folder:
        python = _installed(image, root, pinned, Path(folder))
        project = root / image.distributions[-1] / "pyproject.toml"
        bill = _run(
            "cyclonedx-py",
            "environment",
            str(python),
            f"--pyproject={project}",
            "--output-reproducible",
        )
    made = without_local_paths(json.loads(bill))
    found = list(bill_problems(made, pinned.read_text(), _own(image, root)))
    if found:
        raise BillError(f"{image.name}: {'; '.join(found)}")
    out.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(made, indent=1) + "\n")
    return target


def _installed(image: Image, root: Path, pinned: Path, folder: Path) -> Path:
    """Return the Python of an environment in which all of the image is installed."""
    wheels = folder / "wheels"
    for part in image.distributions:
        command = (str(PROGRAMS / "python"), "-m", "hatchling", "build", "-t", "wheel")
        _run(*command, "-d", str(wheels), cwd=root / part)
    environment = folder / "environment"
    _run("uv", "venv", "--quiet", f"--python={sys.executable}", str(environment))
    python = environment / "bin" / "python"
    into = ("uv", "pip", "install", "--quiet", f"--python={python}")
    _run(*into, "--require-hashes", f"--requirement={pinned}")
    _run(*into, "--no-deps", *map(str, sorted(wheels.glob("*.whl"))))
    return python


def _own(image: Image, root: Path) -> Mapping[str, str]:
    """Return our distributions, but for the one that the bill is about."""
    projects = [
        tomllib.loads((root / part / "pyproject.toml").read_text())["project"]
        for part in image.distributions[:-1]
    ]
    return {project["name"]: project["version"] for project in projects}


def _run(program: str, *arguments: str, cwd: Path | None = None) -> str:
    path = program if "/" in program else str(PROGRAMS / program)
    done = subprocess.run([path, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BillError(f"{program} {arguments[0]}: {done.stderr.strip()[-2000:]}")
    return done.stdout
