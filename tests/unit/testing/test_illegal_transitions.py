"""An illegal step never goes unnoticed, whoever is to blame."""

from typing import Any

import pytest

from asyncjob.testing import IllegalTransitionError
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.store import FakeJobStore, check_transition


def status(phase: str, **fields: Any) -> dict[str, Any]:
    counters = dict.fromkeys(("attempt", "retries", "crashes", "releases"), 0)
    return {"phase": phase, **counters, **fields}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (status("Queued"), status("Succeeded"), "no transition leads from Queued to Succeeded"),
        (status("Succeeded"), status("Queued"), "no transition"),
        (status("Retrying"), status("Queued", reason="Redriven"), "reason 'Redriven' does not"),
        (status("Queued"), status("Running", attempt=2), "attempt grew by 2"),
        (status("Queued"), status("Running", reason="Released", attempt=1), "reason 'Released'"),
        (status("Running"), status("Succeeded", retries=1), "retries grew by 1"),
        (status("Running"), status("Running", attempt=1), "attempt changed without"),
        (
            status("DeadLetter"),
            status("Queued", reason="Redriven", crashes=1),
            "resets the budgets",
        ),
    ],
)
def test_an_illegal_step_is_refused(
    before: dict[str, Any], after: dict[str, Any], words: str
) -> None:
    with pytest.raises(IllegalTransitionError, match=words):
        check_transition("j", before, after)


def test_a_store_keeps_nothing_of_an_illegal_step() -> None:
    store = FakeJobStore(FakeClock(), "default")
    record = store.create({"name": "j"}, {"type": "t", "queue": "default", "priority": 0})
    with pytest.raises(IllegalTransitionError):
        store.change_status(record, {"phase": "Succeeded"})
    assert len(record.versions) == 1
