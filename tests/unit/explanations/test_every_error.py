"""What looks at the errors of all tests finds one without a code that is explained."""

import httpx
import pytest

from asyncjob.cli import entry
from asyncjob.errors import AsyncJobError, message_of
from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE


class NamelessError(AsyncJobError):
    """An error whose code nobody has explained."""

    code = "nameless"


def answer(kind: str) -> httpx.Client:
    def handle(_: httpx.Request) -> httpx.Response:
        headers = {"content-type": PROBLEM_CONTENT_TYPE}
        return httpx.Response(400, headers=headers, json={"type": kind})

    return httpx.Client(transport=httpx.MockTransport(handle), base_url="http://gateway")


def test_a_message_with_an_unknown_code_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="does not know 'nameless'"):
        message_of(NamelessError())


def test_a_problem_of_an_unknown_type_fails_the_test() -> None:
    with answer("/problems/no-job") as http:
        assert http.get("/jobs/a").status_code == 400
    with answer("/problems/nameless") as http, pytest.raises(AssertionError, match="nameless"):
        http.get("/jobs/a")


def test_an_unknown_exit_code_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "_report_known_error", lambda *_: 77)
    with pytest.raises(AssertionError, match="exit-77"):
        entry._report_error(AsyncJobError("no"), "asyncjob")
