"""Asks a schedule for the runs of times gone by: straight on the cluster, which is the only way."""

import asyncio

import click

from asyncjob.cli.place import Place
from asyncjob.errors import ConflictError, NotFoundError
from asyncjob.json_types import JsonObject, child, flag, text
from asyncjob.kube import KubeSession, load_access
from asyncjob.models.cron import Backfill
from asyncjob.names import cron_job_path

FIELD_MANAGER = "asyncjob-cli"
TRIES = 5
"""The operator writes the status of a busy schedule now and then."""


class Unfinished(click.ClickException):
    """An earlier backfill is under way, and this one would take its place."""


def ask_for(place: Place, name: str, wish: Backfill, *, replace: bool = False) -> None:
    """Write the wish; raises UsageError where a gateway is in between."""
    if place.server:
        raise click.UsageError(
            "a backfill goes straight to the cluster: leave --server out (--server '')"
        )
    asyncio.run(_ask(place, name, wish, replace=replace))


async def _ask(place: Place, name: str, wish: Backfill, *, replace: bool) -> None:
    access = await load_access(place.kubeconfig, place.namespace, place.context)
    path = cron_job_path(access.namespace, name)
    async with KubeSession(access, field_manager=FIELD_MANAGER) as session:
        for tries_left in reversed(range(TRIES)):
            there = await _schedule(session, path, name)
            if not replace:
                check(there)
            try:
                await session.merge_patch(path, patch(there, wish))
            except ConflictError:
                if not tries_left:
                    raise
            else:
                return


def patch(schedule: JsonObject, wish: Backfill) -> JsonObject:
    """Return the merge-patch, exact on the schedule as it was looked at."""
    version = text(child(schedule, "metadata"), "resourceVersion")
    spec: JsonObject = {"backfill": wish.model_dump(mode="json", by_alias=True)}
    return {"metadata": {"resourceVersion": version}, "spec": spec}


async def _schedule(session: KubeSession, path: str, name: str) -> JsonObject:
    try:
        return await session.get(path)
    except NotFoundError as error:
        from asyncjob.client.errors import CronJobNotFoundError

        namespace = session.access.namespace
        raise CronJobNotFoundError(f"there is no schedule {name} in {namespace}") from error


def check(schedule: JsonObject) -> None:
    """Raise Unfinished where an earlier backfill has runs left to create."""
    asked = child(child(schedule, "spec"), "backfill")
    done = child(child(schedule, "status"), "backfill")
    same = all(asked.get(key) == done.get(key) for key in ("from", "to"))
    if asked and not (same and flag(done, "completed")):
        span = f"{text(asked, 'from')} to {text(asked, 'to')}"
        raise Unfinished(f"an earlier backfill ({span}) is under way; wait for it, or --replace")
