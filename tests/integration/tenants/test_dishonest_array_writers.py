"""Whatever is written of arrays and their chunks, a tenant beside it does not notice.

As in `test_dishonest_writers`; here the honest tenant submits arrays.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import status_fields
from asyncjob.lifecycle.phases import Phase
from asyncjob.models.array import MAX_ITEMS, MAX_PARALLELISM
from asyncjob.names import (
    ARRAY_LABEL,
    ARRAYS,
    JOBS,
    array_path,
    collection_path,
    job_status_path,
)
from support.cluster.api import Client
from support.cluster.identities import Space
from support.driven.jobs import NUMBERS, until
from support.driven.lives import Life, succeeded
from support.forbidden.removals import ADMINISTRATOR_WHO_DELETES
from support.objects.builders import array, job
from support.tenants.accounts import METADATA, SHALLOW, Account, account, create_all, patch_all
from support.tenants.dishonest import (
    ResourceField,
    Value,
    notations,
    schema_fields,
    tried,
)

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.timeout(420)]

ENDED = {"Succeeded", "Failed", "Cancelled"}
SKIP = ResourceField(("spec", "items", "skip"))
REPORTED = [
    ResourceField(("status", report, name))
    for report in ("result", "checkpoint")
    for name in ("done", "failed")
]
ERRORS = ResourceField(("status", "result", "errors"))
MANY_ERRORS = [
    Value("a thousand errors of nothing", f"[{','.join(['{}'] * 1000)}]"),
    Value(
        "errors that say too much",
        f'[{{"item":0,"type":"{"t" * 5000}","category":"{"c" * 5000}","message":"{"m" * 5000}"}}]',
    ),
    Value("errors of items beyond int64", f'[{{"item":{2**63},"message":1}},1,null]'),
]
NO_NAMES = (
    "?watch=true",
    "../asyncjobs?watch=true",
    "../../../../../../api/v1/pods?watch=true",
    "",
    "n" * 100_000,
)
"""What a job may say is the name of the array that it is a chunk of."""

FORGED = 40
"""More than the operator looks after at the same time."""


@pytest.mark.usefixtures("arrays_undisturbed")
def test_a_submitter_of_arrays_harms_nobody_by_what_it_creates(space: Space, foreign: str) -> None:
    thief, path = account(space, "asyncjob-job-submitter"), collection_path(space.name, ARRAYS)
    create_all(thief, space, ARRAYS, foreign)
    for number, value in enumerate(notations()):
        size: Any = {"items": {"count": MAX_ITEMS}, "chunkSize": 1, "parallelism": MAX_PARALLELISM}
        huge = array(f"huge-{number}", **size)
        thief.write("POST", path, SKIP.put(huge, value), f"{SKIP}", value)
    assert not thief.odd
    assert thief.answers[201] > 50, thief.answers


@pytest.mark.usefixtures("arrays_undisturbed")
def test_who_forges_chunks_keeps_nobody_elses_arrays_waiting(space: Space, admin: Client) -> None:
    # In one namespace it could not: half of what the operator does at once is the other tenants'.
    for one in (space, Space(f"tenant-{next(NUMBERS)}", admin).create()):
        thief = account(one, *ADMINISTRATOR_WHO_DELETES)  # nobody else may write the label
        for number, name in enumerate(NO_NAMES * FORGED):
            payload = {"array": {"name": name}, "items": "0-9"}
            body = job(f"forged-{number}", type="test/items", payload=payload)
            body["metadata"]["labels"] = {ARRAY_LABEL: f"nobody-{number}"}
            label = ResourceField(("metadata", "labels", ARRAY_LABEL))
            value = Value(name[:20], f'"nobody-{number}"')
            path = collection_path(one.name, JOBS)
            thief.write("POST", path, label.put(body, value), f"{label}", value)
        assert not thief.odd
        assert thief.answers == {201: len(NO_NAMES) * FORGED}


@pytest.mark.parametrize(
    "roles", [ADMINISTRATOR_WHO_DELETES, ("asyncjob-gateway",)], ids=["administrator", "gateway"]
)
@pytest.mark.usefixtures("arrays_undisturbed")
def test_who_may_change_arrays_harms_no_other_tenant(
    space: Space, foreign: str, roles: tuple[str, ...]
) -> None:
    thief = account(space, *roles)
    create_all(thief, space, ARRAYS, foreign)
    lost = Life(space.name, "lost", space.admin, space.worker("worker-0"))
    lost.create()
    lost.bring(Phase.DEAD_LETTER)
    victims: dict[str, dict[str, Any]] = {
        "Running": {},
        "Cancelled": {"cancel": True},
        "Failed": {"dependsOn": [{"name": "lost"}]},
        "Pending": {"notBefore": "9999-01-01T00:00:00Z"},
    }
    for phase, spec in victims.items():
        name = f"victim-{phase.lower()}"
        path = array_path(space.name, name)
        space.admin.create(collection_path(space.name, ARRAYS), array(name, **spec)).object()
        until(lambda: status_of(space, path).get("phase") == phase, 30, f"{name} {phase}")  # noqa: B023
        most = Value("as often as can be", "1000000")
        field = ResourceField(("spec", "redrive"))
        redriven = thief.write("PATCH", path, field.put({}, most), f"{field}", most)
        assert (redriven == 200) == (phase == "Failed")
        patch_all(thief, path, [*schema_fields(ARRAYS, "spec"), *METADATA], foreign)
        orphaned = ResourceField(("propagationPolicy",)).put({}, Value("", '"Orphan"'))
        # One of whom a foreign owner was named may have been collected already.
        thief.write("DELETE", path, orphaned, f"{name}", Value("deleted", ""))
    assert not thief.odd
    assert thief.answers[200] > 50, thief.answers


@pytest.mark.usefixtures("arrays_undisturbed")
def test_a_worker_that_reports_falsely_of_items_harms_neither_others_nor_the_array(
    space: Space, foreign: str
) -> None:
    worker = space.worker("worker-0")
    thief = Account(worker.client)
    reports = [
        *tried(schema_fields(JOBS, "status"), foreign),
        *((field, value) for field in REPORTED for value in notations()),
        *((ERRORS, value) for value in MANY_ERRORS),
    ]
    size = {"items": {"count": 2 * len(reports)}, "chunkSize": 2, "parallelism": MAX_PARALLELISM}
    made = space.admin.create(
        collection_path(space.name, ARRAYS), array("reported", **size)
    ).object()
    chunks = chunks_of(space, made["metadata"]["uid"])
    for field, value in reports:
        life = Life(space.name, next(chunks), space.admin, worker)
        obj = life.claim()
        fields = status_fields(succeeded(read_job(obj)), obj["status"])
        fields["result"] = {"done": obj["spec"]["payload"]["items"], "failed": "", "errors": []}
        path = job_status_path(space.name, life.name)
        text = field.put({"status": fields}, value)
        if thief.write("PATCH", path, text, f"{field}", value) >= 400:
            worker.client.merge(path, {"status": fields}).object()
    path = array_path(space.name, "reported")
    until(lambda: status_of(space, path).get("phase") in ENDED, 60, "its end")
    status = status_of(space, path)
    assert status["succeeded"] + status["failed"] == 2 * len(reports)
    assert not thief.odd
    assert thief.answers[200] > 50, thief.answers


def status_of(space: Space, path: str) -> dict[str, Any]:
    """Return the status of an array."""
    found: dict[str, Any] = space.admin.get(path).object().get("status", {})
    return found


def chunks_of(space: Space, uid: str) -> Iterator[str]:
    """Yield the name of each chunk once, as the operator creates them."""
    seen: set[str] = set()
    while True:
        for name in sorted(until(lambda: names_of_chunks(space, uid) - seen, 30, "another chunk")):
            seen.add(name)
            yield name


def names_of_chunks(space: Space, uid: str) -> set[str]:
    """Return the names of the chunks that there are; what is deep in them cannot be read here."""
    answer = space.admin.send(
        *("GET", collection_path(space.name, JOBS), None),
        accept=SHALLOW,
        query={"labelSelector": f"{ARRAY_LABEL}={uid}"},
    )
    return {row["object"]["metadata"]["name"] for row in answer.object()["rows"]}
