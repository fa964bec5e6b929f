"""Makes a bill of materials for each image: its pinned requirements and our own wheels, installed.

From what is installed it has licences and dependencies, which requirement files lack. It does not
know the base image: whoever chooses that knows its own.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from asyncjob_dev.errors import DevError
from asyncjob_dev.supply.bill import bill_problems, without_local_paths

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
