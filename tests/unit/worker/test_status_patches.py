"""The JSON Patches of a holder, and what they do to a status."""

import copy
import functools
import operator
from typing import Any

import pytest

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phase_change import PhaseChange, succeed
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.patches import outcome_patch, renewal_patch
from support.parts.worker_parts import NOW, held, job


class DoesNotApplyError(Exception):
    """The API server would refuse the patch."""


def apply(obj: JsonObject, operations: list[JsonObject]) -> dict[str, Any]:
    """Apply a JSON Patch as the API server does: all of it or nothing."""
    result: dict[str, Any] = copy.deepcopy(dict(obj))
    for operation in operations:
        *parents, last = str(operation["path"]).strip("/").split("/")
        try:
            _apply_one(functools.reduce(operator.getitem, parents, result), last, operation)
        except (KeyError, AssertionError) as error:
            raise DoesNotApplyError(operation) from error
    return result


def _apply_one(place: dict[str, Any], name: str, operation: JsonObject) -> None:
    match operation["op"]:
        case "add":
            place[name] = operation["value"]
        case "test":
            assert place[name] == operation["value"]
        case "replace":
            assert name in place
            place[name] = operation["value"]
        case "remove":
            del place[name]


def success(of: HeldJob, result: Any = None) -> PhaseChange:
    return succeed(of.job, now=NOW, result=result)


def test_a_renewal_counts_and_dates_the_lease() -> None:
    status = apply(job(), renewal_patch(held(), None, "later"))["status"]
    assert status["lease"]["renewals"] == 1
    assert status["lease"]["renewTime"] == status["lastUpdateTime"] == "later"


def test_a_renewal_of_a_job_without_a_lease_is_refused_and_creates_none() -> None:
    requeued = job(phase="Queued")
    del requeued["status"]["lease"]
    with pytest.raises(DoesNotApplyError):
        apply(requeued, renewal_patch(held(), None, "later"))


@pytest.mark.parametrize("change", [{"claim": "c2"}, {"attempt": 2}])
def test_neither_patch_fits_another_claim(change: dict[str, Any]) -> None:
    ours, theirs = held(), job(**change)
    with pytest.raises(DoesNotApplyError):
        apply(theirs, renewal_patch(ours, None, "later"))
    with pytest.raises(DoesNotApplyError):
        apply(theirs, outcome_patch(ours, success(ours), ours.status, None))


def test_a_renewal_long_on_its_way_does_not_fit_after_a_later_one() -> None:
    ours = held()
    ours.checkpoint({"row": 1})
    late = renewal_patch(ours, ours.unsaved_report(), "t1")
    ours.checkpoint({"row": 2})
    stored = apply(job(), renewal_patch(ours, ours.unsaved_report(), "t2"))
    with pytest.raises(DoesNotApplyError):
        apply(stored, late)


def test_a_checkpoint_saved_by_a_renewal_is_replaced_whole_by_the_outcome() -> None:
    ours = held()
    ours.checkpoint({"row": 1, "tmp": {"a": 1}})
    stored = apply(job(), renewal_patch(ours, ours.unsaved_report(), "t1"))
    ours.checkpoint({"row": None})
    status = apply(stored, outcome_patch(ours, success(ours), ours.status, ours.unsaved_report()))[
        "status"
    ]
    assert status["checkpoint"] == {"row": None}


@pytest.mark.parametrize("stored", [{}, {"checkpoint": {"row": 1}}])
def test_a_checkpoint_of_none_removes_what_is_there_or_not(stored: dict[str, Any]) -> None:
    ours = held()
    ours.checkpoint(None)
    status = apply(job(**stored), renewal_patch(ours, ours.unsaved_report(), "t1"))["status"]
    assert "checkpoint" not in status


def test_an_outcome_ends_the_lease_and_carries_the_last_report() -> None:
    ours = held()
    ours.progress(50, "half")
    ours.checkpoint([1])
    body = outcome_patch(ours, success(ours, {"n": 1}), ours.status, ours.unsaved_report())
    status = apply(job(), body)["status"]
    assert "lease" not in status
    assert (status["phase"], status["result"], status["checkpoint"]) == ("Succeeded", {"n": 1}, [1])
    assert status["progress"] == {"percent": 100}


def test_an_outcome_fits_no_job_that_has_left_running_by_the_same_claim() -> None:
    ours, requeued = held(), job(phase="Queued")
    del requeued["status"]["lease"]
    with pytest.raises(DoesNotApplyError):
        apply(requeued, outcome_patch(ours, success(ours), ours.status, None))


def test_an_outcome_removes_what_a_later_look_has_found() -> None:
    ours = held()
    found = job(message="by hand")
    body = outcome_patch(ours, success(ours), found["status"], None)
    assert "message" not in apply(found, body)["status"]
