"""`python -m asyncjob_dev.reference [--check]`: make the generated parts of docs/ again."""

import sys
from pathlib import Path

import click

from asyncjob import models
from asyncjob.lifecycle.phases import Phase
from asyncjob.metrics import Component
from asyncjob_dev.reference import cli, installation, limits, resources, rest
from asyncjob_dev.reference.blocks import Blocks, fill, names
from asyncjob_dev.reference.diagram import lifecycle_picture
from asyncjob_dev.reference.explanations import errors_folder, ways_out, ways_out_of_cron_jobs
from asyncjob_dev.reference.resources import fields

BLOCKS: Blocks = {
    "chart.values": installation.chart_values,
    "lifecycle.phases": resources.phases,
    "lifecycle.transitions": resources.transitions,
    "lifecycle.reasons": resources.reasons,
    "reasons.pending": lambda: ways_out(Phase.PENDING),
    "reasons.scheduled": lambda: ways_out(Phase.SCHEDULED),
    "reasons.queued": lambda: ways_out(Phase.QUEUED),
    "reasons.retrying": lambda: ways_out(Phase.RETRYING),
    "reasons.dead-letter": lambda: ways_out(Phase.DEAD_LETTER),
    "reasons.cancelled": lambda: ways_out(Phase.CANCELLED),
    "reasons.cron-jobs": ways_out_of_cron_jobs,
    "audit.rules": cli.audit_rules,
    "cli.commands": cli.commands,
    "cli.shared": cli.shared,
    "cli.exit-codes": cli.exit_codes,
    "worker.exit-codes": lambda: cli.exit_codes("worker-"),
    "operator.exit-codes": lambda: cli.exit_codes("operator-"),
    "gateway.exit-codes": lambda: cli.exit_codes("gateway-"),
    "worker.options": cli.worker_options,
    "metrics.leader": lambda: installation.metrics_table(Component.LEADER),
    "metrics.operator": lambda: installation.metrics_table(Component.OPERATOR),
    "metrics.worker": lambda: installation.metrics_table(Component.WORKER),
    "metrics.gateway": lambda: installation.metrics_table(Component.GATEWAY),
    "rest.routes": rest.routes,
    "rest.filters": rest.filters,
    "rest.problems": rest.problems,
    "rest.rights": rest.gateway_rights,
    "limits.jobs": limits.jobs,
    "limits.queues": limits.queues_and_schedules,
    "limits.gateway": limits.gateway,
    "limits.command-line": limits.command_line,
    "limits.metrics": limits.metrics,
    "gateway.options": rest.gateway_options,
    "security.rights": installation.role_rights,
    "schedules.clock-changes": resources.clock_changes,
    "cron-jobs.reasons": resources.cron_job_reasons,
    "arrays.reasons": resources.array_reasons,
    "limits.arrays": limits.arrays,
    "fields.asyncjob.spec": lambda: fields(models.AsyncJobSpec),
    "fields.asyncjob.status": lambda: fields(models.AsyncJobStatus),
    "fields.asyncqueue.spec": lambda: fields(models.AsyncQueueSpec),
    "fields.asyncqueue.status": lambda: fields(models.AsyncQueueStatus),
    "fields.asyncarray.spec": lambda: fields(models.AsyncArraySpec),
    "fields.asyncarray.status": lambda: fields(models.AsyncArrayStatus),
    "fields.asynccronjob.spec": lambda: fields(models.AsyncCronJobSpec),
    "fields.asynccronjob.status": lambda: fields(models.AsyncCronJobStatus),
}


@click.command()
@click.option("--docs", type=click.Path(path_type=Path), default=Path("docs"), show_default=True)
@click.option("--check", is_flag=True, help="Change nothing; fail if something would change.")
def main(*, docs: Path, check: bool) -> None:
    """Make the generated pages and blocks of all pages again."""
    stale = [*_refresh_errors(docs / "reference/errors", check=check)]
    stale += _refresh_picture(docs / "explanation/lifecycle.svg", check=check)
    stale += [page for page in sorted(docs.rglob("*.md")) if _refresh(page, check=check)]
    for page in stale:
        click.echo(f"{page}: {'is stale' if check else 'written'}")
    sys.exit(1 if check and stale else 0)


def _refresh_errors(at: Path, *, check: bool) -> list[Path]:
    folder = errors_folder()
    stale = [at / name for name in folder.outdated(at)]
    if stale and not check:
        folder.write(at)
    return stale


def _refresh_picture(file: Path, *, check: bool) -> list[Path]:
    new = lifecycle_picture()
    if file.is_file() and file.read_text(encoding="utf-8") == new:
        return []
    if not check:
        file.write_text(new, encoding="utf-8")
    return [file]


def _refresh(page: Path, *, check: bool) -> bool:
    old = page.read_text(encoding="utf-8")
    if not names(old):
        return False
    new = fill(old, BLOCKS)
    if new != old and not check:
        page.write_text(new, encoding="utf-8")
    return new != old


if __name__ == "__main__":
    main()
