"""Pages that stand for long: the gateway goes, comes, hangs, takes rights away, has endless news.

With a gateway of their own, which serves two namespaces.
"""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from asyncjob.names import JOBS, collection_path
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.identities import RBAC, Space
from support.driven.jobs import until
from support.processes.chromium import PATIENCE_MILLISECONDS, sign_in
from support.processes.gateway import ACCOUNT, GatewayProcess, caller, gateway_kubeconfig

QUICK = (
    "const waits = AbortSignal.timeout; AbortSignal.timeout = () => waits.call(AbortSignal, 700)"
)
"""Patience with a gateway that says nothing, cut short."""

NEWS = """
window.EventSource = class extends EventTarget {
  static OPEN = 1; static CLOSED = 2; readyState = 1;
  constructor() {
    super();
    window.told = 0;
    setInterval(() => {
      for (let one = 0; one < 20; one++) { this.dispatchEvent(new Event("change")); window.told++; }
    }, 10);
  }
  close() {}
};
"""
"""A stream that tells of about two thousand changes per second, whatever the gateway sends."""


@dataclass(frozen=True)
class TwoNamespaces:
    """Two namespaces; the owner may do all in the first, and look at jobs in the second."""

    gateway: GatewayProcess
    first: Space
    second: Space
    owner: str

    def url(self, path: str) -> str:
        """Return the address of a page."""
        return f"{self.gateway.url}/dashboard{path}"

    def create(self, space: Space, name: str) -> None:
        """Create a job that nobody runs."""
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name},
            "spec": {"type": "idle", "queue": "idle"},
        }
        space.admin.create(collection_path(space.name, JOBS), body).object()


def let_in(space: Space, account: str, home: str, role: str) -> None:
    """Bind a role in this namespace to an account of another one."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": home}
    binding = {
        "metadata": {"name": f"{account}-of-{home}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    space.admin.create(space.path("rolebindings", RBAC), binding).object()


@pytest.fixture(scope="module")
def both(
    plane: ControlPlane, admin: Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TwoNamespaces]:
    folder = tmp_path_factory.mktemp("both")
    first, second = Space("first", admin).create(), Space("second", admin).create()
    kubeconfig = gateway_kubeconfig(plane, first, folder / "kubeconfig")
    let_in(second, ACCOUNT, first.name, ACCOUNT)
    owner = caller(first, "owner", "asyncjob-job-admin")
    let_in(second, "owner", first.name, "asyncjob-job-submitter")
    log = folder / "gateway.log"
    log.touch()
    names = [f"--namespace={space.name}" for space in (first, second)]
    with GatewayProcess(kubeconfig, log, *names, "--auth-cache=1") as gateway:
        yield TwoNamespaces(gateway.until_ready(), first, second, owner)


@pytest.fixture
def window(both: TwoNamespaces, browser: Browser) -> Iterator[BrowserContext]:
    """Open a browser window in which the owner has signed in."""
    opened = browser.new_context()
    opened.set_default_timeout(PATIENCE_MILLISECONDS)
    sign_in(opened.new_page(), both.url("/sign-in"), both.owner)
    yield opened
    opened.close()


@pytest.fixture
def standing(window: BrowserContext) -> Page:
    return window.pages[0]


def test_a_page_outlives_its_gateway_and_shows_what_it_missed(
    both: TwoNamespaces, standing: Page
) -> None:
    standing.goto(both.url("/jobs"))
    expect(standing.locator("#live")).to_have_text("Live")

    both.gateway.kill()
    expect(standing.locator("#live")).to_contain_text("the gateway cannot be reached")
    both.create(both.first, "missed")
    both.gateway.start().until_ready()

    expect(standing.get_by_role("link", name="missed")).to_be_visible()
    expect(standing.locator("#live")).to_have_text("Live")


def test_a_gateway_that_hangs_is_told_of_and_asked_again(
    both: TwoNamespaces, window: BrowserContext
) -> None:
    page = window.new_page()
    page.add_init_script(QUICK)
    page.goto(both.url("/workers"))
    expect(page.locator("#live")).to_contain_text("Fetched again every 5 s")

    assert both.gateway.process
    both.gateway.process.send_signal(signal.SIGSTOP)
    try:
        page.keyboard.press("r")
        expect(page.locator("#live")).to_contain_text("the gateway cannot be reached")
    finally:
        both.gateway.process.send_signal(signal.SIGCONT)

    expect(page.locator("#live")).to_contain_text("Fetched again")


def test_thousands_of_changes_a_second_are_a_few_fetches(
    both: TwoNamespaces, window: BrowserContext
) -> None:
    page, asked = window.new_page(), list[str]()
    page.add_init_script(NEWS)
    page.goto(both.url("/jobs"))
    page.on("request", lambda request: asked.append(request.url))
    began, told = page.evaluate("[Date.now(), window.told]")

    until(lambda: page.evaluate("window.told") > told + 5000, 20, "five thousand changes")

    seconds = (page.evaluate("Date.now()") - began) / 1000
    assert 1 <= len(asked) <= seconds / 0.5 + 1
    expect(page.locator("#live")).to_have_text("Live")


def test_a_link_of_another_site_asks_for_no_second_sign_in(
    both: TwoNamespaces, standing: Page
) -> None:
    elsewhere = both.url("/sign-in").replace("127.0.0.1", "localhost")
    standing.goto(elsewhere)
    standing.evaluate("(to) => { location.href = to }", both.url("/jobs?text=a"))

    expect(standing).to_have_url(both.url("/jobs?text=a"))
    expect(standing.get_by_role("heading", name="Jobs")).to_be_visible()

    standing.context.clear_cookies()
    standing.goto(elsewhere)
    standing.evaluate("(to) => { location.href = to }", both.url("/jobs?text=a"))
    expect(standing.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(standing.locator("input[name=next]")).to_have_value("/dashboard/jobs?text=a")


def test_in_each_namespace_one_sees_and_does_what_one_may_there(
    both: TwoNamespaces, standing: Page
) -> None:
    for space in (both.first, both.second):
        both.create(space, f"of-{space.name}")
    standing.goto(both.url("/jobs"))
    expect(standing.get_by_role("link", name="of-first", exact=True)).to_be_visible()
    expect(standing.get_by_role("link", name="of-second", exact=True)).to_have_count(0)

    standing.get_by_label("Namespace").select_option("second")
    standing.get_by_role("button", name="Go").click()
    expect(standing).to_have_url(both.url("/jobs?namespace=second"))
    standing.get_by_role("link", name="of-second", exact=True).click()
    expect(standing.locator("h1")).to_have_text("of-second")
    expect(standing.locator("main form[method=post]")).to_have_count(0)
    expect(standing.locator("#sections")).not_to_contain_text("Queues")
    standing.goto(both.url("/queues?namespace=second"))
    expect(standing.get_by_role("heading", name="Not allowed")).to_be_visible()
    standing.get_by_role("link", name="To the dashboard").click()
    expect(standing).to_have_url(both.url("/jobs?namespace=second"))

    standing.get_by_role("link", name="Submit").click()
    standing.get_by_label("Type", exact=True).fill("idle")
    standing.get_by_role("button", name="Submit").click()
    expect(standing.get_by_role("status").filter(has_text="Submitted.")).to_be_visible()
    expect(standing).to_have_url(re.compile("namespace=second"))
    jobs = both.second.admin.get(collection_path("second", JOBS)).object()["items"]
    assert len(jobs) == 2


def test_who_loses_a_right_is_told_and_hears_of_no_more_changes(
    both: TwoNamespaces, browser: Browser
) -> None:
    token = caller(both.first, "leaving", "asyncjob-job-viewer")
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, both.url("/sign-in"), token)
    page.goto(both.url("/jobs"))
    expect(page.locator("#live")).to_have_text("Live")
    before = streams(both)
    both.first.admin.delete(both.first.path("rolebindings", RBAC) + "/leaving")

    def ended() -> bool:
        both.create(both.first, f"unseen-{len(created)}")
        created.append("")
        return streams(both) < before

    created: list[str] = []
    until(ended, 15, "the end of the stream")
    expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("unseen")

    context.clear_cookies()  # as when the token has expired
    page.keyboard.press("r")
    expect(page.locator("#live")).to_contain_text("Not signed in any more")
    context.close()


def streams(both: TwoNamespaces) -> int:
    """Return how many streams are open."""
    found = re.search(r"^asyncjob_gateway_streams ([0-9.]+)", both.gateway.metrics(), re.MULTILINE)
    assert found
    return int(float(found[1]))
