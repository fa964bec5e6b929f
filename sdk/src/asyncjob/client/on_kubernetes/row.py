"""Finding the next free number among the jobs with one deduplicationId.

Read in this order, each consistently: the newest number, a job with the same key, a live job. Who
submits at the same time either is seen by the last read or takes the same number, which the API
server gives away once. What was read holds for 30 seconds; finished jobs with such an id are kept
for a day, so that no number read as taken has come free by then.
"""

from typing import Final

from asyncjob import names
from asyncjob.client.errors import UnavailableError
from asyncjob.client.on_kubernetes.calls import Params, jobs_path, list_all
from asyncjob.client.on_kubernetes.holders import live_duplicates_selector
from asyncjob.client.steps import JSON_TYPE, Call, Pause, Steps, call_with_retries
from asyncjob.intake import JobManifest, Match, match_existing, sequence_of
from asyncjob.intake.verdict import has_same_key, is_live
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.session import METADATA_LIST_TYPE

READ_VALID_SECONDS: Final = 30.0
_MAX_READS: Final = 5
_WITHDRAWAL_WAIT_SECONDS: Final = 0.5
"""A submitter that came second needs two requests to take its job back."""


def next_sequence(order: JobManifest, patience: float) -> Steps[int | JsonObject]:
    """Return the number to create the job under, or the job that is there already."""
    for _ in range(_MAX_READS):
        began = (yield Pause()).at
        newest = yield from _newest_sequence(order, patience)
        there = (yield from _find_with_key(order, patience)) or (
            yield from _find_live(order, patience)
        )
        if there is not None:
            return there
        if (yield Pause()).at - began <= READ_VALID_SECONDS:
            return newest + 1
    raise UnavailableError("looking for jobs with the same deduplicationId takes too long")


def _newest_sequence(order: JobManifest, patience: float) -> Steps[int]:
    """Return the highest number in use; names count down, so that it comes first."""
    call = Call(
        "GET",
        jobs_path(order.namespace),
        (("labelSelector", _key_selector(order, names.DEDUPLICATION_LABEL)), ("limit", "1")),
        accept=METADATA_LIST_TYPE,
    )
    found = _items((yield from call_with_retries(call, patience)).object)
    return max((sequence_of(_name(one), order.name_prefix) for one in found), default=0)


def _find_with_key(order: JobManifest, patience: float) -> Steps[JsonObject | None]:
    """Return the job with the order's key, finished or not.

    Of two, one is about to be withdrawn, because the other was quicker: that is waited for.
    """
    params = (("labelSelector", _key_selector(order, names.IDEMPOTENCY_LABEL)),)
    found: list[JsonObject] = []
    for _ in range(_MAX_READS):
        found = [
            one
            for one in (yield from _list_jobs(order, params, patience))
            if has_same_key(one, order)
        ]
        if len(found) < 2:  # noqa: PLR2004  # one job has the key, as it should be
            break
        yield Pause(_WITHDRAWAL_WAIT_SECONDS)
    return min(found, key=lambda one: match_existing(one, order) is not Match.SAME, default=None)


def _find_live(order: JobManifest, patience: float) -> Steps[JsonObject | None]:
    """Return a live job with the id, whoever created it: also one applied with kubectl."""
    found = yield from _list_jobs(
        order, live_duplicates_selector(order.deduplication_id or ""), patience
    )
    mine = [one for one in found if has_same_key(one, order)]
    return next(iter([*mine, *filter(is_live, found)]), None)


def find_other_with_key(
    order: JobManifest, name: str, version: str | None, patience: float
) -> Steps[str | None]:
    """Return another job than that of this name that has the order's key, by its name.

    With a version, as of that version, and not as of now.
    """
    params: Params = (("labelSelector", _key_selector(order, names.IDEMPOTENCY_LABEL)),)
    if version:
        params += (("resourceVersion", version), ("resourceVersionMatch", "Exact"))
    found = yield from _list_jobs(order, params, patience, accept=METADATA_LIST_TYPE)
    return next((_name(one) for one in found if _name(one) != name), None)


def _list_jobs(
    order: JobManifest, params: Params, patience: float, accept: str = JSON_TYPE
) -> Steps[list[JsonObject]]:
    return (
        yield from list_all(jobs_path(order.namespace), params, patience, _as_is, accept=accept)
    )


def _as_is(obj: JsonObject) -> JsonObject:
    return obj


def _items(page: JsonObject) -> list[JsonObject]:
    return [as_object(one) for one in items(page, "items")]


def _name(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "name")


def _key_selector(order: JobManifest, label: str) -> str:
    return f"{label}={text(order.labels, label)}"
