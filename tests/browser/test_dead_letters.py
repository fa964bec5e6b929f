from playwright.sync_api import Page, expect

from support.dashboard_stage import Stage

COUNT = 100


def bury(stage: Stage, name: str, count: int) -> None:
    for number in range(count):
        stage.field.create(f"{name}-{number:03}", "brittle", number, concurrencyKey=name)
    for number in range(count):
        stage.field.until_phase(f"{name}-{number:03}", "DeadLetter", 30)


def test_some_are_selected_by_keyboard_and_dismissed(page: Page, stage: Stage) -> None:
    bury(stage, "minor", 4)
    page.goto(stage.url("/dead-letters?text=minor-"))
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
    phases = [stage.field.status(f"minor-{number:03}")["phase"] for number in range(4)]
    assert sorted(phases) == ["Cancelled", "Cancelled", "DeadLetter", "DeadLetter"]


def test_a_hundred_are_redriven_at_once_and_the_list_empties_before_ones_eyes(
    page: Page, stage: Stage
) -> None:
    bury(stage, "major", COUNT)
    page.goto(stage.url("/dead-letters?text=major-"))
    watching = page.context.new_page()
    watching.goto(stage.url("/dead-letters?text=major-"))
    expect(watching.locator("tr[data-row]")).to_have_count(COUNT)
    (stage.field.folder / "mended").touch()

    page.get_by_role("button", name="Redrive all…").click()
    expect(page.locator("h1")).to_have_text(f"Redrive {COUNT} dead letters?")
    page.get_by_role("button", name=f"Redrive {COUNT} dead letters").click()
    expect(page.locator("h1")).to_have_text(f"{COUNT} dead letters redriven")

    watching.bring_to_front()
    expect(watching.get_by_text("No dead letter matches.")).to_be_visible(timeout=30_000)
    for number in range(COUNT):
        status = stage.field.until_phase(f"major-{number:03}", "Succeeded", 30)
        assert status["attempt"] == 2
    (stage.field.folder / "mended").unlink()
