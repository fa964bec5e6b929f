"""The audit judges simulated histories: whole ones are clean, and mutilated ones are not."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.names import JOBS
from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.history import History
from asyncjob_simulation.life import simulate

SEEDS = range(9_003, 9_023)
"""One of them has a job that is claimed and not renewed before it ends."""


@pytest.fixture(scope="module")
def changes() -> list[tuple[str, Change]]:
    return next(taken for taken in map(changes_of, SEEDS) if unrenewed(taken))


def changes_of(seed: int) -> list[tuple[str, Change]]:
    taken: list[tuple[str, Change]] = []
    with pytest.MonkeyPatch.context() as patch:
        take = History.take

        def note(self: History, resource: str, change: Change) -> None:
            taken.append((resource, change))
            take(self, resource, change)

        patch.setattr(History, "take", note)
        assert not simulate(seed).violations
    return taken


def unrenewed(changes: list[tuple[str, Change]]) -> list[int]:
    """Return where jobs are claimed that end before they are renewed."""
    return [
        number
        for number, (resource, change) in enumerate(changes)
        if resource == JOBS and is_claim(change) and ends_next(changes[number + 1 :], change.key)
    ]


def judged(changes: list[tuple[str, Change]]) -> set[str]:
    history = History(changes[0][1].time)
    for resource, change in changes:
        history.take(resource, change)
    return {rule for rule, _, _ in history.violations(changes[-1][1].time)}


def is_claim(change: Change) -> bool:
    return phase(change.new) == "Running" and phase(change.old) != "Running"


def ends_next(later: list[tuple[str, Change]], job: tuple[str, str]) -> bool:
    own = (change for resource, change in later if resource == JOBS and change.key == job)
    following = next(own, None)
    return following is not None and phase(following.new) == "Succeeded"


def phase(job: dict[str, Any] | None) -> str:
    return str(((job or {}).get("status") or {}).get("phase"))


def test_a_history_of_jobs_queues_and_schedules_is_clean(
    changes: list[tuple[str, Change]],
) -> None:
    assert len({resource for resource, _ in changes}) > 1
    assert not judged(changes)


def test_a_history_without_a_claim_is_not(changes: list[tuple[str, Change]]) -> None:
    """One whose job was not renewed before it ended: a renewal would look like a claim."""
    left_out = unrenewed(changes)[0]
    assert "job.transition" in judged(changes[:left_out] + changes[left_out + 1 :])


def test_an_attempt_that_is_counted_twice_is_found(changes: list[tuple[str, Change]]) -> None:
    def counted_twice(change: Change) -> Change:
        if change.new is None or not is_claim(change):
            return change
        status = change.new["status"]
        return replace(change, new={**change.new, "status": {**status, "attempt": 7}})

    broken = judged([(resource, counted_twice(change)) for resource, change in changes])
    assert "claim.attempt" in broken
