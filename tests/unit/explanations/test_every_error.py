"""What looks at the errors of all tests finds one without a code that is explained."""

import subprocess
from pathlib import Path

import httpx
import pytest

from asyncjob.cli import entry
from asyncjob.errors import AsyncJobError, ConflictError, explained, message_of
from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE
from asyncjob_dev.errors import DevError, ServerRunsError
from asyncjob_dev.server.command import explained as explained_by_the_server
from asyncjob_operator.core.events import KubernetesEvent


class NamelessError(AsyncJobError):
    """An error whose code nobody has explained."""

    code = "nameless"


def answer(kind: str) -> httpx.Client:
    def handle(_: httpx.Request) -> httpx.Response:
        headers = {"content-type": PROBLEM_CONTENT_TYPE}
        return httpx.Response(400, headers=headers, json={"type": kind})

    return httpx.Client(transport=httpx.MockTransport(handle), base_url="http://gateway")


def test_an_error_that_is_only_raised_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConflictError, "code", "nameless")
    with pytest.raises(AssertionError, match="does not know 'nameless'"):
        ConflictError()


def test_an_error_of_the_development_server_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerRunsError, "code", "nameless")
    with pytest.raises(AssertionError, match="does not know 'nameless'"):
        ServerRunsError(Path(".asyncjob"), 1)


def test_an_unknown_code_that_the_development_server_prints_fails_the_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = DevError("no")
    assert explained_by_the_server(error) == "no (asyncjob explain dev-server)"
    monkeypatch.setattr(DevError, "code", "nameless")
    with pytest.raises(AssertionError, match="does not know 'nameless'"):
        explained_by_the_server(error)


def test_a_text_with_an_unknown_code_fails_the_test() -> None:
    assert explained("no", "no-cluster") == "no (asyncjob explain no-cluster)"
    with pytest.raises(AssertionError, match="does not know 'nameless'"):
        explained("no", "nameless")


def test_an_event_with_an_unknown_reason_fails_the_test() -> None:
    assert KubernetesEvent("ns", "name", "uid", "NoWorkers", "none").reason == "NoWorkers"
    with pytest.raises(AssertionError, match="does not know 'Nameless'"):
        KubernetesEvent("ns", "name", "uid", "Nameless", "none")


def test_a_process_that_ends_with_an_unknown_code_fails_the_test(tmp_path: Path) -> None:
    program = tmp_path / "asyncjob-worker"
    program.write_text("#!/bin/sh\nexit $1\n")
    program.chmod(0o755)
    assert subprocess.run([program, "3"], check=False).returncode == 3
    with pytest.raises(AssertionError, match="does not know 'worker-exit-77'"):
        subprocess.run([program, "77"], check=False)


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
