"""A job's life as the dashboard shows it, without the page ever being loaded again."""

from playwright.sync_api import Page, expect

from support.processes.dashboard_setup import ARRAYS, DashboardSetup, array_of_grains

MARKUP = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"


def submit(page: Page, setup: DashboardSetup, type_: str, payload: str, name: str) -> None:
    page.goto(setup.url("/submit"))
    page.get_by_label("Type", exact=True).fill(type_)
    page.get_by_label("Payload, as JSON").fill(payload)
    page.get_by_text("Options").click()
    page.get_by_label("Name, which is its id").fill(name)
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("status").filter(has_text="Submitted.")).to_be_visible()
    expect(page.locator("h1")).to_have_text(name)


def test_progress_moves_and_the_end_is_seen_without_a_reload(
    page: Page, setup: DashboardSetup
) -> None:
    page.add_init_script("window.setInterval = () => 0")  # by the stream alone, not by and by
    submit(page, setup, "steps", '"live"', "live-1")
    page.evaluate("window.sameDocument = true")

    progress = page.get_by_role("progressbar")
    expect(progress).to_have_attribute("value", "10")
    expect(page.locator(".state")).to_contain_text("reading orders")
    setup.ns.open("live-10")
    expect(progress).to_have_attribute("value", "60")
    expect(page.locator(".state")).to_contain_text("rendering <b>pages</b>")
    setup.ns.open("live-60")
    expect(page.locator(".head")).to_contain_text("Succeeded")
    expect(page.get_by_label("Result")).to_have_text('"rendered"')
    expect(page.locator("#live")).to_have_text("Live")
    assert page.evaluate("window.sameDocument")


def test_a_running_job_is_cancelled_and_run_again(page: Page, setup: DashboardSetup) -> None:
    submit(page, setup, "steps", '"again"', "again-1")
    expect(page.locator(".head")).to_contain_text("Running")

    page.locator("summary", has_text="Cancel…").click()
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.get_by_role("status").filter(has_text="Cancellation requested.")).to_be_visible()
    expect(page.locator(".phase").first).to_have_text("Cancelled")

    page.get_by_role("button", name="Rerun as a new job").click()
    expect(page.locator("h1")).to_have_text("again-1-r1")
    setup.ns.open("again-10")
    setup.ns.open("again-60")
    expect(page.locator(".phase").first).to_have_text("Succeeded")
    page.locator(".tree").get_by_role("link", name="again-1").click()
    expect(page.locator("h1")).to_have_text("again-1")
    expect(page.locator(".tree")).to_contain_text("again-1-r1")


def test_a_payload_full_of_markup_stays_text(page: Page, setup: DashboardSetup) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    payload = f'{{"html": "{MARKUP.replace(chr(34), chr(92) + chr(34))}"}}'
    submit(page, setup, "echo", payload, "markup-1")

    shown = page.get_by_label("Result")
    expect(shown).to_contain_text("<script>document.title = 'owned'</script>")
    assert shown.locator("*").count() == 0
    expect(page).to_have_title("markup-1 · asyncjob")
    assert all(url.startswith(setup.gateway.url) for url in asked)


def test_what_is_wrong_with_a_form_is_told_at_its_field_and_nothing_typed_is_lost(
    page: Page, setup: DashboardSetup
) -> None:
    page.goto(setup.url("/submit"))
    page.get_by_label("Type", exact=True).fill("echo")
    page.get_by_label("Payload, as JSON").fill('{"a": oops}')
    page.get_by_role("button", name="Submit").click()

    payload = page.get_by_label("Payload, as JSON")
    expect(payload).to_have_value('{"a": oops}')
    expect(payload).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#wrong-payload")).to_contain_text("payload")
    expect(page.get_by_label("Type", exact=True)).to_have_value("echo")


def test_a_waiting_job_is_suspended_resumed_and_given_another_priority(
    page: Page, setup: DashboardSetup
) -> None:
    setup.ns.create("patient-1", "echo", 1, queue="nobody-serves-this")
    page.goto(setup.url("/jobs/patient-1"))

    page.get_by_role("button", name="Suspend").click()
    expect(page.get_by_role("status").filter(has_text="Suspended.")).to_be_visible()
    expect(page.locator(".head")).to_contain_text("suspended")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("status").filter(has_text="Resumed.")).to_be_visible()
    expect(page.locator(".head")).not_to_contain_text("suspended")
    page.get_by_label("Priority").fill("7")
    page.get_by_role("button", name="Set").click()
    expect(page.locator(".facts").first).to_contain_text("Priority7")
    assert setup.ns.get("patient-1")["spec"]["priority"] == 7


def test_a_cron_job_is_run_now_and_a_queue_is_paused(
    page: Page, setup: DashboardSetup, samples: object
) -> None:
    page.goto(setup.url("/cron-jobs"))
    row = page.get_by_role("row").filter(has_text="sample-nightly")
    expect(row).to_contain_text("in ")
    row.get_by_role("button", name="Suspend").click()
    expect(row).to_contain_text("suspended")
    row.get_by_role("button", name="Resume").click()
    row.get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_have_text("sample-nightly-t1")
    expect(page.locator(".phase").first).to_have_text("Succeeded")

    page.goto(setup.url("/queues"))
    queue = page.get_by_role("row").filter(has=page.get_by_role("link", name="default"))
    queue.get_by_role("button", name="Pause").click()
    expect(queue).to_contain_text("paused")
    queue.get_by_role("button", name="Resume").click()
    expect(queue).not_to_contain_text("paused")


def test_an_array_is_watched_suspended_resumed_and_its_failed_items_redriven(
    page: Page, setup: DashboardSetup, samples: object
) -> None:
    ns = setup.ns
    held = array_of_grains("held-array", payload="array-gate", parallelism=2)
    ns.api.create(f"/{ARRAYS.format(namespace=ns.namespace)}", held)
    page.goto(setup.url("/arrays"))
    row = page.get_by_role("row").filter(has_text="held-array")
    expect(row.locator(".phase")).to_have_text("Running")
    row.get_by_role("link", name="held-array").click()
    expect(page.locator("h1")).to_have_text("held-array")
    expect(page.get_by_role("link", name="2 chunks under way")).to_be_visible()
    page.get_by_role("button", name="Suspend").click()
    expect(page.get_by_role("status").filter(has_text="Array suspended")).to_be_visible()
    expect(page.locator(".head")).to_contain_text("suspended")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".head")).not_to_contain_text("suspended")

    (ns.folder / "array-gate").touch()
    expect(page.locator(".head .phase")).to_have_text("Failed")
    expect(page.locator(".big")).to_contain_text("18 succeeded, 2 failed of 20 items")
    failed = page.get_by_role("row").filter(has_text="failed")
    expect(failed).to_contain_text("7,17")
    expect(page.locator("main")).to_contain_text("<b>no</b> such grain: 17")

    (ns.folder / "sifted").touch()
    page.get_by_role("button", name="Redrive failed items").click()
    expect(page.get_by_role("status").filter(has_text="Redrive of the failed")).to_be_visible()
    expect(page.locator(".head .phase")).to_have_text("Succeeded")
    expect(page.locator(".big")).to_contain_text("20 succeeded of 20 items")


def test_an_array_is_cancelled_once_that_is_confirmed(
    page: Page, setup: DashboardSetup, samples: object
) -> None:
    ns = setup.ns
    ns.api.create(
        f"/{ARRAYS.format(namespace=ns.namespace)}",
        array_of_grains("doomed-array", payload="no-such-gate", parallelism=1),
    )
    page.goto(setup.url("/arrays/doomed-array"))
    page.get_by_text("Cancel…").click()
    page.get_by_role("button", name="Cancel the array").click()
    expect(page.get_by_role("status").filter(has_text="Cancellation of the array")).to_be_visible()
    expect(page.locator(".head .phase")).to_have_text("Cancelled")
    expect(page.locator("main")).to_contain_text("CancelRequested")
