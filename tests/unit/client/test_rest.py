"""Operations by REST: what is repeated, what an answer means, and how streams are read."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from asyncjob.client import AsyncJobsClient, JobsClient
from asyncjob.client import errors as e
from asyncjob.client.connection import Connection
from asyncjob.client.rest.events import EventStream
from asyncjob.rest.job_reading import job_of
from asyncjob.rest.jobs import Job
from asyncjob.rest.listing import Selection
from asyncjob.rest.submission import Submission
from support.objects.builders import stored

URL = "http://jobs.test/"
SUBMITTED = {"id": "j", "created": True, "phase": "Queued"}


class Gateway:
    """Answers by a list, the last for ever; an exception is raised. Notes requests."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **options: Any) -> JobsClient:
        return JobsClient(URL, transport=httpx.MockTransport(self), **options)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


def ok(body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


def problem(status: int, kind: str, headers: Any = None, **more: Any) -> httpx.Response:
    body = {"type": f"/problems/{kind}", "title": kind, "status": status, "detail": "why", **more}
    return httpx.Response(status, json=body, headers=headers)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let pauses pass at once."""
    pauses: list[float] = []

    async def pause(connection: Connection, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(Connection, "pause", pause)
    return pauses


def whole(**status: Any) -> Any:
    return job_of(stored("j", status)).model_dump(mode="json", by_alias=True)


LOST = httpx.ReadTimeout("no answer")


@pytest.mark.parametrize(
    ("submission", "field"),
    [
        (Submission(type="t"), "name"),
        (Submission(type="t", deduplication_id="d"), "idempotencyKey"),
    ],
)
def test_a_submission_is_repeated_under_a_name_of_the_clients_own(
    submission: Submission, field: str
) -> None:
    gateway = Gateway(LOST, problem(503, "unavailable"), ok(SUBMITTED))
    gateway.client().submit(submission)
    assert len(gateway.requests) == 3
    assert len({body[field] for body in gateway.bodies}) == 1
    assert len(gateway.bodies[0][field]) == 36


def test_a_name_or_key_that_is_given_is_left_alone() -> None:
    gateway = Gateway(ok(SUBMITTED))
    gateway.client().submit("t", idempotency_key="k")
    gateway.client().submit("t", name="n")
    first, second = gateway.bodies
    assert ("name" in first, "idempotencyKey" in second) == (False, False)


Act = Callable[[JobsClient], Any]


@pytest.mark.parametrize(
    "act",
    [
        lambda jobs: jobs.rerun("j"),
        lambda jobs: jobs.redrive("j"),
        lambda jobs: jobs.trigger("j"),
        lambda jobs: jobs.redrive_many(),
        lambda jobs: jobs.dismiss_many(),
    ],
)
def test_what_may_do_harm_twice_is_sent_once(act: Act) -> None:
    gateway = Gateway(LOST)
    with pytest.raises(e.GatewayUnavailableError, match="no answer to POST /api/v1/"):
        act(gateway.client())
    assert len(gateway.requests) == 1


@pytest.mark.parametrize(
    "act",
    [
        lambda jobs: jobs.get("j"),
        lambda jobs: jobs.cancel("j", cascade=True),
        lambda jobs: jobs.suspend("j"),
        lambda jobs: jobs.set_priority("j", 2),
        lambda jobs: jobs.dismiss("j"),
    ],
)
def test_what_does_no_harm_twice_is_repeated(act: Act) -> None:
    gateway = Gateway(LOST, problem(502, ""), ok(whole()))
    assert act(gateway.client()).id == "j"
    assert len(gateway.requests) == 3


def test_a_gateway_that_stays_away_is_given_up(no_pause: list[float]) -> None:
    with pytest.raises(e.GatewayUnavailableError):
        Gateway(LOST).client(patience=0.1).get("j")
    assert sum(no_pause) < 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(401, "unauthenticated"), e.UnauthenticatedError),
        (problem(403, "forbidden"), e.NotAllowedError),
        (problem(404, "no-job"), e.JobNotFoundError),
        (problem(404, "not-found"), e.NotFoundError),
        (problem(409, "conflict"), e.JobStateError),
        (problem(409, "not-cancellable"), e.NotCancellableError),
        (
            problem(422, "invalid", errors=[{"field": "query.x", "detail": "d"}]),
            e.InvalidRequestError,
        ),
        (httpx.Response(404, text="<html>"), e.NotFoundError),
        (httpx.Response(302, headers={"Location": "http://elsewhere/"}), e.GatewayUnavailableError),
        (httpx.Response(200, text="<html>login</html>"), e.GatewayUnavailableError),
        (httpx.Response(418), e.InvalidRequestError),
    ],
)
def test_each_kind_of_answer_is_an_error_of_its_own(
    answer: httpx.Response, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        Gateway(answer).client(patience=0.0).get("j")
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(409, "duplicate", jobId="x"), e.DuplicateJobError),
        (problem(409, "job-exists", jobId="x"), e.JobExistsError),
        (problem(422, "key-reused", jobId="x"), e.KeyReusedError),
    ],
)
def test_a_job_in_the_way_is_named(answer: httpx.Response, kind: type[e.InTheWayError]) -> None:
    with pytest.raises(kind, match="why") as caught:
        Gateway(answer).client().submit("t")
    assert caught.value.job_id == "x"


def test_a_field_at_fault_is_named() -> None:
    errors = [{"field": "retryPolicy.maxRetries", "detail": "too many"}]
    with pytest.raises(e.InvalidSubmissionError) as caught:
        Gateway(problem(422, "invalid", errors=errors)).client().submit("t")
    assert caught.value.errors[0].field == "retryPolicy.maxRetries"


def test_a_full_queue_is_told_at_once_with_when_to_try_again() -> None:
    gateway = Gateway(problem(429, "queue-full", {"Retry-After": "7"}))
    with pytest.raises(e.QueueFullError) as caught:
        gateway.client().submit("t")
    assert (caught.value.retry_after, caught.value.retryable, len(gateway.requests)) == (7, True, 1)


def test_a_gateway_that_asks_for_time_is_given_it(no_pause: list[float]) -> None:
    gateway = Gateway(problem(503, "busy", {"Retry-After": "3"}), ok(whole()))
    gateway.client().get("j")
    assert max(no_pause) > 2


def test_namespace_filters_and_cursor_are_parameters() -> None:
    gateway = Gateway(ok({"items": [], "next": None}))
    chosen = Selection.model_validate({"phase": ["Queued", "Running"], "olderThanSeconds": 5})
    list(gateway.client(namespace="team").list(chosen))
    params = gateway.requests[0].url.params
    assert params.get_list("phase") == ["Queued", "Running"]
    assert (params["olderThanSeconds"], params["namespace"]) == ("5", "team")


def test_pages_are_followed_to_the_last() -> None:
    def page(name: str, cursor: str | None) -> httpx.Response:
        summary = job_of(stored(name)).model_dump(mode="json", by_alias=True)
        return ok({"items": [summary], "next": cursor})

    gateway = Gateway(page("a", "c1"), page("b", None))
    assert [job.id for job in gateway.client().list()] == ["a", "b"]
    assert gateway.requests[1].url.params["cursor"] == "c1"


@pytest.mark.parametrize("where", ["given", "function", "file", "variable", "variable-file"])
def test_the_token_comes_from_where_it_is_said_to_be(
    where: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    token: Any = {"given": "secret", "function": lambda: "secret", "file": file}.get(where)
    if where == "variable":
        monkeypatch.setenv("ASYNCJOB_TOKEN", "secret")
    if where == "variable-file":
        monkeypatch.setenv("ASYNCJOB_TOKEN_FILE", str(file))
    gateway = Gateway(ok(whole()))
    gateway.client(token=token).get("j")
    assert gateway.requests[0].headers["Authorization"] == "Bearer secret"


def test_without_an_address_or_a_readable_token_it_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.delenv("ASYNCJOB_SERVER", raising=False)
    with pytest.raises(e.ClientConfigError, match="ASYNCJOB_SERVER"):
        JobsClient()
    with pytest.raises(e.ClientConfigError, match="is not the address"):
        JobsClient("jobs.test")
    with pytest.raises(e.ClientConfigError, match="cannot be read"):
        Gateway(ok({})).client(token=tmp_path / "none").get("j")
    monkeypatch.setenv("ASYNCJOB_SERVER", URL)
    JobsClient().close()


def stream(*events: tuple[str, Any]) -> httpx.Response:
    text = "".join(
        f"event: {kind}\r\nid: 1\r\ndata: {json.dumps(data)}\r\n\r\n" for kind, data in events
    )
    return httpx.Response(200, content=f": hello\r\n\r\n{text}".encode())


def test_waiting_reads_the_stream_and_the_whole_job_at_its_end() -> None:
    summary = whole(phase="Running", progress={"percent": 7})
    gateway = Gateway(
        ok(whole()),
        stream(("job", summary), ("job", whole(phase="Succeeded"))),
        ok(whole(phase="Succeeded", result=1)),
    )
    seen: list[Job] = []
    job = gateway.client().wait("j", on_change=seen.append)
    assert (job.phase, job.result) == ("Succeeded", 1)
    assert [one.phase for one in seen] == ["Queued", "Running", "Succeeded"]
    assert gateway.requests[1].headers["Accept"] == "text/event-stream"


def test_waiting_goes_by_looks_where_there_are_no_streams(no_pause: list[float]) -> None:
    gateway = Gateway(ok(whole()), problem(404, "not-found"), ok(whole(phase="Succeeded")))
    assert gateway.client().wait("j").succeeded


def test_waiting_outlasts_a_gateway_that_restarts() -> None:
    down = httpx.ConnectError("refused")
    gateway = Gateway(ok(whole()), down, down, down, down, ok(whole(phase="Succeeded")))
    assert gateway.client().wait("j").succeeded


async def test_the_async_client_does_the_same() -> None:
    gateway = Gateway(
        ok(whole()), stream(("job", whole(phase="Succeeded"))), ok(whole(phase="Succeeded"))
    )
    async with AsyncJobsClient(URL, transport=httpx.MockTransport(gateway)) as jobs:
        assert (await jobs.wait("j")).succeeded
        assert [job.phase async for job in jobs.poll("j")] == ["Succeeded"]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_are_read_whatever_pieces_they_come_in(size: int) -> None:
    good = 'event: job\ndata: {"a":\ndata: "b\u2028c"}\nodd: x\n\n'
    text = f"{good}: beat\n\ndata: nonsense\n\n".encode()
    events = EventStream()
    for start in range(0, len(text), size):
        events.feed(text[start : start + size])
    assert list(events.ready) == [
        {"event": "job", "data": {"a": "b\u2028c"}},
        {"event": "", "data": None},
    ]


@pytest.mark.parametrize(
    "url", ["http://[bad", "http://host:abc", "http://a b/", "http://a/\x00", "http://:80"]
)
def test_what_is_no_address_is_told_before_anything_is_sent(url: str) -> None:
    with pytest.raises(e.ClientConfigError, match="is not the address of a gateway"):
        JobsClient(url)


@pytest.mark.parametrize("token", ["a\nb", "secr\u00e9t"])
def test_what_can_be_no_token_is_not_sent_nor_shown(token: str, no_pause: list[float]) -> None:
    gateway = Gateway(ok([]))
    with (
        gateway.client(token=token) as jobs,
        pytest.raises(e.ClientConfigError, match="no bearer token can have") as caught,
    ):
        jobs.workers()
    assert (gateway.requests, no_pause, token in str(caught.value)) == ([], [], False)


@pytest.mark.parametrize("limit", [0, 10**6])
def test_a_limit_that_makes_no_sense_is_named(limit: int) -> None:
    with (
        Gateway(ok([])).client() as jobs,
        pytest.raises(e.InvalidRequestError, match=f"limit: {limit} is not an integer from"),
    ):
        jobs.redrive_many(limit=limit)
