"""`wait`: until jobs have finished. How it ended is in the exit code."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import click

from asyncjob.cli.durations import Duration, exactly
from asyncjob.cli.exit_codes import ExitCode, worst
from asyncjob.cli.failures import exit_code, sentence
from asyncjob.cli.filters import PhaseName
from asyncjob.cli.job_rows import job_table
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.naming import Name, distinct, program
from asyncjob.cli.place import Place, placed
from asyncjob.cli.screen import Screen, note, shown
from asyncjob.cli.waiting import FINISHED, Come, judge, line, pauses_of
from asyncjob.cli.world import World
from asyncjob.client.errors import NotFoundError
from asyncjob.client.interface import Jobs
from asyncjob.errors import AsyncJobError
from asyncjob.rest.job import Job

HOUR = 3600


@click.command(cls=SectionedCommand)
@click.argument("names", nargs=-1, required=True, type=Name(), metavar="JOB...")
@click.option(
    "--for",
    "target",
    type=PhaseName(FINISHED),
    default=FINISHED,
    show_default=True,
    help="Finished, or come to this phase (or through it).",
)
@click.option("--timeout", type=Duration(), default="1h", show_default=True, help="0: look once.")
@click.option(
    "--poll",
    type=Duration(),
    default="1s",
    show_default=True,
    help="Look so often; sooner at first.",
)
@click.option("--quiet", is_flag=True, help="Do not tell on stderr what happens meanwhile.")
@shown()
@placed
@click.pass_obj
def wait(
    world: World,
    *,
    names: Sequence[str],
    target: str,
    timeout: int,
    poll: int,
    quiet: bool,
    place: Place,
    screen: Screen,
) -> int:
    """Wait until jobs have finished; the exit code tells how.

    \b
    0  all succeeded (with --for: came to what was waited for)
    3  there is no such job, or no longer
    4  one became a dead letter
    5  one was cancelled
    6  the time was up
    10 with --for: one ended without coming there
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    with world.connect(place) as jobs:
        return wait_for(jobs, world, Wish(distinct(names), target, timeout, poll, quiet), screen)


@dataclass(frozen=True)
class Wish:
    """What to wait for, in seconds."""

    names: Sequence[str]
    target: str = FINISHED
    timeout: float = HOUR
    poll: float = 1.0
    quiet: bool = False
    patience: float = 0.0
    """For so long a job may not exist yet."""


def wait_for(jobs: Jobs, world: World, wish: Wish, screen: Screen) -> ExitCode:
    """Wait, show the jobs as they are then, and return the exit code."""
    watch, start, pauses = _Watch(jobs, wish), world.monotonic(), pauses_of(wish.poll)
    while watch.look(waited := world.monotonic() - start) and waited < wish.timeout:
        world.sleep(min(next(pauses), wish.timeout - waited))
    watch.give_up()
    _show(list(watch.seen.values()), world, screen, one=len(wish.names) == 1)
    return worst(watch.codes.values())


def _show(found: Sequence[Job], world: World, screen: Screen, *, one: bool) -> None:
    if screen.for_people:
        if found:
            screen.table(job_table(found, world.now(), wide=screen.wide))
    elif found or not one:
        screen.answers(found, one=one)


@dataclass
class _Watch:
    """The jobs that are waited for, as last seen."""

    jobs: Jobs
    wish: Wish
    seen: dict[str, Job] = field(default_factory=dict)
    codes: dict[str, ExitCode] = field(default_factory=dict)
    trouble: str = ""

    def look(self, waited: float) -> bool:
        """Look at those that are not settled; return whether any is left to wait for."""
        for name in self._open():
            try:
                self._take(name, self.jobs.get(name))
            except NotFoundError as error:
                if name in self.seen or waited >= self.wish.patience:
                    self._lost(name, error)
            except AsyncJobError as error:
                self._away(error)
        return bool(self._open())

    def give_up(self) -> None:
        """Say which have not come there in time."""
        for name in self._open():
            self.codes[name] = ExitCode.TIMEOUT
            how = line(self.seen[name]) if name in self.seen else f"{name} was never seen"
            limit = exactly(self.wish.timeout)
            note(f"error: not {self.wish.target} within {limit}: {how} (longer: --timeout)")

    def _open(self) -> list[str]:
        return [name for name in self.wish.names if name not in self.codes]

    def _take(self, name: str, job: Job) -> None:
        before, self.seen[name], self.trouble = self.seen.get(name), job, ""
        if not self.wish.quiet and (before is None or line(before) != line(job)):
            note(line(job))
        verdict = judge(job, self.wish.target)
        if verdict.settled:
            self.codes[name] = verdict.code
        if verdict.come is Come.NEVER:
            note(f"error: {name} ended as {job.phase.value}, and was never {self.wish.target}")

    def _lost(self, name: str, error: AsyncJobError) -> None:
        gone = f"{name} was deleted meanwhile"
        note(f"error: {gone if name in self.seen else sentence(error, program())}")
        self.codes[name] = exit_code(error)

    def _away(self, error: AsyncJobError) -> None:
        """Wait on while a server is away; raise what will not pass."""
        if not error.retryable:
            raise error
        if str(error) != self.trouble:
            self.trouble = str(error)
            note(f"{sentence(error, program())}; waiting on")
