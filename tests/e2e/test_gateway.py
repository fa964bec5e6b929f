"""The gateway as people reach it: by a forwarded port, with REST, command line and dashboard."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from e2e.cluster import until
from e2e.release import NAMESPACE, Release

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True)]

CLI = str(Path(sys.executable).parent / "asyncjob")


@pytest.fixture(scope="module")
def address(release: Release) -> Iterator[str]:
    release.until_whole()
    release.cluster.apply("people", NAMESPACE)
    with release.gateway() as url:
        yield url


@pytest.fixture(scope="module")
def token(address: str, release: Release) -> str:
    return release.token("ada")


@pytest.fixture(scope="module")
def client(address: str, token: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=address, headers=headers, trust_env=False) as opened:
        yield opened


def test_a_job_submitted_over_rest_runs_and_its_key_means_the_same_job(
    client: httpx.Client,
) -> None:
    body = {"jobType": "echo", "payload": {"by": "rest"}, "idempotencyKey": "over-rest"}
    answers = [client.post("/jobs", json=body) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    (identity,) = {answer.json()["jobId"] for answer in answers}
    until(lambda: client.get(f"/jobs/{identity}").json()["status"] == "COMPLETED", 30, str)


def test_who_has_no_token_or_no_right_is_refused(
    address: str, release: Release, client: httpx.Client
) -> None:
    body = {"jobType": "echo", "payload": 1, "idempotencyKey": "refused"}
    stranger = {"Authorization": f"Bearer {release.token('default')}"}
    for headers, status in (({}, 401), (stranger, 403)):
        answer = httpx.post(f"{address}/jobs", json=body, headers=headers, trust_env=False)
        assert answer.status_code == status, answer.text


def test_the_command_line_works_through_it(address: str, token: str) -> None:
    command = [CLI, "submit", "sleep", "seconds:=1", "--queue=reports", "--wait"]
    environ = {**os.environ, "ASYNCJOB_SERVER": address, "ASYNCJOB_TOKEN": token}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Succeeded" in done.stdout + done.stderr


def test_the_dashboard_shows_jobs_to_who_may_see_them(client: httpx.Client, address: str) -> None:
    page = client.get("/dashboard/jobs/first", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "echo" in page.text
    sent = httpx.get(f"{address}/dashboard/", headers={"Accept": "text/html"}, trust_env=False)
    assert (sent.status_code, sent.headers["location"][:18]) == (303, "/dashboard/sign-in")
