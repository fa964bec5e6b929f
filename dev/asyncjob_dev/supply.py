"""What a release is made of, and whether any of it is known to be unsafe: `sbom` and `audit`.

A bill of materials (CycloneDX) is made of an image's pinned requirements and our own wheels,
installed, and checked to list exactly those. It does not know the base image.

Vulnerabilities are looked up by pip-audit and judged here: it calls a package about which its
service says nothing "skipped", and a run in which all were skipped clean. Here what was not looked
up is not clean.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import IntEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from asyncjob_dev.errors import DevError
from asyncjob_dev.signals import click_errors

ROOT: Final = Path()
PROGRAMS: Final = Path(sys.executable).parent

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


FILES: Final = ("worker", "operator", "build", "uv", "dev", "docs")
"""Requirement files; the first two are shipped."""


class AuditVerdict(IntEnum):
    """The exit code."""

    CLEAN = 0
    VULNERABLE = 1
    NOT_LOOKED = 2


@dataclass(frozen=True, slots=True)
class IgnoredVulnerability:
    """A vulnerability that does not concern us: why, and until when that was thought through."""

    id: str
    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class AuditOutput:
    """What a run of pip-audit left."""

    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in one file, and what of it was not looked up."""

    file: str
    checked: int = 0
    vulnerable: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def findings(
    file: str, ran: AuditOutput, ignored: Mapping[str, IgnoredVulnerability], today: date
) -> Findings:
    """Return what a run found; one without a readable answer has looked at nothing."""
    try:
        dependencies: list[dict[str, Any]] = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = ran.stderr.strip().splitlines()[-1:] or ["no answer"]
        return Findings(file, unknown=(f"all of it: {last[0][:300]}",))
    unknown = [one for one in dependencies if "skip_reason" in one]
    return Findings(
        file,
        checked=len(dependencies) - len(unknown),
        vulnerable=tuple(_vulnerabilities(dependencies, ignored, today)),
        unknown=tuple(f"{one['name']}: {one['skip_reason']}" for one in unknown),
    )


def _vulnerabilities(
    dependencies: list[dict[str, Any]], ignored: Mapping[str, IgnoredVulnerability], today: date
) -> Iterator[str]:
    for one in dependencies:
        for found in one.get("vulns", ()):
            ids = (found["id"], *found.get("aliases", ()))
            known = next((ignored[id_] for id_ in ids if id_ in ignored), None)
            if known and known.until >= today:
                continue
            late = f"; ignored until {known.until}: think again" if known else ""
            fixes = ", ".join(found.get("fix_versions", ())) or "no version yet"
            yield f"{one['name']} {one['version']}: {' '.join(ids)}, fixed in {fixes}{late}"


def verdict(all_: list[Findings]) -> AuditVerdict:
    """Return the verdict on all files."""
    if any(one.vulnerable for one in all_):
        return AuditVerdict.VULNERABLE
    if any(one.unknown or not one.checked for one in all_):
        return AuditVerdict.NOT_LOOKED
    return AuditVerdict.CLEAN


def report(all_: list[Findings]) -> Iterator[str]:
    """Yield what people are told."""
    for one in all_:
        name = f"requirements/{one.file}.txt"
        yield f"{name}: looked up {one.checked}, vulnerable {len(one.vulnerable)}"
        yield from (f"  VULNERABLE {text}" for text in one.vulnerable)
        if one.unknown:
            more = f" and {len(one.unknown) - 1} more" if len(one.unknown) > 1 else ""
            yield f"  NOT LOOKED UP {one.unknown[0]}{more}"
    yield {
        AuditVerdict.CLEAN: "no known vulnerabilities",
        AuditVerdict.VULNERABLE: "vulnerable: upgrade (make lock), or say in "
        "requirements/audit.toml "
        "why it does not concern us",
        AuditVerdict.NOT_LOOKED: "NOT AUDITED: the advisory service could not be asked about all "
        "of it; "
        "this says nothing about vulnerabilities",
    }[verdict(all_)]


@click.group()
def main() -> None:
    """Say what a release is made of, and whether any of it is known to be unsafe."""


@main.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("dist/sbom"), show_default=True
)
def sbom(out: Path) -> None:
    """Write a bill of materials (CycloneDX) for each image."""
    with click_errors():
        for image in IMAGES:
            click.echo(make_bill(image, ROOT.absolute(), out))


@main.command()
@click.option("--service", type=click.Choice(["pypi", "osv"]), default="pypi", show_default=True)
def audit(service: str) -> None:
    """Look up known vulnerabilities of all that is pinned.

    Exit code 1 if there are some, 2 if not all could be looked up.
    """
    ignored, today = _ignored(), datetime.now(UTC).date()
    found = [findings(file, _ran(file, service), ignored, today) for file in FILES]
    for line in report(found):
        click.echo(line)
    sys.exit(verdict(found))


def _ignored() -> dict[str, IgnoredVulnerability]:
    said = tomllib.loads((ROOT / "requirements/audit.toml").read_text(encoding="utf-8"))
    return {one["id"]: IgnoredVulnerability(**one) for one in said.get("ignored", [])}


def _ran(file: str, service: str) -> AuditOutput:
    options = ("--format=json", "--progress-spinner=off", "--require-hashes", "--disable-pip")
    where = (f"--vulnerability-service={service}", f"--requirement=requirements/{file}.txt")
    program = str(PROGRAMS / "pip-audit")
    done = subprocess.run([program, *options, *where], capture_output=True, text=True, check=False)
    return AuditOutput(done.stdout, done.stderr)


if __name__ == "__main__":
    main()
