"""What an attempt's end means for the job."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from asyncjob.app import Category, Fail, Handler, Retry, WorkerApp, outcomes
from asyncjob.app.context import Stop
from asyncjob.app.error_report import HandlerCrashedError, ReportedError, to_error_report
from asyncjob.free_json import FreeJsonError
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.leases.held_job import HeldJob
from support.parts.worker_parts import NOW, held, job

EFFECTIVE = job()["status"]["effective"]


class Receipt(BaseModel):
    at: datetime
    note: str | None = None


def handler(result: type | None = None) -> Handler:
    app = WorkerApp()

    async def work(job: Any) -> Any: ...

    if result is not None:
        work.__annotations__["return"] = result
    app.handler("echo")(work)
    return app.handlers["echo"]


def succeeded(result: object, *, of: Handler | None = None, max_bytes: int = 1000) -> PhaseChange:
    return outcomes.succeeded(held().job, of or handler(), result, max_bytes=max_bytes, now=NOW)


def failed(error: BaseException, of: HeldJob | None = None) -> PhaseChange:
    own: dict[type[BaseException], str] = {ZeroDivisionError: "Arithmetic"}
    return outcomes.failed((of or held()).job, error, own, now=NOW, jitter_sample=0.5)


def category(move: PhaseChange) -> Any:
    error = move.fields["error"]
    assert isinstance(error, dict)
    return error["category"]


def stopped(why: Stop) -> PhaseChange | None:
    return outcomes.stopped(held().job, why, refusal="too large", now=NOW, jitter_sample=0.5)


def test_the_death_of_a_handlers_process_is_a_crash_and_spends_no_retry() -> None:
    move = failed(HandlerCrashedError("it died by SIGSEGV"))
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_CRASHED)
    assert move.fields["message"] == "crash 1 of 3 allowed: it died by SIGSEGV"
    assert "retries" not in move.fields


def test_the_last_death_allowed_is_followed_by_a_dead_letter() -> None:
    move = failed(HandlerCrashedError(), held(crashes=3))
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.CRASH_BUDGET_EXHAUSTED)
    assert move.fields["crashes"] == 4


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad \ud800"),
        ZeroDivisionError(),
        Retry("later", after=3),
        Retry("some time"),
        Fail("no", category="Mine"),
        Fail("no", category="x" * 1000),
        FreeJsonError("too large"),
    ],
    ids=repr,
)
def test_an_error_means_the_same_from_another_process(error: Exception) -> None:
    own: dict[type[BaseException], str] = {ZeroDivisionError: "Arithmetic"}
    reported = ReportedError(to_error_report(error, own))
    nothing_known_here = outcomes.failed(held().job, reported, {}, now=NOW, jitter_sample=0.5)
    assert nothing_known_here == failed(error)


def test_a_result_is_stored_as_plain_json() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    move = succeeded(Receipt(at=at), of=handler(Receipt))
    assert move.target is Phase.SUCCEEDED
    assert move.fields["result"] == {"at": "2026-01-01T00:00:00Z", "note": None}


def test_a_result_over_the_limit_is_refused_with_size_and_limit() -> None:
    move = succeeded("x" * 1000, max_bytes=100)
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.RESULT_REFUSED)
    words = "the result has 1002 bytes, the limit is 100"
    assert move.fields["message"] == words + outcomes.OFFLOAD_HINT


@pytest.mark.parametrize("result", [object(), {"n": 2**63}, float("nan"), b"\xff"])
def test_a_result_that_is_not_json_is_refused(result: object) -> None:
    assert succeeded(result).reason is Reason.RESULT_REFUSED


@pytest.mark.parametrize("kind", [None, int])
def test_a_result_that_nobody_has_awaited_is_refused_with_the_way_out(kind: type | None) -> None:
    async def work() -> int:
        return 1

    move = succeeded(work(), of=handler(kind))
    assert move.reason is Reason.RESULT_REFUSED
    assert "a coroutine that nobody has awaited" in str(move.fields["message"])
    assert "decorator" in str(move.fields["message"])


def test_nan_in_a_declared_result_is_refused_and_never_becomes_null() -> None:
    move = succeeded({"share": float("nan")}, of=handler(dict[str, Any]))
    assert move.reason is Reason.RESULT_REFUSED
    assert move.fields["message"] == "the result.share is nan, which JSON does not have"


def test_whatever_a_results_own_serializer_raises_is_refused() -> None:
    class Broken(BaseModel):
        def model_dump(self, *_: Any, **__: Any) -> Any:
            raise KeyError("x")

    class Rude:
        def __getattr__(self, name: str) -> Any:
            raise ZeroDivisionError

    assert succeeded(Rude()).reason is Reason.RESULT_REFUSED


def test_an_ordinary_error_is_retried_with_its_category() -> None:
    move = failed(TimeoutError("slow"))
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    assert category(move) == Category.TIMEOUT


def test_the_apps_own_category_comes_first() -> None:
    assert category(failed(ZeroDivisionError())) == "Arithmetic"


@pytest.mark.parametrize(
    "error", [Fail("no", category="NotFound"), Retry("later", after=5), ConnectionError("x")]
)
def test_an_error_in_a_task_group_means_what_it_means_by_itself(error: Exception) -> None:
    nested = ExceptionGroup("tasks", [ExceptionGroup("unhandled errors", [error])])
    assert failed(nested) == failed(error)


def test_several_errors_of_a_task_group_are_one_of_category_internal() -> None:
    move = failed(ExceptionGroup("tasks", [ConnectionError("x"), ValueError("y")]))
    assert (category(move), move.target) == (Category.INTERNAL, Phase.RETRYING)


def test_fail_is_final() -> None:
    move = failed(Fail("no such user", category="NotFound"))
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE)
    assert category(move) == "NotFound"


@pytest.mark.parametrize("bad", ["", "x" * 65, "a\nb"])
def test_a_category_that_cannot_be_stored_becomes_internal(bad: str) -> None:
    assert category(failed(Fail("no", category=bad))) == Category.INTERNAL


@pytest.mark.parametrize("after", [None, 5.0])
def test_retry_is_granted_whatever_the_policy_says_about_the_category(
    after: float | None,
) -> None:
    never = held(effective={**EFFECTIVE, "noRetryOn": ["Internal", "Timeout"]})
    move = failed(Retry(after=after), never)
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.RETRY_REQUESTED)
    assert move.fields["retryDelaySeconds"] == (2.0 if after is None else 5.0)


def test_retry_has_the_category_of_its_cause() -> None:
    error = Retry()
    error.__cause__ = TimeoutError()
    assert category(failed(error)) == Category.TIMEOUT


@pytest.mark.parametrize(
    ("category", "stored"), [("RateLimited", "RateLimited"), ("", "Network"), ("x" * 65, "Network")]
)
def test_retry_may_have_a_category_of_its_own(category: str, stored: str) -> None:
    error = Retry(category=category)
    error.__cause__ = ConnectionError()
    move = outcomes.failed(held().job, error, {}, now=NOW, jitter_sample=0.5)
    assert isinstance(found := move.fields["error"], dict)
    assert found["category"] == stored


def test_retry_spends_a_retry_and_ends_when_none_is_left() -> None:
    spent = held(retries=3)
    assert failed(Retry(), spent).reason is Reason.RETRIES_EXHAUSTED


def test_a_checkpoint_that_cannot_be_stored_is_final() -> None:
    move = failed(FreeJsonError("the checkpoint has 300000 bytes, the limit is 262144"))
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.RESULT_REFUSED)
    assert "300000" in str(move.fields["message"])


def test_a_message_that_is_not_utf8_is_stored_all_the_same() -> None:
    error = failed(OSError("bad name \udcff")).fields["error"]
    assert isinstance(error, dict)
    assert error["message"] == "bad name ?"


def test_an_error_that_cannot_even_be_shown_is_named() -> None:
    class Shy(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError

    error = failed(Shy()).fields["error"]
    assert isinstance(error, dict)
    assert error["message"] == "Shy"


def test_an_invalid_payload_names_its_fields_and_is_final() -> None:
    class Order(BaseModel):
        number: int

    with pytest.raises(ValidationError) as error:
        Order.model_validate({"number": "x"})
    move = outcomes.invalid_payload(held().job, error.value, now=NOW)
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)
    assert str(move.fields["message"]).startswith("number: ")


def test_a_payload_that_lies_elsewhere_is_never_taken_for_an_empty_one() -> None:
    move = outcomes.unreadable_payload(held().job, LookupError("no such key"), now=NOW)
    assert (move.target, move.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)
    assert move.fields["message"] == "no such key"


@pytest.mark.parametrize(
    ("why", "target", "reason"),
    [
        (Stop.CANCELLED, Phase.CANCELLED, Reason.CANCEL_REQUESTED),
        (Stop.PAST_DEADLINE, Phase.CANCELLED, Reason.DEADLINE_EXCEEDED),
        (Stop.TIMED_OUT, Phase.RETRYING, Reason.EXECUTION_TIMEOUT),
        (Stop.DRAINING, Phase.QUEUED, Reason.RELEASED),
        (Stop.REFUSED, Phase.DEAD_LETTER, Reason.RESULT_REFUSED),
    ],
)
def test_each_reason_to_stop_has_its_outcome(why: Stop, target: Phase, reason: Reason) -> None:
    move = stopped(why)
    assert move
    assert (move.target, move.reason) == (target, reason)


def test_a_fenced_attempt_has_no_outcome() -> None:
    assert stopped(Stop.FENCED) is None


def test_a_timeout_says_what_kept_the_attempt_if_it_was_not_the_handler() -> None:
    move = outcomes.stopped(
        held().job, Stop.TIMED_OUT, detail="the store is away", now=NOW, jitter_sample=0.5
    )
    assert move
    assert str(move.fields["message"]).endswith("longer than 1800 s: the store is away")


def test_an_end_for_the_deadline_says_the_same() -> None:
    late = held(spec={"deadlineSeconds": 60}).job
    move = outcomes.stopped(
        late, Stop.PAST_DEADLINE, detail="the store is away", now=NOW, jitter_sample=0.5
    )
    assert move
    assert str(move.fields["message"]).endswith("60 s from its creation: the store is away")
