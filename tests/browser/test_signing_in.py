from pathlib import Path

from playwright.sync_api import Browser, expect

from support.loopback.certificates import self_signed
from support.processes.chromium import sign_in
from support.processes.dashboard_setup import DashboardSetup


def test_one_signs_in_with_a_token_and_goes_on_to_the_page_that_was_asked_for(
    setup: DashboardSetup, browser: Browser
) -> None:
    context = browser.new_context()
    page = context.new_page()

    page.goto(setup.url("/jobs?text=abc"))
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Token").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept the token")
    page.get_by_label("Token").fill(setup.admin_token)
    page.get_by_role("button", name="Sign in").click()

    expect(page).to_have_url(setup.url("/jobs?text=abc"))
    expect(page.get_by_text("No job matches.")).to_be_visible()
    kept = {cookie["name"]: cookie for cookie in context.cookies()}
    assert kept["asyncjob-token"]["httpOnly"]
    assert kept["asyncjob-token"]["sameSite"] == "Strict"
    assert page.evaluate("document.cookie") == ""

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(setup.url("/queues"))
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    context.close()


def test_over_https_the_cookies_are_for_https_only(
    setup: DashboardSetup, browser: Browser, tmp_path: Path
) -> None:
    cert, key = self_signed(tmp_path)
    with setup.another(f"--tls-cert={cert}", f"--tls-key={key}") as gateway:
        gateway.until_ready()
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        sign_in(page, f"{gateway.url}/dashboard/sign-in", setup.admin_token)
        kept = {cookie["name"]: cookie for cookie in context.cookies()}
        page.get_by_role("link", name="Submit").click()
        page.get_by_label("Type", exact=True).fill("echo")
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_role("status").filter(has_text="Submitted.")).to_be_visible()
        expect(page.locator("#live")).to_have_text("Live")
        context.close()

    assert set(kept) == {"__Secure-asyncjob-token", "__Secure-asyncjob-forms"}
    for cookie in kept.values():
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
        assert (cookie["path"], cookie["expires"]) == ("/dashboard", -1)
