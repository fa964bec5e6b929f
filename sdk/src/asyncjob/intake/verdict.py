"""What a job that exists already means for one that was to be created."""

from enum import StrEnum

from asyncjob.intake.content import content_of_job
from asyncjob.intake.order import Order
from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.view import read_job


class Verdict(StrEnum):
    """What the existing job is to the order."""

    SAME = "Same"
    """The job that was ordered: whoever created it, nothing is left to do."""

    OTHER_CONTENT = "OtherContent"
    """It has the order's idempotencyKey, and another content: the order is refused."""

    DUPLICATE = "Duplicate"
    """It is live and has the order's deduplicationId: the order is refused."""

    OVER = "Over"
    """It had the order's deduplicationId and is over: the next number is free."""

    TAKEN = "Taken"
    """It has the name, and is another job: the order is refused."""


def verdict(existing: JsonObject, order: Order) -> Verdict:
    """Return what the job, as the API server returns it, is to the order.

    Raises ValueError on a phase that this version does not know.
    """
    spec = child(existing, "spec")
    if order.key is not None and text(spec, "idempotencyKey") == order.key:
        return Verdict.SAME if _same(existing, order) else Verdict.OTHER_CONTENT
    if order.deduplication_id and text(spec, "deduplicationId") == order.deduplication_id:
        return Verdict.DUPLICATE if is_live(existing) else Verdict.OVER
    keyed = order.key is not None or order.deduplication_id is not None
    return Verdict.SAME if not keyed and _same(existing, order) else Verdict.TAKEN


def is_live(job: JsonObject) -> bool:
    """Return whether the job holds its deduplicationId."""
    view = read_job(job)
    return not view.finished and not view.deleting


def _same(existing: JsonObject, order: Order) -> bool:
    return content_of_job(existing) == order.content
