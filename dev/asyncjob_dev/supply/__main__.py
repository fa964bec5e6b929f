"""`python -m asyncjob_dev.supply sbom|audit`."""

import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from asyncjob_dev.errors import DevError
from asyncjob_dev.supply.audit import (
    FILES,
    AuditOutput,
    IgnoredVulnerability,
    findings,
    report,
    verdict,
)
from asyncjob_dev.supply.sbom import IMAGES, PROGRAMS, make_bill

ROOT: Final = Path()


@click.group()
def main() -> None:
    """Say what a release is made of, and whether any of it is known to be unsafe."""


@main.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("dist/sbom"), show_default=True
)
def sbom(out: Path) -> None:
    """Write a bill of materials (CycloneDX) for each image."""
    try:
        for image in IMAGES:
            click.echo(make_bill(image, ROOT.absolute(), out))
    except DevError as error:
        raise click.ClickException(str(error)) from error


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
