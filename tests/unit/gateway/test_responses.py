"""Every answer to a mishap is a problem that says enough and not too much."""

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.datastructures import Headers

from asyncjob.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    ThrottledError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE
from asyncjob_gateway.app import make_asgi_app
from asyncjob_gateway.auth.authentication import ANYONE, Caller
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.context import AppContext
from asyncjob_gateway.problem_types import PROBLEM_TYPES
from asyncjob_gateway.server import make_context
from asyncjob_gateway.settings import GatewaySettings
from asyncjob_gateway.telemetry import GatewayMetrics


class Broken:
    """An authenticator and a session that fail as they are told."""

    def __init__(self) -> None:
        self.signing_in: Exception | None = None
        self.answering: Exception | None = None

    async def authenticate(self, headers: Headers, address: str = "") -> Caller:  # noqa: ARG002  # none counts
        if self.signing_in:
            raise self.signing_in
        return ANYONE

    async def fetch(self, request: object) -> bytes:  # noqa: ARG002  # none counts
        assert self.answering
        raise self.answering


@pytest.fixture
def broken() -> Broken:
    return Broken()


@pytest.fixture
def context(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> AppContext:
    monkeypatch.setattr("asyncjob_gateway.server._make_authenticator", lambda *_: broken)
    monkeypatch.setattr("asyncjob_gateway.operations.API_SERVER_WAIT_SECONDS", 0.0)
    views = {"ns": NamespaceCache("ns")}
    settings = GatewaySettings(open=True, host="127.0.0.1")
    return make_context(settings, broken, views, GatewayMetrics())  # type: ignore[arg-type]  # a stand-in


@pytest.fixture
async def http(context: AppContext) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(make_asgi_app(context))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def test_what_nobody_foresaw_is_told_without_a_trace(
    http: httpx.AsyncClient, broken: Broken
) -> None:
    broken.signing_in = RuntimeError("password is hunter2")
    answer = await http.get("/jobs/a", headers={"X-Request-Id": "me-1"})
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/internal")
    assert "hunter2" not in answer.text
    assert answer.headers["x-request-id"] == "me-1"


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (UnknownOutcomeError("no answer to GET /apis at 10.0.0.1"), 503, "unavailable"),
        (UnauthorizedError("token of gateway expired"), 503, "unavailable"),
        (ForbiddenError('User "gateway" cannot get resource "asyncjobs"'), 503, "unavailable"),
        (ForbiddenError("exceeded quota: jobs"), 403, "forbidden"),
        (ForbiddenError("ValidatingAdmissionPolicy 'x' denied request"), 403, "forbidden"),
        (ThrottledError("slow down", retry_after=3), 503, "unavailable"),
        (ConflictError("changed"), 503, "unavailable"),
        (ApiError("what is this"), 503, "unavailable"),
    ],
)
async def test_the_api_servers_errors_are_told_in_our_words(
    http: httpx.AsyncClient, broken: Broken, error: ApiError, status: int, kind: str
) -> None:
    broken.answering = error
    answer = await http.get("/jobs/a")
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{kind}")
    assert answer.headers["content-type"] == PROBLEM_CONTENT_TYPE
    assert "10.0.0.1" not in answer.text
    assert 'User "gateway"' not in answer.text
    if status == 503:
        assert int(answer.headers["retry-after"]) >= 1


async def test_lists_wait_for_the_first_sync_and_single_jobs_do_not(
    http: httpx.AsyncClient, context: AppContext
) -> None:
    for path in ("/api/v1/jobs", "/api/v1/queues", "/api/v1/workers", "/api/v1/events"):
        answer = await http.get(path)
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/not-synced"), path
    assert (await http.get("/readyz")).status_code == 503
    assert (await http.get("/healthz")).text == "ok"
    context.state.stopping = True
    assert (await http.get("/readyz")).text == "stopping"


async def test_each_answer_says_that_it_is_not_to_be_kept_or_guessed_at(
    http: httpx.AsyncClient,
) -> None:
    answer = await http.get("/nowhere")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]
    odd = await http.get("/nowhere", headers={"X-Request-Id": "a b\tc"})
    assert odd.headers["x-request-id"] != "a b\tc"
    assert "access-control-allow-origin" not in answer.headers


def test_each_kind_of_problem_has_a_name_of_its_own_and_a_meaning() -> None:
    assert len({kind.slug for kind in PROBLEM_TYPES}) == len(PROBLEM_TYPES)
    for kind in PROBLEM_TYPES:
        assert kind.meaning.endswith(".")
        assert 400 <= kind.status < 600
