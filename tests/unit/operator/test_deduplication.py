"""Of the jobs with one deduplication id one is let through, however late an operator's view is."""

from typing import Any

import pytest

from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.names import JOBS, collection_path, job_path, job_status_path
from support.snapshots import raw, stamp
from support.world import World

ID = {"deduplicationId": "one"}
LIST = ("GET", collection_path("ns", JOBS))


@pytest.fixture
def world() -> World:
    return World()


def put_unseen(world: World, name: str, **status: Any) -> None:
    """Store a job that the operator does not get to see."""
    world.session.put(job_path("ns", name), raw(name, spec=ID, **status))


def put_seen(world: World, name: str, **status: Any) -> None:
    """Store a job that the operator gets to see."""
    obj: Any = raw(name, spec=ID, **status)
    world.store(name, obj)


def asked(world: World) -> list[tuple[str, str]]:
    """Return method and path of each request so far."""
    return [(method, path) for method, path, _ in world.session.requests]


async def test_no_job_is_admitted_beside_one_that_the_watch_has_not_shown_yet(world: World) -> None:
    put_unseen(world, "unseen", admitted=True)
    world.create("late", **ID)
    await world.settle()
    assert world.claimable() == ["unseen"]
    assert "admitted" not in world.status("late")
    await world.pass_time(60)
    assert world.state("late").startswith("Cancelled Duplicate unseen is live")
    assert world.claimable() == ["unseen"]


async def test_no_job_is_admitted_beside_one_that_was_redriven_unseen(world: World) -> None:
    put_seen(world, "dead", phase="DeadLetter", completionTime=stamp(0))
    put_unseen(world, "dead", attempt=1, admitted=True, redrives=1)
    world.create("late", **ID)
    await world.settle()
    assert world.claimable() == ["dead"]
    await world.pass_time(60)
    assert world.state("late").startswith("Cancelled Duplicate dead is live")
    assert world.claimable() == ["dead"]


@pytest.mark.parametrize(
    "held",
    [
        {"phase": "Pending", "reason": "Suspended"},
        {"phase": "Scheduled", "reason": "NotBefore"},
    ],
    ids=lambda held: held["phase"],
)
async def test_a_job_that_has_waited_is_not_queued_as_admitted_either(
    world: World, held: Any
) -> None:
    put_unseen(world, "unseen", admitted=True)
    put_seen(world, "held", **held)
    await world.settle()
    await world.pass_time(60)
    assert world.state("held").startswith("Cancelled Duplicate unseen is live")


async def test_a_dead_letter_stays_one_beside_a_live_job_that_was_not_seen(world: World) -> None:
    put_unseen(world, "unseen", admitted=True)
    put_seen(world, "dead", phase="DeadLetter", completionTime=stamp(0))
    world.change_spec("dead", redrive=1)
    await world.settle()
    await world.pass_time(60)
    assert world.state("dead") == "DeadLetter"
    world.end("unseen")
    await world.pass_time(60)
    assert world.claimable() == ["dead"]


async def test_what_has_ended_or_is_being_deleted_or_has_another_id_is_nobodys_duplicate(
    world: World,
) -> None:
    put_unseen(world, "ended", phase="Succeeded", completionTime=stamp(0))
    going: Any = raw("going", spec=ID)
    going["metadata"] |= {"deletionTimestamp": stamp(0), "finalizers": ["example.com/archive"]}
    world.session.put(job_path("ns", "going"), going)
    world.session.put(job_path("ns", "two"), raw("two", spec={"deduplicationId": "one,=\\two"}))
    world.create("job", **ID)
    await world.settle()
    assert world.status("job")["admitted"] is True
    world.create("other", deduplicationId="one,=\\two")
    await world.settle()
    assert "admitted" not in world.status("other")


async def test_who_was_let_through_and_retries_is_not_looked_for_again(world: World) -> None:
    waiting = {"retryDelaySeconds": 0.0, "nextAttemptTime": stamp(0)}
    put_seen(world, "job", phase="Retrying", attempt=1, crashes=1, **waiting)
    await world.settle()
    assert world.status("job")["admitted"] is True
    assert asked(world) == [("PATCH", job_status_path("ns", "job"))]


async def test_a_job_without_an_id_is_admitted_by_a_read_and_a_write(world: World) -> None:
    world.create("job", notAfter=stamp(600))
    await world.settle()
    assert asked(world) == [("GET", job_path("ns", "job")), ("PATCH", job_status_path("ns", "job"))]
    world.create("one", **ID)
    await world.settle()
    assert asked(world).count(LIST) == 1


async def test_the_look_for_others_asks_for_no_payloads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted: list[str] = []
    pages = world.session.pages

    def noted(path: str, params: Any = None, *, accept: str = "") -> Any:
        accepted.append(accept)
        return pages(path, params, accept=accept)

    monkeypatch.setattr(world.session, "pages", noted)
    world.create("job", **ID)
    await world.settle()
    assert accepted == [METADATA_LIST_TYPE]
