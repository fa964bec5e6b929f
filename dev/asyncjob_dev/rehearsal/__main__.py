"""`python -m asyncjob_dev.rehearsal`: `make release-rehearsal`."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from asyncjob_dev.errors import DevError
from asyncjob_dev.progress import note
from asyncjob_dev.rehearsal import builds, development, installs, suites
from asyncjob_dev.rehearsal.report import Check, StepReport, failed, has_failed, lines
from asyncjob_dev.signals import click_errors, unwind_on_signals

STEPS: Final[Mapping[str, Callable[[Path], Iterator[Check]]]] = {
    "wheels": builds.wheels,
    "reproducible": builds.reproducible,
    "chart": builds.chart,
    "licences": installs.licences,
    "install": installs.install,
    "tutorial": installs.tutorial,
    "dev": development.dev,
    "upgrade": suites.upgrade,
    "sbom": suites.sbom,
    "images": suites.images,
    "node": suites.node,
}
"""In the order in which they run: `licences`, `install`, `tutorial` and `dev` need what `wheels`
made, and `node` what `chart` made."""


@click.command()
@click.option("--steps", default="", help=f"Some of {', '.join(STEPS)}, in this order.")
def main(steps: str) -> None:
    """Rehearse a release."""
    wanted = steps.split(",") if steps else list(STEPS)
    if unknown := [name for name in wanted if name not in STEPS]:
        raise click.UsageError(f"no step {', '.join(unknown)}: there are {', '.join(STEPS)}")
    with click_errors(), unwind_on_signals():
        reports = [_run(name) for name in STEPS if name in wanted]
    for line in lines(reports):
        click.echo(line)
    sys.exit(has_failed(reports))


def _run(name: str) -> StepReport:
    note(f"{name} …")
    began = time.monotonic()
    checks: list[Check] = []
    try:
        checks.extend(STEPS[name](Path().absolute()))
    except (DevError, OSError) as error:
        checks.append(failed(name, str(error)))
    return StepReport(name, tuple(checks), time.monotonic() - began)


if __name__ == "__main__":
    main()
