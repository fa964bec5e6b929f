"""Jobs and arrays that depend on one another, on real processes and a real API server."""

from typing import Any

import pytest

from asyncjob.names import JOBS, array_status_path, collection_path, job_path
from asyncjob_dev.errors import ApiStatusError
from support.driven.arrays import Arrays, all_of, pause
from support.driven.jobs import now
from support.objects.builders import job
from support.processes.workers import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def submit(arrays: Arrays, name: str, **spec: Any) -> None:
    arrays.ns.api.create(collection_path(arrays.ns.namespace, JOBS), job(name, **spec))


def status_of(arrays: Arrays, name: str) -> dict[str, Any]:
    found: dict[str, Any] = arrays.ns.api.get(job_path(arrays.ns.namespace, name))["status"]
    return found


def until_job(arrays: Arrays, name: str, phase: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        status = status_of(arrays, name)
        return status if status["phase"] == phase else None

    return until(look, 60.0, lambda: f"{name}: {status_of(arrays, name)}")


def until_says(arrays: Arrays, name: str, words: str) -> None:
    until(
        lambda: words in status_of(arrays, name).get("message", ""),
        30.0,
        lambda: f"{name}: {status_of(arrays, name)}",
    )


def test_a_job_starts_after_an_array_which_starts_after_another(arrays: Arrays) -> None:
    submit(arrays, "report", dependsOn=[{"array": "thumbs"}])
    until_says(arrays, "report", "waiting for array thumbs (does not exist)")
    arrays.create("thumbs", "note", 10, dependsOn=[{"array": "fetch"}], notBefore=now(-5))
    until_says(arrays, "report", "waiting for array thumbs")
    waits = arrays.until("thumbs", lambda status: "reason" in status)
    assert (waits["phase"], waits["reason"]) == ("Pending", "WaitingForDependency")
    assert waits["message"] == "waiting for array fetch (does not exist)"
    arrays.create("fetch", "note", 5)
    arrays.until("thumbs", lambda status: status["message"] == "waiting for array fetch")
    pause()
    assert {chunk["metadata"]["name"].rpartition("-")[0] for chunk in arrays.chunks()} == {"fetch"}
    arrays.worker()
    status = arrays.until_phase("thumbs", "Succeeded")
    assert (all_of(status), status["admitted"]) == ((10, 0, ""), True)
    assert until_job(arrays, "report", "Queued")["admitted"] is True


def test_what_has_failed_fails_who_waits_and_all_go_on_after_a_redrive(arrays: Arrays) -> None:
    arrays.worker()
    failing = arrays.ns.folder / "failing"
    failing.write_text("3")
    arrays.create("fetch", "picky", 5, itemRetries=0)
    arrays.create("thumbs", "note", 5, dependsOn=[{"array": "fetch"}])
    submit(arrays, "report", dependsOn=[{"array": "thumbs"}])
    submit(arrays, "tidy", dependsOn=[{"array": "thumbs", "outcome": "Any"}])
    failed = arrays.until_phase("thumbs", "Failed")
    assert failed["reason"] == "DependencyFailed"
    assert failed["message"] == "cannot start: array fetch has failed (ItemsFailed)"
    dead = until_job(arrays, "report", "DeadLetter")
    assert dead["message"] == "cannot start: array thumbs has failed (DependencyFailed)"
    until_job(arrays, "tidy", "Queued")
    failing.write_text("")
    for name in ("fetch", "thumbs"):
        arrays.ask(name, redrive=1)
    arrays.ns.api.merge(job_path(arrays.ns.namespace, "report"), {"spec": {"redrive": 1}})
    assert all_of(arrays.until_phase("thumbs", "Succeeded")) == (5, 0, "")
    until(
        lambda: status_of(arrays, "report").get("admitted"),
        30.0,
        lambda: str(arrays.status("fetch")),
    )


def test_an_array_waits_for_its_time_and_can_be_cancelled_before(arrays: Arrays) -> None:
    arrays.create("later", "note", 5, notBefore=now(3600))
    arrays.create("soon", "note", 5, notBefore=now(4))
    status = arrays.until("later", lambda status: "reason" in status)
    assert (status["phase"], status["reason"]) == ("Pending", "NotBefore")
    arrays.ask("later", cancel=True)
    assert arrays.until_phase("later", "Cancelled")["next"] == 0
    assert arrays.until_phase("soon", "Running", within=20.0)["admitted"] is True


def test_an_operator_of_an_older_version_starts_nothing_that_waits(arrays: Arrays) -> None:
    """It knows neither `notBefore` nor `dependsOn`, and therefore not `admitted`."""
    arrays.create("thumbs", "note", 5, notBefore=now(3600))
    cut = {
        "phase": "Running",
        "total": 5,
        "next": 5,
        "generation": 1,
        "open": [{"name": "thumbs-1", "items": "0-4", "generation": 1}],
    }
    with pytest.raises(ApiStatusError, match=r"array\.admitted"):
        arrays.ns.api.merge(array_status_path(arrays.ns.namespace, "thumbs"), {"status": cut})


def test_an_array_that_would_wait_for_itself_is_refused(arrays: Arrays) -> None:
    with pytest.raises(ApiStatusError, match="array selfish cannot depend on itself"):
        arrays.create("selfish", "note", 1, dependsOn=[{"array": "selfish"}])
    arrays.create("named", "note", 1, dependsOn=[{"name": "named"}])  # a job of that name
