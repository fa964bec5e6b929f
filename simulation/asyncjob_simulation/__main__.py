"""`python -m asyncjob_simulation`: simulate seed after seed, and stop at the first that fails."""

import secrets
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import click

from asyncjob_simulation.life import Options, Outcome, prepare_process, simulate
from asyncjob_simulation.profiles import Profile
from asyncjob_simulation.shrink import shrink, tell

_IN_ALL = {
    "watch: 410": "a watch was ended with 410",
    "answer 429": "a request was throttled",
    "answer 503": "the API server was unavailable",
    "answer 401": "a token had expired",
    "contested claim": "two workers claimed one job",
    "end: HandlerFailed": "a handler failed",
    "end: LeaseExpired": "a lease expired",
    "end: Released": "a draining worker released a job",
    "end: Succeeded": "a job succeeded",
    "end: WorkerCrashed": "a worker crashed",
    "end: WorkerGone": "a worker was gone",
    "jobs of a limited queue at once": "a limited queue was full",
    "leader changed": "another operator led",
    "removed after its time": "a job was removed after it had been kept long enough",
    "lost answer adopted": "a claim was kept whose answer was lost",
    "run of a cron job": "a cron job ran",
    "watch: cut": "a watch was cut",
}
_OF_JOBS = _IN_ALL | {
    "ended at its time by its worker": "a worker ended an attempt that took too long",
    "ended at its time by an operator": "an operator ended one that its worker did not end",
}
_OF_WAITS = {
    "step stored": "a step was stored",
    "step again": "a step was taken again that was not stored",
    "body lost": "an attempt ended after the body of a step, before that was stored",
    "parked": "a job was parked",
    "promoted at once": "a job was woken within a second of being parked",
    "woken by time": "a job was woken by time",
    "woken by a signal": "a job was woken by a signal",
    "signal early": "a signal came before its job ran",
    "signal while it runs": "a signal came while its job ran",
    "signal during park": "a signal came for a parked job",
    "signal received": "a handler received a signal",
    "signal timed out": "a signal did not come in time",
    "signal by approver: 422": "a signal was refused: twice, too late, or for one that has ended",
    "signal by stranger: 403": "a signal was refused from one without the right",
    "signal sent through the gateway": "a signal was sent through the gateway",
    "redriven": "a dead letter was redriven that had taken steps",
}
_OF_ARRAYS = {
    "chunk": "a chunk was created",
    "item again": "an item was run again",
    "item ends its worker": "an item ended its worker",
    "item that ends its worker found": "such an item was found, by halves",
    "chunk halved": "a chunk was halved",
    "items of a lost chunk": "items of a chunk that was lost were run again",
    "reservation taken over": "an operator created what another had reserved",
    "array Succeeded": "an array succeeded",
    "array Failed": "an array failed",
    "array Cancelled": "an array was cancelled",
    "array suspended": "an array was suspended",
    "array redriven": "an array was redriven",
    "array deleted": "an array was deleted while it ran",
    "chunk deleted by a person": "a person deleted a chunk",
    "item skipped": "an item was skipped",
    "array started after a wait": "an array started after it had waited for a time or for others",
    "array that cannot start": "an array failed because of what it waited for",
    "item ends its process": "an item ended the process that its chunk has for itself",
    "put stored": "results of items were stored",
    "put fails": "the store failed",
    "put lost": "results were stored, and the answer was lost",
    "put late": "results were stored long after their worker had given up",
    "put slow": "the store was slow",
    "put forbidden": "the store refused results",
    "store outage": "the store was away",
    "killed after a put": "who had stored results was killed",
    "results read": "results of an array were read",
    "results of several attempts": "an attempt went on with a chunk of which results were stored",
    "several results stored": "of an item that is done there were several results",
    "result of an item that is not done": "there was a result of an item that is not done",
    "array whose results are not stored": "an array stopped because its results were not stored",
}
_OF_CHILDREN = {
    "parked": "a parent was parked",
    "promoted at once": "a parent was woken within a second of being parked",
    "woken by children": "a parent was woken by its children",
    "woken by time": "a parent was woken by the limit of its wait",
    "child that succeeded": "a parent was told that a child has succeeded",
    "child that did not succeed": "a parent was told that a child has not succeeded",
    "children timed out": "children did not end in time",
    "deadline exceeded": "a job ended for its deadline",
    "deadline of a parked job": "a job was parked as its deadline came",
}
SOMETIMES: Mapping[Profile, Mapping[str, str]] = {
    Profile.JOBS: _OF_JOBS,
    Profile.WAITS: _OF_WAITS,
    Profile.ARRAYS: _OF_ARRAYS,
    Profile.CHILDREN: _OF_CHILDREN,
}
"""What must have happened at least once in this many simulations of a profile, or they say little.
"""

ENOUGH_LIVES = 200
SHRINK_SECONDS = 60.0
_SEED_BITS = 32


@dataclass
class _Counted:
    """What has happened in all simulations of one profile."""

    lives: int = 0
    counts: Counter[str] = field(default_factory=Counter)


@click.command()
@click.option("--seed", type=int, help="The first seed; a fresh one by default.")
@click.option(
    "--profile",
    type=click.Choice([one.value for one in Profile]),
    help="What the jobs do; by default each seed is simulated with each.",
)
@click.option("--minutes", type=float, help="Go on for so long.")
@click.option("--lives", type=int, help="Or until so many seeds have been simulated; 1 by default.")
@click.option("--story/--no-story", default=True, help="Make a failing seed small, and tell of it.")
def main(
    *, seed: int | None, profile: str | None, minutes: float | None, lives: int | None, story: bool
) -> None:
    """Simulate the whole system under faults, seed after seed; exit 1 at the first that fails."""
    first = secrets.randbits(_SEED_BITS) if seed is None else seed
    click.echo(f"first seed: {first}")
    prepare_process()
    began, cpu_began = time.monotonic(), time.process_time()
    end = began + 60 * minutes if minutes else float("inf")
    most = lives or (1 if not minutes else sys.maxsize)
    counted = {one: _Counted() for one in ([Profile(profile)] if profile else Profile)}
    for number in range(most * len(counted)):
        if time.monotonic() >= end:
            break
        turn, place = divmod(number, len(counted))
        of_jobs, one_profile = list(counted.items())[place]
        outcome = simulate(first + turn, Options(profile=of_jobs))
        one_profile.lives += 1
        one_profile.counts += outcome.counts
        one_profile.counts["simulated seconds"] += round(outcome.seconds)
        if outcome.violations:
            _fail(outcome, story=story)
    _report(counted, time.monotonic() - began, time.process_time() - cpu_began)


def _fail(outcome: Outcome, *, story: bool) -> None:
    click.echo(f"seed {outcome.seed} fails ({outcome.profile}): {outcome.violations[0]}")
    if story:
        click.echo(f"{len(outcome.faults)} faults; looking for fewer …")
        shrunk = shrink(outcome, SHRINK_SECONDS)
        small = shrunk.outcome
        click.echo(f"{len(small.faults)} faults are enough ({shrunk.tries} tries):")
        for words in small.faults.values():
            click.echo(f"    {words}")
        for line in tell(small):
            click.echo(line)
    click.echo(f"again: make simulate SEED={outcome.seed} PROFILE={outcome.profile}")
    sys.exit(1)


def _report(counted: Mapping[Profile, _Counted], seconds: float, cpu_seconds: float) -> None:
    """Say what there was, and fail if what has to happen sometimes never did."""
    counts = sum((one_profile.counts for one_profile in counted.values()), Counter[str]())
    lives = sum(one_profile.lives for one_profile in counted.values())
    rate = 60 * counts["job"] / max(cpu_seconds, 0.001)
    click.echo(
        f"{lives} simulations, {counts['simulated seconds'] / 3600:.1f} hours in {seconds:.0f} s, "
        f"{counts['job']} jobs ({rate:.0f} a CPU minute): nothing lost, nothing doubled"
    )
    missing = []
    for profile, one_profile in counted.items():
        click.echo(f"{profile}: {one_profile.lives} simulations")
        for what, words in SOMETIMES[profile].items():
            click.echo(f"{one_profile.counts[what]:8}  {words}")
            if not one_profile.counts[what] and one_profile.lives >= ENOUGH_LIVES:
                missing.append(words)
    if missing:
        raise click.ClickException(f"never happened: {'; '.join(missing)}")


if __name__ == "__main__":
    main()
