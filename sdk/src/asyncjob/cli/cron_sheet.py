"""One schedule as a person wants it. Pure."""

from collections.abc import Iterator

from asyncjob.cli.durations import time_since
from asyncjob.cli.job_sheet import LABEL_WIDTH, RenderContext
from asyncjob.cli.surroundings_rows import time_until
from asyncjob.cli.tables import one_line
from asyncjob.cli.timeline import format_time
from asyncjob.rest.surroundings import CronJobInfo


def cron_job_detail(cron: CronJobInfo, context: RenderContext) -> Iterator[str]:
    """Return the schedule, line by line."""
    state = (
        context.paint("suspended", "yellow") if cron.suspended else context.paint("active", "green")
    )
    yield f"{context.paint(cron.name, 'bold')}   {state}"
    if cron.reason or cron.message:
        yield f"  {one_line(': '.join(filter(None, (cron.reason, cron.message))))}"
    yield ""
    for label, value in _cron_job_facts(cron, context):
        if value:
            yield f"{context.paint(label.ljust(LABEL_WIDTH), 'dim')}{one_line(value)}"
    yield from _cron_job_commands(cron, context)


def _cron_job_facts(cron: CronJobInfo, context: RenderContext) -> Iterator[tuple[str, str]]:
    yield "Schedule", f"{cron.schedule} ({cron.time_zone})"
    yield "Job", f"{cron.type} in queue {cron.queue}"
    yield "Unfinished", str(cron.active)
    yield (
        "Last",
        _time_and_distance(
            cron.last_scheduled_at, time_since(cron.last_scheduled_at, context.now), " ago"
        ),
    )
    yield (
        "Succeeded",
        _time_and_distance(
            cron.last_succeeded_at, time_since(cron.last_succeeded_at, context.now), " ago"
        ),
    )
    yield (
        "Next",
        _time_and_distance(
            cron.next_scheduled_at, time_until(cron.next_scheduled_at, context.now), ""
        ),
    )
    yield from _policy_facts(cron)
    yield from _backfill_facts(cron)


def _time_and_distance(time: str | None, distance: str, suffix: str) -> str:
    return f"{format_time(time)}, {distance}{suffix}" if time else ""


def _policy_facts(cron: CronJobInfo) -> Iterator[tuple[str, str]]:
    if cron.spec:
        yield "If it runs", cron.spec.concurrency_policy.value
        yield "If missed", cron.spec.misfire_policy.value
    if cron.status and cron.status.missed:
        yield "Missed", str(cron.status.missed)


def _backfill_facts(cron: CronJobInfo) -> Iterator[tuple[str, str]]:
    done = cron.status and cron.status.backfill
    if done:
        word = "done" if done.completed else "under way"
        span = f"{format_time(done.from_)} to {format_time(done.to)}"
        yield "Backfill", f"{done.created} of {done.total} runs, {word} ({span})"


def _cron_job_commands(cron: CronJobInfo, context: RenderContext) -> Iterator[str]:
    act = "resume" if cron.suspended else "suspend"
    yield ""
    yield context.paint("Next", "bold")
    note = context.paint("run it once, now", "dim")
    yield f"  {context.program} cron trigger {cron.name}   {note}"
    yield f"  {context.program} cron {act} {cron.name}"
    yield f"  {context.program} list --cron-job {cron.name}   {context.paint('its jobs', 'dim')}"
