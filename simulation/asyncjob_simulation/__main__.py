"""`python -m asyncjob_simulation`: simulate seed after seed, and stop at the first that fails."""

import secrets
import sys
import time
from collections import Counter

import click

from asyncjob_simulation.life import Outcome, prepare_process, simulate
from asyncjob_simulation.shrink import shrink, tell

SOMETIMES = {
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
"""What must have happened at least once in a budget of this many simulations, or it says little."""

ENOUGH_LIVES = 200
SHRINK_SECONDS = 60.0
_SEED_BITS = 32


@click.command()
@click.option("--seed", type=int, help="The first seed; a fresh one by default.")
@click.option("--minutes", type=float, help="Go on for so long.")
@click.option("--lives", type=int, help="Or until so many have been simulated; 1 by default.")
@click.option("--story/--no-story", default=True, help="Make a failing seed small, and tell of it.")
def main(*, seed: int | None, minutes: float | None, lives: int | None, story: bool) -> None:
    """Simulate the whole system under faults, seed after seed; exit 1 at the first that fails."""
    first = secrets.randbits(_SEED_BITS) if seed is None else seed
    click.echo(f"first seed: {first}")
    prepare_process()
    began, cpu_began = time.monotonic(), time.process_time()
    end = began + 60 * minutes if minutes else float("inf")
    most = lives or (1 if not minutes else sys.maxsize)
    counts: Counter[str] = Counter()
    done = 0
    while done < most and time.monotonic() < end:
        outcome = simulate(first + done)
        done += 1
        counts += outcome.counts
        counts["simulated seconds"] += round(outcome.seconds)
        if outcome.violations:
            _fail(outcome, story=story)
    _report(counts, done, time.monotonic() - began, time.process_time() - cpu_began)
    missing = [words for what, words in SOMETIMES.items() if not counts[what]]
    if missing and done >= ENOUGH_LIVES:
        raise click.ClickException(f"never happened: {'; '.join(missing)}")


def _fail(outcome: Outcome, *, story: bool) -> None:
    click.echo(f"seed {outcome.seed} fails: {outcome.violations[0]}")
    if story:
        click.echo(f"{len(outcome.faults)} faults; looking for fewer …")
        shrunk = shrink(outcome, SHRINK_SECONDS)
        small = shrunk.outcome
        click.echo(f"{len(small.faults)} faults are enough ({shrunk.tries} tries):")
        for words in small.faults.values():
            click.echo(f"    {words}")
        for line in tell(small):
            click.echo(line)
    click.echo(f"again: make simulate SEED={outcome.seed}")
    sys.exit(1)


def _report(counts: Counter[str], lives: int, seconds: float, cpu_seconds: float) -> None:
    rate = 60 * counts["job"] / max(cpu_seconds, 0.001)
    click.echo(
        f"{lives} simulations, {counts['simulated seconds'] / 3600:.1f} hours in {seconds:.0f} s, "
        f"{counts['job']} jobs ({rate:.0f} a CPU minute): nothing lost, nothing doubled"
    )
    for what, words in SOMETIMES.items():
        click.echo(f"{counts[what]:8}  {words}")


if __name__ == "__main__":
    main()
