"""What keeps strangers out of the dashboard, asked of the gateway itself."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.ports import free_port
from support.driven.jobs import until
from support.processes.chromium import sign_in
from support.processes.dashboard_setup import DashboardSetup, SampleJobs
from support.processes.gateway import GatewayProcess

PAGE = {"Accept": "text/html"}
OURS = {"Sec-Fetch-Site": "same-origin", **PAGE}


@pytest.fixture
def http(setup: DashboardSetup) -> Iterator[httpx.Client]:
    """Be the admin, by a token that a proxy adds."""
    with setup.gateway.client(setup.admin_token) as client:
        client.headers.update(PAGE)
        yield client


def form_token(client: httpx.Client) -> str:
    page = client.get("/dashboard/sign-in").text
    found = re.search(r'name="form-token" value="([^"]+)"', page)
    assert found
    return found[1]


def test_every_answer_has_the_headers_that_keep_strangers_out(
    http: httpx.Client, samples: SampleJobs
) -> None:
    for path in (*samples.pages.values(), "/sign-in", "/nowhere"):
        headers = http.get(f"/dashboard{path}").headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'; style-src 'self'" in policy
        assert "form-action 'self'; frame-ancestors 'none'; base-uri 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"


def test_a_form_of_another_site_does_nothing(
    http: httpx.Client, samples: SampleJobs, setup: DashboardSetup
) -> None:
    token = form_token(http)
    path = f"/dashboard/jobs/{samples.waiting}/cancel"
    forged = [
        http.post(path, data={"form-token": token}, headers={"Sec-Fetch-Site": "cross-site"}),
        http.post(path, data={"form-token": token}, headers={"Origin": "https://a.example"}),
        http.post(path, data={"form-token": "guess"}, headers=OURS),
        http.post(path, headers=OURS),
        http.post(path, json={"form-token": token}, headers=OURS),
    ]

    assert [answer.status_code for answer in forged] == [403, 403, 403, 415, 415]
    assert "cancel" not in setup.ns.get(samples.waiting)["spec"]
    back = http.get(path)
    assert (back.status_code, back.headers["location"]) == (303, path.removesuffix("/cancel"))


def test_rest_takes_no_cookie(setup: DashboardSetup) -> None:
    with setup.gateway.client() as client:
        client.cookies.set("asyncjob-token", setup.admin_token)
        assert client.get("/api/v1/jobs").status_code == 401
        assert client.get("/dashboard/jobs", headers=PAGE).status_code == 200


def test_who_is_not_signed_in_is_sent_to_the_form_and_a_program_gets_a_problem(
    setup: DashboardSetup,
) -> None:
    with setup.gateway.client() as client:
        sent = client.get("/dashboard/jobs?text=a&queue=b", headers=PAGE)
        assert sent.status_code == 303
        target = "/dashboard/sign-in?next=%2Fdashboard%2Fjobs%3Ftext%3Da%26queue%3Db"
        assert sent.headers["location"] == target
        told = client.get("/dashboard/jobs")
        assert told.status_code == 401
        assert told.headers["content-type"] == "application/problem+json"
        assert client.get("/dashboard/events").status_code == 401
        assert client.get("/", headers=PAGE).headers["location"] == "/dashboard/"
        assert client.get("/").json()["type"] == "/problems/not-found"


def test_an_error_is_a_page_for_people_and_a_problem_for_programs(http: httpx.Client) -> None:
    page = http.get("/dashboard/jobs/no-such-job")
    problem = http.get("/dashboard/jobs/no-such-job", headers={"Accept": "application/json"})

    assert page.status_code == problem.status_code == 404
    assert "<h1>Job not found</h1>" in page.text
    assert problem.json()["type"] == "/problems/no-job"
    assert http.get("/dashboard/nowhere").status_code == 404
    assert http.get("/dashboard/jobs/Not_A_Name").status_code == 422
    assert http.get("/dashboard/jobs?cursor=nonsense").status_code == 422
    assert http.get("/dashboard/queues?namespace=elsewhere").status_code == 404


def test_numbers_that_are_none_are_told_at_their_field(
    http: httpx.Client, samples: SampleJobs, setup: DashboardSetup
) -> None:
    http.headers.update(OURS)
    token = {"form-token": form_token(http)}
    for text in ("--5", "9" * 5000, "1e3", "1001", ""):
        path = f"/dashboard/jobs/{samples.waiting}/priority"
        answer = http.post(path, data={"priority": text, **token})
        assert answer.status_code == 422, text
        assert "<code>priority</code>: must be an integer" in answer.text
    more = {"action": "redrive-all", "limit": "9" * 5000, "filters": "text=no-such-job", **token}
    assert http.post("/dashboard/dead-letters/confirm", data=more).status_code == 200
    assert setup.ns.get(samples.waiting)["spec"]["priority"] == 5


def test_a_form_of_another_reader_does_nothing(
    http: httpx.Client, samples: SampleJobs, setup: DashboardSetup
) -> None:
    with setup.gateway.client(setup.viewer_token) as other:
        theirs = form_token(other)
    form_token(http)

    answer = http.post(
        f"/dashboard/jobs/{samples.waiting}/suspend", data={"form-token": theirs}, headers=OURS
    )

    assert answer.status_code == 403
    assert "The form is not valid any more" in answer.text
    assert not setup.ns.get(samples.waiting)["spec"].get("suspend")


def test_ids_of_a_form_are_names_and_no_paths(http: httpx.Client, setup: DashboardSetup) -> None:
    http.headers.update(OURS)
    odd = ["../asyncqueues/sample", "a/../b", "<b>", "x" * 300]
    form = {"action": "dismiss", "id": odd, "form-token": form_token(http)}

    answer = http.post("/dashboard/dead-letters/do", data=form)

    assert "0 dead letters dismissed, 4 not" in answer.text
    assert "<b></a>" not in answer.text


def test_without_an_api_server_pages_say_so_and_lead_on(
    plane: ControlPlane, setup: DashboardSetup, tmp_path: Path
) -> None:
    nowhere, log = tmp_path / "kubeconfig", tmp_path / "log"
    url = f"https://127.0.0.1:{free_port()}"
    write_kubeconfig(
        nowhere, url=url, ca_file=plane.ca_file, user={"token": "a"}, namespace="nowhere"
    )
    log.touch()
    with GatewayProcess(nowhere, log, "--open") as gateway, gateway.client() as client:
        client.headers.update(PAGE)
        until(lambda: is_up(client), 30, "the gateway")
        listed, read = client.get("/dashboard/jobs?text=a"), client.get("/dashboard/jobs/one")

    assert (listed.status_code, read.status_code) == (503, 503)
    assert "<h1>Not ready yet</h1>" in listed.text
    assert '<a class="button main" href="/dashboard/jobs?text=a">Try again</a>' in listed.text
    assert "<h1>The API server is not available</h1>" in read.text
    for page in (listed, read):
        assert int(page.headers["retry-after"]) >= 1
        assert 'aria-label="Sections"' in page.text


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_scripts_and_styles_are_kept_for_ever_under_the_name_of_their_content(
    http: httpx.Client,
) -> None:
    address = re.findall(
        r'(?:src|href)="(/dashboard/static/[^"]+)"', http.get("/dashboard/queues").text
    )
    kept = [http.get(path).headers["cache-control"] for path in address]

    assert len(address) == 4
    assert all("immutable" in one for one in kept)
    assert http.get("/dashboard/static/0000/app.js").headers["cache-control"] == "no-store"
    assert http.get("/dashboard/static/0000/..%2Fpage.py").status_code == 404


def test_a_viewer_is_offered_nothing_and_refused_what_is_forced(
    setup: DashboardSetup, samples: SampleJobs, browser: Browser
) -> None:
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, setup.url("/sign-in"), setup.viewer_token)
    page.goto(setup.url(f"/jobs/{samples.dead}"))
    expect(page.locator("main")).to_contain_text("no such user: 7")
    expect(page.locator("main")).to_contain_text("are for those who may read-payload")
    expect(page.locator("main form[method=post]")).to_have_count(0)
    expect(page.locator("pre.json")).to_have_count(0)
    expect(page.locator("#sections")).not_to_contain_text("Submit")
    expect(page.locator("#live")).to_have_text("Live")
    for path in ("/queues", "/arrays", f"/arrays/{samples.array}", "/cron-jobs", "/dead-letters"):
        page.goto(setup.url(path))
        expect(page.locator("main form[method=post] button")).to_have_count(0)
    context.close()

    with setup.gateway.client(setup.viewer_token) as client:
        client.headers.update(OURS)
        token = {"form-token": form_token(client)}
        forced = (
            f"/jobs/{samples.dead}/redrive",
            f"/jobs/{samples.dead}/rerun",
            f"/jobs/{samples.waiting}/priority",
            "/dead-letters/confirm",
            "/dead-letters/do",
            "/queues/samples/resume",
            f"/arrays/{samples.array}/cancel",
            f"/arrays/{samples.array}/redrive",
            "/cron-jobs/sample-nightly/trigger",
            "/cron-jobs/sample-nightly/suspend",
            "/submit",
        )
        for path in forced:
            assert client.post(f"/dashboard{path}", data=token).status_code == 403, path
    assert setup.ns.status(samples.dead)["phase"] == "DeadLetter"
