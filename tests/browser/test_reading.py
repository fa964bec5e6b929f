"""Every page, for every reader: any theme, a phone, a keyboard, no scripts, a screen reader."""

import re
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, expect

from asyncjob_gateway.dashboard.formatting import MAX_JSON_CHARS
from support.processes.chromium import flaws, is_too_wide, sign_in
from support.processes.dashboard_setup import DashboardSetup, SampleJobs

WIDTHS = (320, 600, 820, 1060, 1280)

CAN_HAVE_FOCUS = "a:visible, button:enabled:visible, input:visible, summary:visible, pre[tabindex]"
NO_OUTLINE = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return one === document.body || seen ? "" : one.outerHTML.slice(0, 200);
}"""


def test_axe_finds_nothing_wrong_in_either_theme(
    page: Page, setup: DashboardSetup, samples: SampleJobs
) -> None:
    found = {}
    for name, path in samples.pages.items():
        page.goto(setup.url(path))
        found[name] = flaws_in_both(page)
    page.goto(setup.url("/submit"))
    page.get_by_label("Type", exact=True).fill("echo")
    page.get_by_label("Payload, as JSON").fill("{oops")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_label("Payload, as JSON")).to_be_focused()
    found["wrong fields"] = flaws_in_both(page)
    page.goto(setup.url("/dead-letters"))
    page.get_by_role("button", name="Dismiss all…").click()
    expect(page.locator("h1")).to_contain_text("Dismiss")
    found["a question"] = flaws_in_both(page)
    page.wait_for_load_state()  # until then, scripts do not listen
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    found["keys over a question"] = flaws_in_both(page)

    assert {name: what for name, what in found.items() if what} == {}


def test_axe_finds_nothing_wrong_with_what_strangers_see(
    browser: Browser, setup: DashboardSetup, samples: SampleJobs
) -> None:
    context, found = browser.new_context(), {}
    page = context.new_page()
    sign_in(page, setup.url("/sign-in"), setup.viewer_token)
    for name, path in (("refused", "/submit"), ("no namespace", "/jobs?namespace=x")):
        page.goto(setup.url(path))
        found[name] = flaws_in_both(page)
    page.goto(setup.url(f"/jobs/{samples.dead}"))
    found["without rights"] = flaws_in_both(page)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    found["sign in"] = flaws_in_both(page)
    context.close()

    assert {name: what for name, what in found.items() if what} == {}


def test_whatever_has_the_focus_shows_it(
    page: Page, setup: DashboardSetup, samples: SampleJobs
) -> None:
    unseen = []
    for path in ("/jobs?text=sample-", f"/jobs/{samples.waiting}", "/dead-letters?text=sample-"):
        page.goto(setup.url(path))
        for _ in range(page.locator(CAN_HAVE_FOCUS).count()):
            page.keyboard.press("Tab")
            unseen += [one for one in [page.evaluate(NO_OUTLINE)] if one]

    assert unseen == []


def test_paper_has_the_content_and_nothing_to_press(
    page: Page, setup: DashboardSetup, samples: SampleJobs
) -> None:
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(setup.url(f"/jobs/{samples.dead}"))

    expect(page.get_by_text("no such user: 7").first).to_be_visible()
    expect(page.locator("pre.json").first).to_be_visible()
    for gone in (".top", ".actions", ".skip"):
        expect(page.locator(gone)).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 33, 38)"


def test_of_two_that_look_the_same_none_is_lost(page: Page, setup: DashboardSetup) -> None:
    page.goto(setup.url("/queues"))
    script = page.locator("script[type=module]").get_attribute("src")
    texts = page.evaluate(
        """async (address) => {
          const { morph } = await import(address);
          const list = (...items) => {
            const made = document.createElement("ol");
            for (const [key, text] of items) {
              const item = made.appendChild(document.createElement("li"));
              item.dataset.key = key;
              item.textContent = text;
            }
            return made;
          };
          const old = list(["a", "1"], ["a", "2"], ["b", "3"]);
          const kept = [...old.children];
          morph(old, list(["c", "0"], ["a", "1"], ["a", "2"], ["a", "2b"], ["b", "3"]));
          const texts = [...old.children].map((item) => item.textContent);
          return [texts, kept.every((item) => item.parentNode === old)];
        }""",
        str(script).replace("app.js", "morph.js"),
    )

    assert texts == [["0", "1", "2", "2b", "3"], True]


def flaws_in_both(page: Page) -> list[str]:
    """Return what is wrong; in the dark only contrast can be different."""
    page.emulate_media(color_scheme="light")
    light = flaws(page)
    page.emulate_media(color_scheme="dark")
    return light + flaws(page, "color-contrast")


def test_no_page_scrolls_sideways_however_narrow_the_screen(
    page: Page, setup: DashboardSetup, samples: SampleJobs
) -> None:
    wide = []
    for name, path in samples.pages.items():
        page.goto(setup.url(path))
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            wide += [(name, width)] if is_too_wide(page) else []
    page.set_viewport_size({"width": WIDTHS[0], "height": 800})
    page.goto(setup.url(f"/jobs/{samples.waiting}"))
    page.locator("summary", has_text="Cancel…").click()
    wide += [("asking", WIDTHS[0])] if is_too_wide(page) else []

    assert wide == []


def test_everything_can_be_read_and_done_without_scripts(
    browser: Browser, passes: Path, setup: DashboardSetup, samples: SampleJobs
) -> None:
    context = browser.new_context(storage_state=passes, java_script_enabled=False)
    page = context.new_page()
    for path in samples.pages.values():
        page.goto(setup.url(path))
        expect(page.locator("h1")).to_be_visible()
    expect(page.locator("#theme")).to_be_hidden()

    page.goto(setup.url("/submit"))
    page.get_by_label("Type", exact=True).fill("echo")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("status").filter(has_text="Submitted.")).to_be_visible()
    expect(page.locator("main time").first).to_have_text(re.compile("ago|now"))

    page.goto(setup.url("/dead-letters?text=sample-dead-"))
    page.get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Redrive selected").click()
    expect(page.locator("h1")).to_have_text("Redrive 1 dead letter?")
    page.get_by_role("link", name="Leave them").click()
    expect(page.locator("h1")).to_have_text("Dead letters")

    setup.ns.create("plain", "echo", 1)
    setup.ns.until_phase("plain", "Succeeded")
    page.goto(setup.url("/jobs/plain"))
    page.get_by_role("button", name="Rerun as a new job").click()
    expect(page.locator(".head h1")).to_have_text("plain-r1")  # looked for until it is created
    context.close()


def test_a_megabyte_of_payload_is_cut_and_is_no_burden(page: Page, setup: DashboardSetup) -> None:
    setup.ns.create("heavy", "echo", "<b>" * 40_000 + "x" * 700_000, queue="nobody-serves-this")

    page.goto(setup.url("/jobs/heavy"))

    shown = page.get_by_label("Payload", exact=True)
    expect(shown).to_contain_text("<b><b>")
    assert len(shown.inner_text()) == MAX_JSON_CHARS
    expect(page.get_by_text("Cut here; REST has the whole of it")).to_be_visible()
    assert len(page.content()) < 8 * MAX_JSON_CHARS


def test_the_theme_follows_the_system_until_it_is_chosen_and_the_choice_is_kept(
    page: Page, setup: DashboardSetup
) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    page.goto(setup.url("/queues"))
    light = page.evaluate(back)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(back)
    assert light != dark

    page.get_by_role("button", name="Auto theme").click()
    assert page.evaluate(back) == light
    page.goto(setup.url("/workers"))
    assert page.evaluate(back) == light
    page.get_by_role("button", name="Light theme").click()
    expect(page.get_by_role("button", name="Dark theme")).to_be_visible()
    assert page.evaluate(back) == dark


def test_a_keyboard_is_enough(page: Page, setup: DashboardSetup, samples: SampleJobs) -> None:
    page.goto(setup.url("/queues"))
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()

    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.locator("h1")).to_have_text("Jobs")
    page.wait_for_load_state()  # its script, which takes keys, comes after its text
    page.keyboard.press("/")
    expect(page.get_by_label("Text")).to_be_focused()
    page.keyboard.type("sample-parent")
    page.keyboard.press("Enter")
    expect(page).to_have_url(
        setup.url(
            "/jobs?text=sample-parent&type=&queue=&label=&reason=&newer=&older=&parent=&cronJob="
        )
    )
    expect(page.locator("#live")).to_have_text("Live")
    first, second = page.locator("tr[data-row] a.name").all()[:2]
    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    page.keyboard.press("k")
    expect(first).to_be_focused()
    name = first.inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(name)

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Space")  # the focus is on the switch of the shortcuts
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_times_are_in_the_readers_zone_and_ages_stay_true(
    browser: Browser, passes: Path, setup: DashboardSetup, samples: SampleJobs
) -> None:
    context = browser.new_context(storage_state=passes, timezone_id="Asia/Kolkata")
    page = context.new_page()
    page.clock.install()
    page.goto(setup.url(f"/jobs/{samples.parent}"))
    created = page.locator(".facts time[data-form=clock]").first
    expect(created).to_have_text(
        page.evaluate(
            "(at) => new Date(at).toLocaleString('sv', {timeZone: 'Asia/Kolkata'})",
            created.get_attribute("datetime"),
        )
    )
    assert "Asia/Kolkata" in str(created.get_attribute("title")) or "Calcutta" in str(
        created.get_attribute("title")
    )

    expect(page.locator("#live")).to_have_text("Live")
    page.context.set_offline(True)
    page.clock.fast_forward("03:00:00")
    expect(page.locator(".facts time[data-form=ago]").first).to_contain_text("3 h")
    expect(page.locator("#live")).to_contain_text("Not up to date")
    context.close()


def test_what_the_reader_does_survives_news(context: BrowserContext, setup: DashboardSetup) -> None:
    page = context.new_page()
    for number in range(2):
        setup.ns.create(f"steady-{number}", "brittle", number)
        setup.ns.until_phase(f"steady-{number}", "DeadLetter")
    page.goto(setup.url("/dead-letters?text=steady-"))
    page.get_by_label("Select steady-0").check()
    page.get_by_role("link", name="steady-0").focus()

    setup.ns.create("steady-2", "brittle", 2)

    expect(page.get_by_role("link", name="steady-2")).to_be_visible()
    expect(page.get_by_label("Select steady-0")).to_be_checked()
    expect(page.get_by_role("link", name="steady-0")).to_be_focused()
    expect(page.get_by_role("button", name="Redrive selected (1)…")).to_be_visible()
