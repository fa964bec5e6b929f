"""Compares a job that exists already with the one that was to be created."""

from enum import StrEnum

from asyncjob import names
from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.deduplication import is_live
from asyncjob.lifecycle.job_view import read_job
from asyncjob.submission.manifest import JobManifest, fingerprint_of_job


class Match(StrEnum):
    """What the existing job is to the submission."""

    SAME = "Same"
    """The job that was submitted: no matter who created it, nothing is left to do."""

    KEY_REUSED = "OtherContent"
    """It has the submission's idempotencyKey, and another content: the submission is refused."""

    DUPLICATE = "Duplicate"
    """It is live and has the submission's deduplicationId: the submission is refused."""

    FINISHED_DUPLICATE = "Over"
    """It had the submission's deduplicationId and is over: the next number is free."""

    NAME_TAKEN = "Taken"
    """It has the name, and is another job: the submission is refused."""


def match_existing(existing: JsonObject, wanted: JobManifest) -> Match:
    """Return what the job, as the API server returns it, is to the submission.

    Raises ValueError on a phase that this version does not know.
    """
    spec = child(existing, "spec")
    if has_same_key(existing, wanted):
        return Match.SAME if _has_same_fingerprint(existing, wanted) else Match.KEY_REUSED
    if wanted.deduplication_id and text(spec, "deduplicationId") == wanted.deduplication_id:
        return Match.DUPLICATE if is_live(read_job(existing)) else Match.FINISHED_DUPLICATE
    keyed = wanted.idempotency_key is not None or wanted.deduplication_id is not None
    return Match.SAME if not keyed and _has_same_fingerprint(existing, wanted) else Match.NAME_TAKEN


def has_same_key(job: JsonObject, wanted: JobManifest) -> bool:
    """Return whether it was submitted under the submission's idempotencyKey, and accepted."""
    key = text(child(job, "spec"), "idempotencyKey")
    return (
        wanted.idempotency_key is not None
        and key == wanted.idempotency_key
        and not is_withdrawn(job)
    )


def is_withdrawn(job: JsonObject) -> bool:
    """Return whether its submitter took it back: another job was quicker under its key.

    Such a job has lost the label by which it is found under the key; see `withdrawal_patch`.
    """
    labels = child(child(job, "metadata"), "labels")
    was_found_by_it = text(labels, names.DEDUPLICATION_LABEL) != ""
    return was_found_by_it and text(labels, names.IDEMPOTENCY_LABEL) == ""


def withdrawal_patch() -> JsonObject:
    """Return the merge-patch that takes back a job whose key another one had first."""
    return {"metadata": {"labels": {names.IDEMPOTENCY_LABEL: None}}, "spec": {"cancel": True}}


def _has_same_fingerprint(existing: JsonObject, wanted: JobManifest) -> bool:
    return fingerprint_of_job(existing) == wanted.fingerprint
