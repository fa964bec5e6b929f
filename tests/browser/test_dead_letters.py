import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect

from asyncjob.names import job_path
from support.processes.dashboard_setup import DashboardSetup, SampleJobs

COUNT = 100


def bury(setup: DashboardSetup, name: str, count: int) -> None:
    for number in range(count):
        setup.ns.create(f"{name}-{number:03}", "brittle", number, concurrencyKey=name)
    for number in range(count):
        setup.ns.until_phase(f"{name}-{number:03}", "DeadLetter", 30)


@contextmanager
def mended(setup: DashboardSetup) -> Iterator[None]:
    """Have brittle jobs succeed while inside."""
    sign = setup.ns.folder / "mended"
    sign.touch()
    try:
        yield
    finally:
        sign.unlink()


def test_some_are_selected_by_keyboard_and_dismissed(page: Page, setup: DashboardSetup) -> None:
    bury(setup, "minor", 4)
    page.goto(setup.url("/dead-letters?text=minor-"))
    expect(page.locator("tr[data-row]")).to_have_count(4)
    expect(page.get_by_role("button", name="Dismiss selected")).to_be_disabled()

    for key in ("j", "x", "j", "j", "x", "k"):
        page.keyboard.press(key)
    page.get_by_role("button", name="Dismiss selected (2)…").click()
    expect(page.locator("h1")).to_have_text("Dismiss 2 dead letters?")
    page.get_by_role("button", name="Dismiss 2 dead letters").click()
    expect(page.locator("h1")).to_have_text("2 dead letters dismissed")
    page.get_by_role("link", name="Back to the dead letters").click()

    expect(page.locator("tr[data-row]")).to_have_count(2)
    phases = [setup.ns.status(f"minor-{number:03}")["phase"] for number in range(4)]
    assert sorted(phases) == ["Cancelled", "Cancelled", "DeadLetter", "DeadLetter"]


def test_a_keyboard_is_enough_to_redrive_one(page: Page, setup: DashboardSetup) -> None:
    bury(setup, "typed", 2)
    page.goto(setup.url("/dead-letters?text=typed-"))
    expect(page.locator("#live")).to_have_text("Live")

    for key in ("j", "x", "b", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("h1")).to_have_text("Redrive 1 dead letter?")
    expect(page.get_by_role("button", name="Redrive 1 dead letter")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("1 dead letter redriven")

    redriven = [setup.ns.get(f"typed-{number:03}")["spec"].get("redrive") for number in range(2)]
    assert sorted(redriven, key=str) == [1, None]


def test_a_hundred_are_redriven_at_once_and_the_list_empties_before_ones_eyes(
    page: Page, setup: DashboardSetup
) -> None:
    bury(setup, "major", COUNT)
    page.goto(setup.url("/dead-letters?text=major-"))
    watching = page.context.new_page()
    watching.goto(setup.url("/dead-letters?text=major-"))
    expect(watching.locator("tr[data-row]")).to_have_count(COUNT)

    with mended(setup):
        page.get_by_role("button", name="Redrive all…").click()
        expect(page.locator("h1")).to_have_text(f"Redrive {COUNT} dead letters?")
        page.get_by_role("button", name=f"Redrive {COUNT} dead letters").click()
        expect(page.locator("h1")).to_have_text(f"{COUNT} dead letters redriven")

        watching.bring_to_front()
        expect(watching.get_by_text("No dead letter matches.")).to_be_visible(timeout=30_000)
        for number in range(COUNT):
            status = setup.ns.until_phase(f"major-{number:03}", "Succeeded", 30)
            assert status["attempt"] == 2


def test_of_many_at_once_some_may_fail_and_each_is_told_of(
    page: Page, setup: DashboardSetup
) -> None:
    bury(setup, "mixed", 5)
    page.goto(setup.url("/dead-letters?text=mixed-"))
    page.get_by_label("All on this page").check()
    page.get_by_role("button", name="Redrive selected (5)…").click()
    expect(page.locator("h1")).to_have_text("Redrive 5 dead letters?")
    setup.ns.cancel("mixed-001")
    setup.ns.until_phase("mixed-001", "Cancelled")
    setup.ns.api.delete(job_path(setup.ns.namespace, "mixed-002"))

    with mended(setup):
        page.get_by_role("button", name="Redrive 5 dead letters").click()

        expect(page.locator("h1")).to_have_text("3 dead letters redriven, 2 not")
        told = page.locator("main li")
        expect(told).to_have_count(2)
        expect(told.filter(has_text="mixed-001")).to_contain_text("Cancelled")
        expect(told.filter(has_text="mixed-002")).to_contain_text("no job")
        for number in (0, 3, 4):
            assert setup.ns.until_phase(f"mixed-{number:03}", "Succeeded", 30)["attempt"] == 2
    page.goto(page.url)
    expect(page.locator("h1")).to_have_text("Dead letters")


def test_on_the_way_back_filters_are_those_of_the_address_and_nothing_is_ticked(
    page: Page, setup: DashboardSetup, samples: SampleJobs
) -> None:
    page.goto(setup.url("/jobs"))
    page.get_by_role("checkbox", name="Dead letter").check()
    page.get_by_label("Queue", exact=True).fill("default")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile("phase=DeadLetter"))
    page.go_back()
    expect(page.get_by_role("checkbox", name="Dead letter")).not_to_be_checked()
    expect(page.get_by_label("Queue", exact=True)).to_have_value("")
    page.go_forward()
    expect(page.get_by_role("checkbox", name="Dead letter")).to_be_checked()
    expect(page.get_by_label("Queue", exact=True)).to_have_value("default")

    page.goto(setup.url("/dead-letters?text=sample-dead-"))
    page.get_by_role("checkbox", name="Select sample-dead-2").check()
    page.get_by_role("link", name="sample-dead-1").click()
    expect(page.locator("h1")).to_have_text("sample-dead-1")
    page.go_back()
    expect(page.locator("tr[data-row] input:checked")).to_have_count(0)
    expect(page.get_by_role("button", name="Redrive selected")).to_be_disabled()
