from playwright.sync_api import Browser, expect

from support.dashboard_stage import Stage


def test_one_signs_in_with_a_token_and_goes_on_to_the_page_that_was_asked_for(
    stage: Stage, browser: Browser
) -> None:
    context = browser.new_context()
    page = context.new_page()

    page.goto(stage.url("/jobs?text=abc"))
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Token").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept the token")
    page.get_by_label("Token").fill(stage.admin_token)
    page.get_by_role("button", name="Sign in").click()

    expect(page).to_have_url(stage.url("/jobs?text=abc"))
    expect(page.get_by_text("No job matches.")).to_be_visible()
    kept = {cookie["name"]: cookie for cookie in context.cookies()}
    assert kept["asyncjob-token"]["httpOnly"]
    assert kept["asyncjob-token"]["sameSite"] == "Strict"
    assert page.evaluate("document.cookie") == ""

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(stage.url("/queues"))
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    context.close()
