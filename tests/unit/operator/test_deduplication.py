"""Of the jobs with one deduplication id one is let through, however late an operator's view is."""

from typing import Any

import pytest

from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.names import JOBS, collection_path, job_path, job_status_path
from support.objects.snapshots import raw, stamp
from support.parts.operator_harness import OperatorHarness

ID = {"deduplicationId": "one"}
LIST = ("GET", collection_path("ns", JOBS))


@pytest.fixture
def harness() -> OperatorHarness:
    return OperatorHarness()


def put_unseen(harness: OperatorHarness, name: str, **status: Any) -> None:
    """Store a job that the operator does not get to see."""
    harness.session.put(job_path("ns", name), raw(name, spec=ID, **status))


def put_seen(harness: OperatorHarness, name: str, **status: Any) -> None:
    """Store a job that the operator gets to see."""
    obj: Any = raw(name, spec=ID, **status)
    harness.store(name, obj)


def asked(harness: OperatorHarness) -> list[tuple[str, str]]:
    """Return method and path of each request so far."""
    return [(method, path) for method, path, _ in harness.session.requests]


async def test_no_job_is_admitted_beside_one_that_the_watch_has_not_shown_yet(
    harness: OperatorHarness,
) -> None:
    put_unseen(harness, "unseen", admitted=True)
    harness.create("late", **ID)
    await harness.settle()
    assert harness.claimable() == ["unseen"]
    assert "admitted" not in harness.status("late")
    await harness.pass_time(60)
    assert harness.state("late").startswith("Cancelled Duplicate unseen is live")
    assert harness.claimable() == ["unseen"]


async def test_no_job_is_admitted_beside_one_that_was_redriven_unseen(
    harness: OperatorHarness,
) -> None:
    put_seen(harness, "dead", phase="DeadLetter", completionTime=stamp(0))
    put_unseen(harness, "dead", attempt=1, admitted=True, redrives=1)
    harness.create("late", **ID)
    await harness.settle()
    assert harness.claimable() == ["dead"]
    await harness.pass_time(60)
    assert harness.state("late").startswith("Cancelled Duplicate dead is live")
    assert harness.claimable() == ["dead"]


@pytest.mark.parametrize(
    "held",
    [
        {"phase": "Pending", "reason": "Suspended"},
        {"phase": "Scheduled", "reason": "NotBefore"},
    ],
    ids=lambda held: held["phase"],
)
async def test_a_job_that_has_waited_is_not_queued_as_admitted_either(
    harness: OperatorHarness, held: Any
) -> None:
    put_unseen(harness, "unseen", admitted=True)
    put_seen(harness, "held", **held)
    await harness.settle()
    await harness.pass_time(60)
    assert harness.state("held").startswith("Cancelled Duplicate unseen is live")


async def test_a_dead_letter_stays_one_beside_a_live_job_that_was_not_seen(
    harness: OperatorHarness,
) -> None:
    put_unseen(harness, "unseen", admitted=True)
    put_seen(harness, "dead", phase="DeadLetter", completionTime=stamp(0))
    harness.change_spec("dead", redrive=1)
    await harness.settle()
    await harness.pass_time(60)
    assert harness.state("dead") == "DeadLetter"
    harness.end("unseen")
    await harness.pass_time(60)
    assert harness.claimable() == ["dead"]


async def test_what_has_ended_or_is_being_deleted_or_has_another_id_is_nobodys_duplicate(
    harness: OperatorHarness,
) -> None:
    put_unseen(harness, "ended", phase="Succeeded", completionTime=stamp(0))
    going: Any = raw("going", spec=ID)
    going["metadata"] |= {"deletionTimestamp": stamp(0), "finalizers": ["example.com/archive"]}
    harness.session.put(job_path("ns", "going"), going)
    harness.session.put(job_path("ns", "two"), raw("two", spec={"deduplicationId": "one,=\\two"}))
    harness.create("job", **ID)
    await harness.settle()
    assert harness.status("job")["admitted"] is True
    harness.create("other", deduplicationId="one,=\\two")
    await harness.settle()
    assert "admitted" not in harness.status("other")


async def test_who_was_let_through_and_retries_is_not_looked_for_again(
    harness: OperatorHarness,
) -> None:
    waiting = {"retryDelaySeconds": 0.0, "nextAttemptTime": stamp(0)}
    put_seen(harness, "job", phase="Retrying", attempt=1, crashes=1, **waiting)
    await harness.settle()
    assert harness.status("job")["admitted"] is True
    assert asked(harness) == [("PATCH", job_status_path("ns", "job"))]


async def test_a_job_without_an_id_is_admitted_by_a_read_and_a_write(
    harness: OperatorHarness,
) -> None:
    harness.create("job", notAfter=stamp(600))
    await harness.settle()
    assert asked(harness) == [
        ("GET", job_path("ns", "job")),
        ("PATCH", job_status_path("ns", "job")),
    ]
    harness.create("one", **ID)
    await harness.settle()
    assert asked(harness).count(LIST) == 1


async def test_the_look_for_others_asks_for_no_payloads(
    harness: OperatorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted: list[str] = []
    pages = harness.session.pages

    def noted(path: str, params: Any = None, *, accept: str = "") -> Any:
        accepted.append(accept)
        return pages(path, params, accept=accept)

    monkeypatch.setattr(harness.session, "pages", noted)
    harness.create("job", **ID)
    await harness.settle()
    assert accepted == [METADATA_LIST_TYPE]
