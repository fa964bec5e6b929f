"""Debian's Chromium, driven by Playwright, and what is asked of every page in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE_MILLISECONDS = 15_000
EXPECTED = "Failed to load resource: the server responded with a status of 4"


def program() -> str:
    """Return Chromium's path."""
    found = shutil.which("chromium")
    assert found, "Chromium is missing: apt-get install chromium"
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run it on an empty profile of its own, which goes with it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


class Complaints:
    """What the browser has against a page: errors of scripts, breaches of the policy."""

    def __init__(self, page: Page) -> None:
        self.heard: list[str] = []
        page.on("pageerror", lambda error: self.heard.append(str(error)))
        page.on("console", lambda message: self._console(message.type, message.text))

    def _console(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"} and not text.startswith(EXPECTED):
            self.heard.append(text)


def sign_in(page: Page, url: str, token: str) -> None:
    """Sign in as people do."""
    page.goto(url)
    page.fill("input[name=token]", token)
    page.click("main button")
    page.wait_for_url("**/queues")


def is_too_wide(page: Page) -> bool:
    """Return whether the page has to be scrolled sideways."""
    wide: bool = page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    return wide


def flaws(page: Page, *rules: str) -> list[str]:
    """Return what axe finds wrong with the page, however slight; by these rules, or by all."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found: Any = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{one['impact']} {one['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]
