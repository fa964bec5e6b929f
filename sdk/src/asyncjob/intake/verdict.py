"""What a job that exists already means for one that was to be created."""

from enum import StrEnum

from asyncjob import names
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
    if has_key(existing, order):
        return Verdict.SAME if _same(existing, order) else Verdict.OTHER_CONTENT
    if order.deduplication_id and text(spec, "deduplicationId") == order.deduplication_id:
        return Verdict.DUPLICATE if is_live(existing) else Verdict.OVER
    keyed = order.key is not None or order.deduplication_id is not None
    return Verdict.SAME if not keyed and _same(existing, order) else Verdict.TAKEN


def has_key(job: JsonObject, order: Order) -> bool:
    """Return whether it was submitted under the order's idempotencyKey, and accepted."""
    key = text(child(job, "spec"), "idempotencyKey")
    return order.key is not None and key == order.key and not is_withdrawn(job)


def is_withdrawn(job: JsonObject) -> bool:
    """Return whether its submitter took it back: another job was quicker under its key.

    Such a job has lost the label by which it is found under the key; see `withdrawal`.
    """
    labels = child(child(job, "metadata"), "labels")
    was_found_by_it = text(labels, names.DEDUPLICATION_LABEL) != ""
    return was_found_by_it and text(labels, names.IDEMPOTENCY_LABEL) == ""


def withdrawal() -> JsonObject:
    """Return the merge-patch that takes back a job whose key another one had first."""
    return {"metadata": {"labels": {names.IDEMPOTENCY_LABEL: None}}, "spec": {"cancel": True}}


def is_live(job: JsonObject) -> bool:
    """Return whether the job holds its deduplicationId."""
    view = read_job(job)
    return not view.finished and not view.deleting


def _same(existing: JsonObject, order: Order) -> bool:
    return content_of_job(existing) == order.content
