"""Counts in words. Pure."""

from collections.abc import Mapping
from typing import Final

from asyncjob.cli.backup.format import PLURALS
from asyncjob.cli.backup.spool import STDOUT
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOB_KIND, JOB_KIND, QUEUE_KIND

_NOUNS: Final[Mapping[str, str]] = {
    QUEUE_KIND: "queue",
    CRON_JOB_KIND: "schedule",
    JOB_KIND: "job",
}


def quantity(count: int, noun: str) -> str:
    """Return `1 job`, `2 jobs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def count_by_kind(counts: Mapping[str, int]) -> str:
    """Return `1 queue, 2 schedules and 3 jobs`, without what there is nothing of."""
    said = [quantity(counts[kind], _NOUNS[kind]) for kind in PLURALS if counts.get(kind)]
    return " and ".join(filter(None, [", ".join(said[:-1]), *said[-1:]])) or "nothing"


def export_summary(
    counts: Mapping[str, int], phases: Mapping[str, int], namespace: str | None, target: str
) -> str:
    """Return what was exported, and where it is."""
    of_phases = ", ".join(f"{phases[one]} {one}" for one in Phase if phases.get(one))
    where = f"namespace {namespace}" if namespace else "all namespaces"
    into = "" if target == STDOUT else f" into {target}"
    detail = f" ({of_phases})" if of_phases else ""
    return f"exported {count_by_kind(counts)}{detail} of {where}{into}"
