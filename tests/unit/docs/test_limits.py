"""The page on limits has the numbers of the code, and every bound that a user can meet is on it."""

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import asyncjob
import asyncjob_gateway
import asyncjob_operator
import asyncjob_worker
from asyncjob import models
from asyncjob.schema.structural import structural
from asyncjob_dev.reference import limits
from asyncjob_dev.reference.__main__ import BLOCKS
from asyncjob_dev.reference.blocks import fill
from asyncjob_dev.reference.resources import fields

PAGE = Path(__file__).parents[3] / "docs/reference/limits.md"
PACKAGES = (asyncjob, asyncjob_gateway, asyncjob_operator, asyncjob_worker)
"""Packages that are shipped; all of their public `MAX_…` are looked at."""

ELSEWHERE: Mapping[str, str] = {
    "with each field, on the pages of the resources": """
        policy.MAX_DURATION_SECONDS policy.MAX_DEADLINE_SECONDS
        names.MAX_NAME_LENGTH addresses.MAX_ADDRESS_LENGTH
        options.MAX_RESERVATIONS reservation.MAX_RESERVED_RUNS reservation.MAX_CLAIMS
        status.MAX_ACTIVE_LISTED status.MAX_MESSAGE_LENGTH due_runs.MAX_MISSED
        item_index.MAX_OFFSETS item_index.MAX_VERSION_LENGTH store.MAX_VERSION_LENGTH
        queue_stats.MAX_INT32 manifests.MAX_DEPENDENCIES derived_jobs.MAX_LABEL_LENGTH
        options.MAX_LABEL_LENGTH state.MAX_MESSAGE_LENGTH job.MAX_SENDER_LENGTH
        array.MAX_RESULTS_URI_LENGTH
    """,
    "the same bound as one on the page": """
        chunk_size.MAX_SIZE child_manifest.MAX_PAYLOAD_BYTES handler.MAX_JSON_LEVELS
        job_rules.MAX_HISTORY counting.MAX_RANGES history_file.MAX_LINE_BYTES metrics.MAX_TYPES
        job_metrics.MAX_QUEUE_TYPES
    """,
    "a text, cut where it is written or shown": """
        phase_change.MAX_ERROR_TYPE_LENGTH store.MAX_ERROR_TEXT_LENGTH events.MAX_MESSAGE_LENGTH
        arrays.MAX_RANGE_CHARACTERS
        events.MAX_SUBJECT_LENGTH yaml_loader.MAX_SHOWN_KEY detail.MAX_PAYLOAD_CHARACTERS
        explanation.MAX_WIDTH deep_json.MAX_SHOWN_LEVELS kopf_session.MAX_LOGGED
        kopf_text.MAX_PASSED_BYTES kopf_text.MAX_PASSED_BRACKETS
    """,
    "how many a message or a list of suggestions names": """
        strict.MAX_PROBLEMS reader.MAX_REPORTED_MISTAKES submissions.MAX_REPORTED_MISTAKES
        restore.MAX_NAMED dead_letters.MAX_NAMED dead_letters.MAX_LISTED_NAMES
        dead_letters.MAX_TYPES_NAMED dependencies.MAX_DEPENDENCIES_NAMED resource_names.MAX_OFFERED
        checker.MAX_KEPT
    """,
    "on the page of the built-in handlers, or beyond what they meet": """
        assembly.MAX_SLEEP_SECONDS exec_program.MAX_FINAL_READS http_handler.MAX_REDIRECTS
        http_response.MAX_HEADER http_response.MAX_URL http_response.MAX_RETRY_AFTER_SECONDS
    """,
    "the size of a step with what else the job holds, which decides where its result is kept": """
        step_records.MAX_JOB_BYTES
    """,
    "a pause or a number of tries, which costs time and no more": """
        export.MAX_ATTEMPTS connection.MAX_DELAY_SECONDS following.MAX_SILENCE_SECONDS
        following.MAX_STREAM_SILENCE_SECONDS changes.MAX_WRITE_TRIES recorder.MAX_WATCH_FAILURES
        informer.MAX_WATCH_FAILURES pacing.MAX_OUTAGE_BACKOFF pacing.MAX_RETRY_AFTER
        watch.MAX_SILENCE_SECONDS workqueue.MAX_REFUSED_BACKOFF now.MAX_WALL_CLOCK_WAIT
        now.MAX_SERVER_CLOCK_WAIT
        kopf_session.MAX_RETRY_BACKOFF preflight.MAX_TRIES loops.MAX_SLEEP loops.MAX_WATCH_PAUSE
        quarantine.MAX_PAUSE selector.MAX_TAKEOVER_DELAY_SECONDS child_poller.MAX_POLL_SECONDS
        results.MAX_STORE_REFUSALS outcome_writer.MAX_OUTCOME_REFUSALS ownership.MAX_CHECKS
        signals.MAX_TRIES item_results.MAX_WRITE_PAUSE_SECONDS
        item_results.MAX_RETRY_SECONDS item_results.MAX_REFUSALS
    """,
    "how much is done at once; the rest waits, and is not refused": """
        paging.MAX_PAGE_OBJECTS paging.MAX_PAGE_BYTES components.MAX_PER_LANE job_look.MAX_BYTES
        cron_job_reconciler.MAX_READ_BY_NAME job_evaluator.MAX_EVALUATED_AT_ONCE
        retention.MAX_CONCURRENT_DELETIONS workqueue.MAX_CONCURRENT_RECONCILES
        workqueue.MAX_PER_NAMESPACE process.MAX_CONNECTIONS child_jobs.MAX_CONCURRENT_SUBMITS
        load.MAX_LARGE_BYTES array_reconciler.MAX_EFFECTS advance.MAX_CHUNK_RANGES
        items.MAX_TURN_SECONDS
    """,
    "how much is remembered; what is forgotten is read again": """
        authentication.MAX_ACCEPTED_TOKENS review_cache.MAX_ENTRIES rates.MAX_KEYS
        jobs.MAX_REMEMBERED_DELETED versions.MAX_REMEMBERED_DELETED scheduled_jobs.MAX_NAMES
        scheduled_jobs.MAX_ORPHANS statuses.MAX_STATUSES preconditions.MAX_VERIFIED
        workqueue.MAX_TRACKED_ITEMS version_times.MAX_SAMPLES pending_queue.MAX_IDLE_KEYS
        workers.MAX_REMEMBERED backlog.MAX_STALE_ENTRIES earlier_children.MAX_RESULT_BYTES_KEPT
    """,
    "callers are told throttled or busy, as beyond the requests at once": """
        bodies.MAX_SLOW_BODIES bodies.MAX_SLOW_BODIES_PER_SENDER authentication.MAX_UNKNOWN_REVIEWS
    """,
    "what nobody sends but to do harm": """
        yaml_loader.MAX_NUMBER_LENGTH sign_in.MAX_SIGN_IN_BYTES security.MAX_FORM_FIELDS
        deep_json.MAX_PARSED_LEVELS deep_json.MAX_WRITTEN_LEVELS workers.MAX_SLOTS now.MAX_EPOCH
    """,
    "Events are dropped and counted, as beyond their rate": """
        events.MAX_QUEUED_EVENTS
    """,
    "when something counts as failing, which the doctor, a probe or a log says": """
        processes.MAX_MISSED_LEASES stuck_jobs.MAX_SILENCE_SECONDS stuck_jobs.MAX_OVERDUE_SECONDS
        stuck_jobs.MAX_CANCELLING_SECONDS clock.MAX_SKEW_SECONDS health.MAX_MISSED_HEARTBEATS
        worker.MAX_MISSED_HEARTBEAT_CHECKS arrays.MAX_IDLE_SECONDS
    """,
}
"""Bounds that are not on the page, by the reason why not."""

NOT_ON_THE_PAGE = [name for names in ELSEWHERE.values() for name in names.split()]

SCHEMAS: tuple[Any, ...] = (
    *(models.AsyncJobSpec, models.AsyncJobStatus, models.AsyncQueueSpec, models.AsyncQueueStatus),
    *(models.AsyncCronJobSpec, models.AsyncCronJobStatus),
    *(models.AsyncArraySpec, models.AsyncArrayStatus),
)
BOUNDS = ("maxLength", "maxItems", "maxProperties", "maximum")


def bounds(schema: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Yield the bounds that a reader of a field's row has to see, with the field's name there."""
    if path and "format" not in schema:
        yield from ((path, schema[name]) for name in BOUNDS if name in schema)
    for name, inner in schema.get("properties", {}).items():
        if path or name != "metadata":
            yield from bounds(inner, f"{path}.{name}".lstrip("."))
    if inner := schema.get("additionalProperties"):
        yield from bounds(inner, f"{path}.*" if "properties" in inner else path)
    if items := schema.get("items"):
        yield from bounds(items, f"{path}[]" if "properties" in items else path)


@pytest.mark.parametrize("model", SCHEMAS, ids=lambda model: model.__name__)
def test_every_bound_of_a_field_stands_in_its_row(model: Any) -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \|(.*)$", fields(model), re.MULTILINE))
    missing = [
        (path, bound)
        for path, bound in bounds(structural(model))
        if not re.search(rf"\b{bound}\b", rows[path])
    ]
    assert missing == []


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert fill(text, BLOCKS) == text
    assert text.count("| --- | --- | --- |") == 6


def constants() -> list[tuple[str, str]]:
    """Return the public bounds, with their modules; what is only imported there does not count."""
    found = []
    for package in PACKAGES:
        (folder,) = package.__path__
        for file in sorted(Path(folder).rglob("*.py")):
            module = ".".join((package.__name__, *file.relative_to(folder).with_suffix("").parts))
            names = re.findall(r"^(MAX_\w+)(?:: \w+)? =", file.read_text("utf-8"), re.MULTILINE)
            found += [(module, name) for name in names]
    return found


def short(module: str, constant: str) -> str:
    return f"{module.rpartition('.')[2]}.{constant}"


def is_on_the_page(module: str, constant: str) -> bool:
    """Whether what writes the page imports the bound, or its module and takes it from there."""
    source = inspect.getsource(limits)
    parent, _, last = module.rpartition(".")
    if re.search(rf"^from {module} import [\w, ]*\b{constant}\b", source, re.MULTILINE):
        return True
    imported = re.search(rf"^from {parent} import [\w, ]*\b{last}\b", source, re.MULTILINE)
    return bool(imported and re.search(rf"\b{last}\.{constant}\b", source))


@pytest.mark.parametrize(("module", "constant"), constants())
def test_a_bound_is_on_the_page_or_says_why_not(module: str, constant: str) -> None:
    name = short(module, constant)
    assert is_on_the_page(module, constant) != (name in NOT_ON_THE_PAGE), name


def test_the_reasons_are_about_bounds_that_there_are() -> None:
    names = [short(module, constant) for module, constant in constants()]
    assert len(set(names)) == len(names) > 100
    assert len(set(NOT_ON_THE_PAGE)) == len(NOT_ON_THE_PAGE)
    assert set(NOT_ON_THE_PAGE) <= set(names)
