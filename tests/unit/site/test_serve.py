"""The site is served on this machine, and rendered again when a page changes."""

from pathlib import Path

import httpx

from asyncjob_dev.errors import SiteError
from asyncjob_dev.site.serve import SOURCES, render_on_changes, serving

ROOT = Path(__file__).parents[3]


def test_files_are_served_and_folders_by_their_index(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "index.html").write_text("hello")
    with serving(tmp_path) as address:
        assert address.startswith("http://127.0.0.1:")
        assert httpx.get(f"{address}dev/").text == "hello"
        assert httpx.get(f"{address}gone").status_code == 404


def test_a_page_that_is_wrong_for_a_while_ends_nothing() -> None:
    said: list[str] = []
    left = [SiteError("links lead to nothing", ["docs/a.md"]), None]

    def render() -> None:
        if error := left.pop(0):
            raise error

    render_on_changes(render, range(2), said.append)
    assert said == ["links lead to nothing:\n  docs/a.md", "rendered again"]


def test_what_is_watched_is_there() -> None:
    assert [name for name in SOURCES if not (ROOT / name).exists()] == []
