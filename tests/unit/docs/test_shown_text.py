"""What the documentation shows besides commands is what comes, or the reason stands here.

That is: blocks of `text`, and what blocks of `console` show below a command. Recipes and the page
on the examples are not looked at here: tests follow them and compare each line.
"""

import re
from collections.abc import Mapping
from functools import cache

import pytest

from asyncjob.cli.backup.records import export_summary
from asyncjob.names import CRON_JOB_KIND, JOB_KIND, QUEUE_KIND
from asyncjob.schema.crd import CUSTOM_RESOURCES
from asyncjob.submission.manifest import key_name
from asyncjob_dev.proofs import short_model
from support.docs.blocks import ROOT, CodeBlock, all_blocks, commands_of

FOLLOWED = ("docs/recipes/", "examples/README.md")
"""Pages that tests of `tests/integration/recipes` follow."""

GENERATED: Mapping[str, tuple[str, str]] = {
    "docs/reference/cli.md": ("Makefile", "verify: generate"),
    "docs/reference/errors/": ("tests/unit/explanations/test_catalog.py", "examples"),
}
"""Pages, or how they begin, whose text is made from code, and what holds them to it."""

CHECKED: Mapping[tuple[str, str], tuple[str, str]] = {
    ("README.md", '{"jobId":'): ("tests/integration/demo/test_up_down.py", "read_me"),
    ("docs/how-to/audit-jobs.md", "lease.takeover"): (
        *("tests/unit/audit/test_docs.py", "test_what_the_page_prints_is_printed"),
    ),
    ("docs/how-to/audit-jobs.md", "gap in asyncjobs"): (
        *("tests/unit/audit/test_docs.py", "test_what_the_page_prints_is_printed"),
    ),
    ("docs/how-to/back-up-and-restore.md", "restored 2 queues"): (
        *("tests/unit/cli/test_restore.py", "a status cannot be"),
    ),
    ("docs/how-to/isolate-handlers.md", "crash 1 of 3 allowed"): (
        *("tests/unit/isolation/test_attempt_ends.py", "crash 1 of 3 allowed"),
    ),
    ("docs/explanation/proof.md", "without fence it is not true"): (
        *("tests/unit/proofs/test_command.py", "without fence it is not true"),
    ),
}
"""Page and how the text begins: the test that makes the same, and words that find it there."""

NOT_CHECKED: Mapping[tuple[str, str], str] = {
    ("README.md", "kubectl ──┐"): "a picture",
    ("CONTRIBUTING.md", "building etcd, kube-apiserver"): "a build of minutes, which says so",
    ("docs/explanation/chaos.md", "2128  an answer was delayed"): "runs of hours had it",
    ("docs/how-to/choose-timeouts.md", "writes/s ="): "a formula",
    ("docs/how-to/run-workers.md", "terminationGracePeriodSeconds  >"): "a formula",
    ("docs/how-to/audit-jobs.md", "recording namespace shop"): "a recording that a person ends",
    ("docs/reference/worker.md", "asyncjob-worker run"): "a pattern; its options are below it",
    ("docs/how-to/monitor.md", "asyncjob_jobs{"): (
        "takes a cluster with jobs; tests/integration/monitoring/test_gauges.py reads the series"
    ),
}
"""Page and how the text begins: why nothing compares it."""


def printed(block: CodeBlock) -> list[str]:
    """Return the lines of a block that nobody types."""
    if block.language == "text":
        return block.text.splitlines()
    typed = {
        line
        for one in commands_of(block)
        for line in [*one.text.splitlines(), *"\n".join(one.documents).splitlines()]
    }
    lines = [line.removeprefix("$ ") for line in block.text.splitlines() if line.strip()]
    return [line for line in lines if line not in typed]


@cache
def shown() -> tuple[tuple[CodeBlock, str], ...]:
    """Return the blocks that show text, each with its first line."""
    found = []
    for block in all_blocks():
        has_prompt = any(line.startswith("$ ") for line in block.text.splitlines())
        if block.language == "text" or (block.language == "console" and has_prompt):
            lines = printed(block)
            if lines and not block.page.startswith(FOLLOWED):
                found.append((block, lines[0].strip()))
    return tuple(found)


def by_hand() -> dict[tuple[str, str], list[str]]:
    """Return what is written by hand and no table of kubectl's, by page and first line."""
    return {
        (block.page, first): printed(block)
        for block, first in shown()
        if not first.startswith("NAME ") and not block.page.startswith(tuple(GENERATED))
    }


def entry_for(page: str, first: str) -> list[tuple[str, str]]:
    known = [*CHECKED, *NOT_CHECKED, *OWN]
    return [(where, begin) for where, begin in known if where == page and first.startswith(begin)]


def test_everything_shown_has_a_test_or_a_reason() -> None:
    there = by_hand()
    assert len(there) > 10
    assert [found for found in there if len(entry_for(*found)) != 1] == []


def test_every_entry_is_about_something_that_is_shown() -> None:
    named = {one for found in by_hand() for one in entry_for(*found)}
    assert named == {*CHECKED, *NOT_CHECKED, *OWN}


@pytest.mark.parametrize(("file", "words"), sorted({*CHECKED.values(), *GENERATED.values()}))
def test_the_test_that_is_named_is_there(file: str, words: str) -> None:
    assert words in (ROOT / file).read_text(encoding="utf-8")


def columns() -> list[list[str]]:
    """Return what `kubectl get` heads its tables with, for each of our kinds."""
    return [
        ["NAME", *(one.name.upper() for one in resource.columns if not one.wide)]
        for resource in CUSTOM_RESOURCES
    ]


@pytest.mark.parametrize(
    "line",
    [
        line
        for block in all_blocks()
        if block.language == "console" and not block.page.startswith("docs/recipes/")
        for line in printed(block)
        if line.startswith("NAME ")
    ],
)
def test_a_table_of_kubectl_has_the_columns_that_there_are(line: str) -> None:
    assert line.split() in columns()


def test_the_job_of_the_readme_is_the_one_that_its_key_makes() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text))
    assert named == {key_name("default", "report-42")}


def test_the_summary_of_an_export_is_what_the_page_shows() -> None:
    [line] = by_hand()[EXPORTED]
    kinds = {QUEUE_KIND: 2, CRON_JOB_KIND: 1, JOB_KIND: 1204}
    phases = {"Queued": 37, "Running": 8, "Succeeded": 1159}
    assert line == export_summary(kinds, phases, "jobs", "backup.jsonl")


def test_the_story_of_the_short_model_is_the_one_on_the_page() -> None:
    story = by_hand()[STORY]
    told = list(short_model.report())
    at = told.index(story[0])
    assert told[at : at + len(story)] == story


EXPORTED = (
    "docs/how-to/back-up-and-restore.md",
    "exported 2 queues, 1 cron job and 1204 jobs (37 Queued, 8 Running, 1159 Succeeded) of "
    "namespace jobs into backup.jsonl",
)
STORY = (
    "docs/explanation/proof.md",
    "without version it is not true that who works holds the lease:",
)
OWN = (EXPORTED, STORY)
"""What tests above make themselves."""
