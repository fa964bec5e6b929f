"""Signals on the page of a job: what it waits for, the form, and what it has been sent."""

from playwright.sync_api import Page, expect

from asyncjob.names import job_path
from support.processes.dashboard_setup import DashboardSetup


def test_a_job_that_waits_is_approved_on_its_page(page: Page, setup: DashboardSetup) -> None:
    setup.ns.create("release-1", "release")
    setup.ns.until_status("release-1", lambda status: "waiting" in status)
    page.goto(setup.url("/jobs/release-1"))
    expect(page.locator(".state")).to_contain_text("WaitingForSignal")
    expect(page.locator(".facts").first).to_contain_text("Signal approval")

    form = page.get_by_role("form", name="Signal approval")
    expect(form).to_contain_text("Whether it may go out.")
    expect(form.get_by_label("Shares")).to_have_value("1")
    form.get_by_role("button", name="Send the signal").click()
    assert "signals" not in setup.ns.get("release-1")["spec"], "a choice is required"
    form.get_by_label("May it go out?").select_option("yes")
    form.get_by_label("Shares").fill("3")
    form.get_by_role("button", name="Send the signal").click()
    expect(page.get_by_role("status").filter(has_text="Signal sent.")).to_be_visible()

    expect(page.locator(".head")).to_contain_text("Succeeded")
    who = f"system:serviceaccount:{setup.ns.namespace}:admin"
    expect(page.get_by_label("Result")).to_contain_text(f"approved by {who}: 3")
    sent = {"ok": True, "shares": 3}
    assert setup.ns.get("release-1")["spec"]["signals"]["approval"]["payload"] == sent
    expect(page.get_by_label("Signal approval")).to_contain_text('"ok": true')
    expect(page.locator("main")).to_contain_text(f"from {who}")
    assert page.get_by_role("button", name="Send the signal").count() == 0


def test_what_no_input_can_take_is_sent_as_json(page: Page, setup: DashboardSetup) -> None:
    setup.ns.create("release-4", "release-parts")
    setup.ns.until_status("release-4", lambda status: "waiting" in status)
    page.goto(setup.url("/jobs/release-4"))
    form = page.get_by_role("form", name="Signal approval")
    form.get_by_text("What it may say, as a JSON schema").click()
    expect(form.get_by_label("Schema of approval")).to_contain_text("boolean")
    form.get_by_label("What it says, as JSON").fill('{"ok": true}')
    form.get_by_role("button", name="Send the signal").click()
    expect(page.locator(".head")).to_contain_text("Succeeded")


def test_what_an_input_cannot_take_names_the_field_and_nothing_is_sent(
    page: Page, setup: DashboardSetup
) -> None:
    setup.ns.create("release-5", "release")
    setup.ns.until_status("release-5", lambda status: "waiting" in status)
    page.goto(setup.url("/jobs/release-5"))
    form = page.get_by_role("form", name="Signal approval")
    form.evaluate("form => { form.noValidate = true }")
    form.get_by_label("May it go out?").select_option("no")
    form.get_by_label("Shares").fill("12")
    form.get_by_role("button", name="Send the signal").click()
    expect(page.locator("main")).to_contain_text("shares: must be at most 9")
    assert "signals" not in setup.ns.get("release-5")["spec"]


def test_what_is_no_signal_is_refused_in_words_and_nothing_is_sent(
    page: Page, setup: DashboardSetup
) -> None:
    setup.ns.create("release-2", "echo", 1, suspend=True)
    for name, payload, said in (
        ("no name", "1", "'no name' is not the name of a signal"),
        ("approval", "{", "payload"),
    ):
        page.goto(setup.url("/jobs/release-2"))
        page.locator("summary", has_text="Send a signal…").click()
        page.get_by_label("Signal", exact=True).fill(name)
        page.get_by_label("What it says, as JSON").fill(payload)
        page.get_by_role("button", name="Send the signal").click()
        expect(page.locator("main")).to_contain_text(said)
    assert "signals" not in setup.ns.get("release-2")["spec"]


def test_a_job_that_has_taken_the_name_since_the_page_was_shown_is_sent_nothing(
    page: Page, setup: DashboardSetup
) -> None:
    setup.ns.create("release-3", "echo", 1, suspend=True)
    page.goto(setup.url("/jobs/release-3"))
    page.locator("summary", has_text="Send a signal…").click()
    page.get_by_label("Signal", exact=True).fill("approval")
    setup.space.admin.delete(job_path(setup.ns.namespace, "release-3"))
    setup.ns.create("release-3", "echo", 2, suspend=True)
    page.get_by_role("button", name="Send the signal").click()
    expect(page.locator("main")).to_contain_text("release-3 is another job now")
    assert "signals" not in setup.ns.get("release-3")["spec"]
