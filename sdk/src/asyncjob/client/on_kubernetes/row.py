"""Finding the next free number among the jobs with one deduplicationId.

Read in this order, each consistently: the newest number, a job with the same key, a live job. Who
submits at the same time either is seen by the last read or takes the same number, which the API
server gives away once. What was read holds for 30 seconds; finished jobs with such an id are kept
for a day, so that no number read as taken has come free by then.
"""

from typing import Final

from asyncjob import names
from asyncjob.client.errors import UnavailableError
from asyncjob.client.on_kubernetes.calls import Params, jobs, read_all
from asyncjob.client.on_kubernetes.holders import live_with
from asyncjob.client.steps import JSON, Call, Pause, Steps, patiently
from asyncjob.intake import Order, Verdict, number_of, verdict
from asyncjob.intake.verdict import has_key, is_live
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.session import AS_METADATA

HOLDS_SECONDS: Final = 30.0
_LOOKS: Final = 5
_WITHDRAWAL_SECONDS: Final = 0.5
"""A submitter that came second needs two requests to take its job back."""


def free_number(order: Order, patience: float) -> Steps[int | JsonObject]:
    """Return the number to create the job under, or the job that is there already."""
    for _ in range(_LOOKS):
        began = (yield Pause()).at
        newest = yield from _newest(order, patience)
        there = (yield from _with_key(order, patience)) or (yield from _live(order, patience))
        if there is not None:
            return there
        if (yield Pause()).at - began <= HOLDS_SECONDS:
            return newest + 1
    raise UnavailableError("looking for jobs with the same deduplicationId takes too long")


def _newest(order: Order, patience: float) -> Steps[int]:
    """Return the highest number in use; names count down, so that it comes first."""
    call = Call(
        "GET",
        jobs(order.namespace),
        (("labelSelector", _selector(order, names.DEDUPLICATION_LABEL)), ("limit", "1")),
        accept=AS_METADATA,
    )
    found = _items((yield from patiently(call, patience)).object)
    return max((number_of(_name(one), order.stem) for one in found), default=0)


def _with_key(order: Order, patience: float) -> Steps[JsonObject | None]:
    """Return the job with the order's key, finished or not.

    Of two, one is about to be withdrawn, because the other was quicker: that is waited for.
    """
    params = (("labelSelector", _selector(order, names.IDEMPOTENCY_LABEL)),)
    found: list[JsonObject] = []
    for _ in range(_LOOKS):
        found = [one for one in (yield from _all(order, params, patience)) if has_key(one, order)]
        if len(found) < 2:  # noqa: PLR2004  # one job has the key, as it should be
            break
        yield Pause(_WITHDRAWAL_SECONDS)
    return min(found, key=lambda one: verdict(one, order) is not Verdict.SAME, default=None)


def _live(order: Order, patience: float) -> Steps[JsonObject | None]:
    """Return a live job with the id, whoever created it: also one applied with kubectl."""
    found = yield from _all(order, live_with(order.deduplication_id or ""), patience)
    mine = [one for one in found if has_key(one, order)]
    return next(iter([*mine, *filter(is_live, found)]), None)


def other_with_key(
    order: Order, name: str, version: str | None, patience: float
) -> Steps[str | None]:
    """Return another job than that of this name that has the order's key, by its name.

    With a version, as of that version, and not as of now.
    """
    params: Params = (("labelSelector", _selector(order, names.IDEMPOTENCY_LABEL)),)
    if version:
        params += (("resourceVersion", version), ("resourceVersionMatch", "Exact"))
    found = yield from _all(order, params, patience, accept=AS_METADATA)
    return next((_name(one) for one in found if _name(one) != name), None)


def _all(
    order: Order, params: Params, patience: float, accept: str = JSON
) -> Steps[list[JsonObject]]:
    return (yield from read_all(jobs(order.namespace), params, patience, _whole, accept=accept))


def _whole(obj: JsonObject) -> JsonObject:
    return obj


def _items(page: JsonObject) -> list[JsonObject]:
    return [as_object(one) for one in items(page, "items")]


def _name(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "name")


def _selector(order: Order, label: str) -> str:
    return f"{label}={text(order.labels, label)}"
