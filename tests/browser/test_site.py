"""The documentation's site in a browser: search, a phone, a screen reader, and no other host."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, Page, ViewportSize, expect

from asyncjob_dev.site.build import build
from asyncjob_dev.site.links import place
from asyncjob_dev.site.serve import serving
from support.processes.chromium import PATIENCE_MILLISECONDS, Complaints, flaws, is_too_wide

# The first one waits for hundreds of pages to be rendered.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
SCREEN: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 780}
PAGES = (
    *("", "tutorial/first-job/", "recipes/", "recipes/approval/", "choosing/", "glossary/"),
    *("how-to/large-payloads-and-results/", "how-to/monitor/", "explanation/lifecycle/"),
    *("explanation/architecture/", "explanation/comparison/", "explanation/performance/"),
    *("explanation/coming-from/", "reference/cli/", "reference/asyncjob/", "reference/chart/"),
    *("reference/errors/reasons-of-jobs/", "adr/", "project/contributing/"),
)
"""One of each kind, and those with wide tables, pictures and nested blocks."""

COMPARED = {
    *("ul", "ol", "li", "pre", "table", "tr", "td", "h1", "h2", "h3", "blockquote", "img", "em"),
    "strong",
}
TAG = re.compile(r"<([a-z]+[0-9]?)\b")
UNREADABLE = {"serious", "critical"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the site."""
    return build(ROOT, tmp_path_factory.mktemp("site"), "dev")


@pytest.fixture(scope="session")
def site(folder: Path) -> Iterator[str]:
    """Serve it; return the address of its landing page."""
    with serving(folder.parent) as address:
        yield f"{address}dev/"


@pytest.fixture
def reader(browser: Browser, site: str) -> Iterator[Page]:
    """Open a page; the browser must have nothing against it, and ask no other host."""
    context = browser.new_context(viewport=SCREEN)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    complaints, elsewhere = Complaints(page), list[str]()
    host = site.removesuffix("dev/")
    page.on("request", lambda one: None if one.url.startswith(host) else elsewhere.append(one.url))
    yield page
    context.close()
    assert (complaints.heard, elsewhere) == ([], [])


def test_search_finds_a_reason_and_leads_to_it(reader: Page, site: str) -> None:
    reader.goto(site)
    reader.get_by_role("button", name="Search").click()
    reader.get_by_role("combobox").fill("CrashBudgetExhausted")
    expect(reader.get_by_text(re.compile(r"^\d+ results$"))).to_be_visible()
    reader.keyboard.press("Enter")
    reader.wait_for_url("**/reference/errors/reasons-of-jobs/**")
    expect(reader.get_by_role("heading", name="CrashBudgetExhausted")).to_be_visible()


def test_a_button_copies_a_block_of_code(reader: Page, site: str) -> None:
    reader.goto(f"{site}how-to/monitor/")
    reader.get_by_role("button", name="Copy to clipboard").first.click()
    expect(reader.get_by_text("Copied to clipboard")).to_be_visible()
    copied = reader.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("scrape_configs:\n  - job_name: asyncjob\n")


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_at_either_width_in_either_theme(
    reader: Page, site: str, path: str
) -> None:
    found = {}
    for size in (SCREEN, PHONE):
        reader.set_viewport_size(size)
        reader.emulate_media(color_scheme="light")
        reader.goto(site + path)
        wrong = flaws(reader)
        reader.emulate_media(color_scheme="dark")
        wrong += flaws(reader, "color-contrast")
        if serious := [one for one in wrong if one.split()[0] in UNREADABLE]:
            found[size["width"]] = serious
    assert found == {}


def test_no_page_scrolls_sideways_on_a_phone(reader: Page, site: str) -> None:
    wide = []
    for width in (320, PHONE["width"]):
        reader.set_viewport_size({"width": width, "height": PHONE["height"]})
        for path in PAGES:
            reader.goto(site + path)
            wide += [(path, width)] if is_too_wide(reader) else []
    assert wide == []


BROKEN_NAMES = """() => [...document.querySelectorAll("td > code")].filter(code => {
  const lines = [];
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    for (let at = 0; at < text.length; at += 1) {
      const range = document.createRange();
      range.setStart(text, at);
      range.setEnd(text, at + 1);
      lines.push([text.data[at], range.getBoundingClientRect().top]);
    }
  }
  return lines.some(([letter, top], at) =>
    at > 0 && top > lines[at - 1][1] && /\\w/.test(letter) && /\\w/.test(lines[at - 1][0]));
}).map(code => code.textContent)"""
"""Names that go on in the next line in the middle of a word."""


def test_a_name_in_a_table_is_not_broken_within_a_word(reader: Page, site: str) -> None:
    broken = {}
    for size in (SCREEN, PHONE):
        reader.set_viewport_size(size)
        for path in ("reference/asyncjob/", "reference/chart/", "reference/cli/"):
            reader.goto(site + path)
            if names := reader.evaluate(BROKEN_NAMES):
                broken[path, size["width"]] = names
    assert broken == {}


def test_commands_are_not_as_pale_as_what_they_print(reader: Page, site: str) -> None:
    reader.goto(f"{site}tutorial/first-job/")
    command = reader.locator("article pre code .go").first
    text = reader.locator("article pre code").first
    colour = "one => getComputedStyle(one).color"
    assert command.evaluate(colour) == text.evaluate(colour)


def test_pictures_are_shown(reader: Page, site: str) -> None:
    for path in ("", "explanation/lifecycle/"):
        reader.goto(site + path)
        pictures = reader.locator("article img")
        expect(pictures).not_to_have_count(0)
        for picture in pictures.all():
            assert picture.evaluate("one => one.decode().then(() => one.naturalWidth)") > 0
            assert picture.get_attribute("alt")


def tags(html: str) -> Counter[str]:
    """Count the tags that make the structure of a page."""
    return Counter(tag for tag in TAG.findall(html) if tag in COMPARED)


def test_lists_tables_and_blocks_are_those_that_readers_of_the_repository_see(folder: Path) -> None:
    markdown = MarkdownIt("commonmark").enable("table")
    pages = sorted((ROOT / "docs").rglob("*.md"))
    assert len(pages) > 100
    different = {}
    for page in pages:
        name = page.relative_to(ROOT).as_posix()
        there = place(name).removesuffix(".md")
        file = folder / (f"{there}.html" if there.endswith("index") else f"{there}/index.html")
        html = file.read_text(encoding="utf-8")
        article = html[html.index("<article") : html.index("</article>")]
        want = tags(markdown.render(page.read_text(encoding="utf-8")))
        if want != tags(article):
            different[name] = (want - tags(article), tags(article) - want)
    assert different == {}
