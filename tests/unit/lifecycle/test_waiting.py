"""Why a job waits, in words."""

from typing import Any

import pytest

from asyncjob.lifecycle.waiting import explain_wait


def job(phase: str = "Queued", spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "j", "namespace": "ns", "uid": "u"},
        "spec": {"type": "t", "queue": "mail", **(spec or {})},
        "status": {"phase": phase, **status},
    }


def queue(*places: str, workers: int = 1, **spec: Any) -> dict[str, Any]:
    reservations = [{"uid": str(n), "key": key} for n, key in enumerate(places)]
    return {"spec": spec, "status": {"reservations": reservations, "workers": workers}}


@pytest.mark.parametrize(
    ("job_", "queue_", "sentence"),
    [
        (job(), {}, "it waits for a free slot of a worker of queue mail that handles t"),
        (job(), queue(workers=0), "no live worker serves queue mail"),
        (job(), queue(paused=True), "queue mail is paused"),
        (job(spec={"cancel": True}), queue(paused=True), "it is about to be cancelled"),
        (job(spec={"notAfter": "x"}), {}, "the operator has not admitted it yet"),
        (job(), queue("", "", maxConcurrency=2), "queue mail has 2 of 2 reservations"),
        (
            job(spec={"concurrencyKey": "a"}),
            queue("a", "b", maxConcurrency=5, maxConcurrencyPerKey=1),
            "concurrency key a has 1 of 1 reservations in queue mail",
        ),
        (
            job(),
            queue(rateLimit={"count": 3, "periodSeconds": 60}),
            "queue mail starts 3 jobs in 60 s at most",
        ),
        *(
            (
                job(attempt=1, parks=1, reason=reason),
                queue(rateLimit={"count": 3}),
                "queue mail is about to admit it, or its workers have no free slot",
            )
            for reason in ("WaitOver", "GateOpened")
        ),
        (
            job(attempt=1, reason="GateOpened"),
            queue(rateLimit={"count": 3}),
            "queue mail starts 3 jobs in 1 s at most",
        ),
        (
            job(),
            queue("a", maxConcurrency=2),
            "queue mail is about to admit it, or its workers have no free slot",
        ),
        (
            job(spec={"concurrencyKey": "a"}),
            queue("a", "b", "b", maxConcurrencyPerKey=2),
            "queue mail is about to admit it, or its workers have no free slot",
        ),
        (
            job(),
            queue("", "", maxConcurrencyPerKey=1),
            "queue mail is about to admit it, or its workers have no free slot",
        ),
        (job(), queue(rateLimit={"count": 3}), "queue mail starts 3 jobs in 1 s at most"),
        (
            job(admitted=True),
            queue("", maxConcurrency=1),
            "it waits for a free slot of a worker of queue mail that handles t",
        ),
        (job("Pending", message="suspended by spec.suspend"), {}, "suspended by spec.suspend"),
        (job("Scheduled"), {}, "it is Scheduled"),
        (job("Retrying", nextAttemptTime="12:00"), {}, "its next attempt is due at 12:00"),
        (
            job("Retrying", nextAttemptTime="12:00", message="retry 1 of 3"),
            {},
            "its next attempt is due at 12:00; retry 1 of 3",
        ),
        (job("Running"), queue(paused=True), ""),
        (job("Succeeded", completionTime="2026-01-01T00:00:00Z"), {}, ""),
    ],
)
def test_it_is_said_in_one_sentence(
    job_: dict[str, Any], queue_: dict[str, Any], sentence: str
) -> None:
    why = explain_wait(job_, queue_)
    assert (why.message if why else "") == sentence


def test_what_has_a_word_for_it_says_the_word() -> None:
    reasons = [
        explain_wait(job(), queue(paused=True)),
        explain_wait(job(), queue("", maxConcurrency=1)),
        explain_wait(job(), queue(rateLimit={"count": 1})),
        explain_wait(job()),
        explain_wait(job(), queue("a", maxConcurrency=2)),
        explain_wait(job(spec={"cancel": True})),
        explain_wait(job("Pending", reason="Suspended")),
        explain_wait(job("Retrying", reason="HandlerFailed")),
    ]
    words = [why.reason for why in reasons if why]
    assert words == [
        *("QueuePaused", "ConcurrencyLimit", "RateLimit", "", ""),
        *("CancelRequested", "Suspended", "HandlerFailed"),
    ]


def test_a_phase_of_another_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="Unheard"):
        explain_wait(job("Unheard"))
