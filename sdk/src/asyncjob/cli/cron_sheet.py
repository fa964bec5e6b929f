"""One schedule as a person wants it. Pure."""

from collections.abc import Iterator

from asyncjob.cli.durations import since
from asyncjob.cli.job_sheet import LABEL, Look
from asyncjob.cli.surroundings_rows import until
from asyncjob.cli.tables import one_line
from asyncjob.cli.timeline import clock
from asyncjob.rest.surroundings import CronJobInfo


def cron_sheet(cron: CronJobInfo, look: Look) -> Iterator[str]:
    """Return the schedule, line by line."""
    state = look.paint("suspended", "yellow") if cron.suspended else look.paint("active", "green")
    yield f"{look.paint(cron.name, 'bold')}   {state}"
    if cron.reason or cron.message:
        yield f"  {one_line(': '.join(filter(None, (cron.reason, cron.message))))}"
    yield ""
    for label, value in _facts(cron, look):
        if value:
            yield f"{look.paint(label.ljust(LABEL), 'dim')}{one_line(value)}"
    yield from _next(cron, look)


def _facts(cron: CronJobInfo, look: Look) -> Iterator[tuple[str, str]]:
    yield "Schedule", f"{cron.schedule} ({cron.time_zone})"
    yield "Job", f"{cron.type} in queue {cron.queue}"
    yield "Unfinished", str(cron.active)
    yield "Last", _when(cron.last_scheduled_at, since(cron.last_scheduled_at, look.now), " ago")
    yield (
        "Succeeded",
        _when(cron.last_succeeded_at, since(cron.last_succeeded_at, look.now), " ago"),
    )
    yield "Next", _when(cron.next_scheduled_at, until(cron.next_scheduled_at, look.now), "")
    yield from _policies(cron)
    yield from _backfill(cron)


def _when(time: str | None, rough: str, after: str) -> str:
    return f"{clock(time)}, {rough}{after}" if time else ""


def _policies(cron: CronJobInfo) -> Iterator[tuple[str, str]]:
    if cron.spec:
        yield "If it runs", cron.spec.concurrency_policy.value
        yield "If missed", cron.spec.misfire_policy.value
    if cron.status and cron.status.missed:
        yield "Missed", str(cron.status.missed)


def _backfill(cron: CronJobInfo) -> Iterator[tuple[str, str]]:
    done = cron.status and cron.status.backfill
    if done:
        word = "done" if done.completed else "under way"
        span = f"{clock(done.from_)} to {clock(done.to)}"
        yield "Backfill", f"{done.created} of {done.total} runs, {word} ({span})"


def _next(cron: CronJobInfo, look: Look) -> Iterator[str]:
    act = "resume" if cron.suspended else "suspend"
    yield ""
    yield look.paint("Next", "bold")
    yield f"  {look.program} cron trigger {cron.name}   {look.paint('run it once, now', 'dim')}"
    yield f"  {look.program} cron {act} {cron.name}"
    yield f"  {look.program} list --cron-job {cron.name}   {look.paint('its jobs', 'dim')}"
