"""`python -m asyncjob_dev.reference [--check]`: make the generated parts of docs/ anew."""

import sys
from pathlib import Path

import click

from asyncjob import models
from asyncjob_dev.reference import lifecycle, rest, schedules, worker
from asyncjob_dev.reference.blocks import Blocks, fill, names
from asyncjob_dev.reference.fields import fields

BLOCKS: Blocks = {
    "lifecycle.diagram": lifecycle.diagram,
    "lifecycle.phases": lifecycle.phases,
    "lifecycle.edges": lifecycle.edges,
    "lifecycle.reasons": lifecycle.reasons,
    "worker.options": worker.options,
    "worker.metrics": worker.metrics,
    "rest.routes": rest.routes,
    "rest.filters": rest.filters,
    "rest.problems": rest.problems,
    "rest.rights": rest.rights,
    "gateway.options": rest.options,
    "gateway.metrics": rest.metrics,
    "schedules.clock-changes": schedules.clock_changes,
    "schedules.reasons": schedules.reasons,
    "fields.asyncjob.spec": lambda: fields(models.AsyncJobSpec),
    "fields.asyncjob.status": lambda: fields(models.AsyncJobStatus),
    "fields.asyncqueue.spec": lambda: fields(models.AsyncQueueSpec),
    "fields.asyncqueue.status": lambda: fields(models.AsyncQueueStatus),
    "fields.asynccronjob.spec": lambda: fields(models.AsyncCronJobSpec),
    "fields.asynccronjob.status": lambda: fields(models.AsyncCronJobStatus),
}


@click.command()
@click.option("--docs", type=click.Path(path_type=Path), default=Path("docs"), show_default=True)
@click.option("--check", is_flag=True, help="Change nothing; fail if something would change.")
def main(*, docs: Path, check: bool) -> None:
    """Make the generated blocks of all pages anew."""
    stale = [page for page in sorted(docs.rglob("*.md")) if _refresh(page, check=check)]
    for page in stale:
        click.echo(f"{page}: {'is stale' if check else 'written'}")
    sys.exit(1 if check and stale else 0)


def _refresh(page: Path, *, check: bool) -> bool:
    old = page.read_text(encoding="utf-8")
    if not names(old):
        return False
    new = fill(old, BLOCKS)
    if new != old and not check:
        page.write_text(new, encoding="utf-8")
    return new != old


main()
