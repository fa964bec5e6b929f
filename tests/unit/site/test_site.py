"""Links, navigation, versions and faults of the documentation's site."""

from pathlib import Path

import pytest

from asyncjob_dev.site.build import without_traceback
from asyncjob_dev.site.check import faults
from asyncjob_dev.site.links import place, relinked
from asyncjob_dev.site.navigation import INDEX, leaves, missing, navigation
from asyncjob_dev.site.stage import stage
from asyncjob_dev.site.versions import listing

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("docs/README.md", "index.md"),
        ("docs/adr/README.md", "adr/index.md"),
        ("docs/how-to/a.md", "how-to/a.md"),
        ("CONTRIBUTING.md", "project/contributing.md"),
        ("sdk/a.py", "source/sdk/a.py.md"),
    ],
)
def test_each_file_has_its_place(path: str, there: str) -> None:
    assert place(path) == there


def test_links_lead_to_the_same_files_and_code_stays_as_it_is() -> None:
    text = "[a](../../sdk/a.py), [b](b.md#c), `[x](y.md)`\n```\n[x](y.md)\n```\n"
    assert relinked("docs/how-to/a.md", text, lambda path: path) == (
        "[a](../source/sdk/a.py.md), [b](b.md#c), `[x](y.md)`\n```\n[x](y.md)\n```\n"
    )


def test_a_page_that_the_index_does_not_list_is_missing() -> None:
    pages = {INDEX: "## All pages\n\n### How\n\n- [A](a.md)\n", "docs/a.md": "", "docs/b.md": ""}
    assert missing(navigation(pages), pages) == ["docs/b.md"]


def test_every_page_is_in_the_navigation_once() -> None:
    found = [place for place in stage(ROOT).texts if not place.startswith("source/")]
    pages = {str(p.relative_to(ROOT)): p.read_text() for p in (ROOT / "docs").rglob("*.md")}
    paths = [leaf.path for leaf in leaves(navigation(pages))]
    assert len(paths) == len(set(paths)) == len(found)


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ('<a href="gone/">', "a/index.html: gone/ leads to nothing"),
        (
            '<a href="../b.html#x">',
            "a/index.html: ../b.html#x leads to an anchor that is not there",
        ),
        (
            '<script src="//x.example/y.js">',
            "a/index.html: loads //x.example/y.js from another host",
        ),
    ],
)
def test_a_fault_is_found(html: str, fault: str) -> None:
    index = '<a href="a/"></a><a href="b.html"></a>'
    pages = {"index.html": index, "a/index.html": html, "b.html": '<p id="here">'}
    assert list(faults(pages, frozenset(pages))) == [fault]


@pytest.mark.parametrize("html", ['<a href="https://x.example/y#z">', '<a href="mailto:x@y.z">'])
def test_what_lies_behind_a_link_to_another_host_is_not_judged(html: str) -> None:
    assert list(faults({"index.html": html}, frozenset({"index.html"}))) == []


def test_a_page_to_which_no_way_leads_is_found() -> None:
    pages = {
        "index.html": '<a href="d.html"></a><a href="a/#x"></a><a href="https://x.example/c.html">',
        "d.html": '<a href="index.html"></a>',
        "a/index.html": '<p id="x"><a href="../b.html"></a>',
        "b.html": "",
        "c.html": '<a href="index.html"></a>',
    }
    assert list(faults(pages, frozenset(pages))) == [
        "c.html: no way leads there from the landing page"
    ]


def test_of_what_the_renderer_says_its_own_traceback_is_left_out() -> None:
    said = "Build started\nWarning: anchor does not exist\n1 issue found\n"
    traceback = (
        'Traceback (most recent call last):\n  File "main.py", line 81\nRuntimeError: Aborted\n'
    )
    assert without_traceback(said + traceback) == said.rstrip()
    assert without_traceback(said) == said.rstrip()
    assert without_traceback(traceback) == traceback.rstrip()


def test_the_newest_release_is_the_latest() -> None:
    found = listing(["dev", "0.9.0", "0.10.0"])
    assert [(one["version"], one["aliases"]) for one in found] == [
        ("0.10.0", ["latest"]),
        ("0.9.0", []),
        ("dev", []),
    ]
