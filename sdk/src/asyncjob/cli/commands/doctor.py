"""`doctor`: what is wrong, and the way out."""

import click

from asyncjob.cli.doctor.examination import examine_jobs, examine_surroundings, is_there
from asyncjob.cli.doctor.finding import Finding
from asyncjob.cli.doctor.report import as_json, exit_code, report, summary
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.place import Place, placed
from asyncjob.cli.screen import Format, Screen, note, shown
from asyncjob.cli.world import World
from asyncjob.errors import AsyncJobError


@click.command(cls=SectionedCommand)
@click.option("--strict", is_flag=True, help="Exit code 1 for warnings, too.")
@shown(Format.TABLE, Format.JSON, Format.YAML)
@placed
@click.pass_obj
def doctor(world: World, *, strict: bool, place: Place, screen: Screen) -> int:
    """Find out what is wrong, and the way out.

    Looks at the API server, its version and clock, the resource types and policies and whether
    they are enforced (by dry runs that change nothing), your permissions, the operator, workers,
    stuck jobs and dead letters; with --server at the gateway. Exit code 1 if there is a problem.
    """
    findings = examine_surroundings(place, world.now)
    if is_there(findings):
        findings += _of_jobs(world, place)
    if screen.for_people:
        for line in report(findings, colour=screen.colour):
            screen.line(line)
        note(summary(findings))
    else:
        screen.data({"items": [as_json(one) for one in findings]})
    return exit_code(findings, strict=strict)


def _of_jobs(world: World, place: Place) -> list[Finding]:
    try:
        with world.connect(place) as jobs:
            return examine_jobs(jobs, world.now())
    except AsyncJobError:
        return []  # what keeps us from connecting has been found already
