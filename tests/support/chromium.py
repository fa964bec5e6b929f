"""Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def program() -> str:
    """Return Chromium's path."""
    found = shutil.which("chromium")
    assert found, "Chromium is missing: apt-get install chromium"
    return found


@contextmanager
def chromium(profile: Path, **options: object) -> Iterator[BrowserContext]:
    """Run it on an empty profile; the one browser serves all tests."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=program(),
            args=list(OPTIONS),
            headless=True,
            **options,  # type: ignore[arg-type]  # passed on
        )
        try:
            yield context
        finally:
            context.close()
