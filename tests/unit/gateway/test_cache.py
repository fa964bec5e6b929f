"""The cache of jobs: order, paging, filters, counts, and how much it costs."""

import time
from datetime import timedelta
from typing import Any

import pytest

from asyncjob.kube.watch import WatchEvent
from asyncjob.lifecycle.derived_jobs import cron_label_value
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.listing import Selection
from asyncjob_gateway.cache.changes import ChangeBuffer
from asyncjob_gateway.cache.entries import TrimmedJob, cached_job_of
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.cache.listing import compile_selection, list_page
from asyncjob_gateway.errors import RefusedError
from support.objects.gateway_jobs import BEGIN, shown, stored


@pytest.fixture
def cache() -> JobCache:
    return JobCache(ChangeBuffer())


def ids(cache: JobCache, **selection: Any) -> list[str]:
    return [item.id for item in list_page(cache, Selection(**selection), None, 500).items]


def test_the_newest_job_comes_first_however_they_came(cache: JobCache) -> None:
    cache.replace([stored(2), stored(0)])
    cache.apply(shown("ADDED", stored(3)))
    cache.apply(shown("ADDED", stored(1)))
    assert ids(cache) == ["job-3", "job-2", "job-1", "job-0"]


def test_an_older_version_never_replaces_a_newer_one(cache: JobCache) -> None:
    cache.replace([])
    cache.put_written(stored(1, 9, phase="Running"))
    cache.apply(shown("ADDED", stored(1, 5)))
    assert ids(cache, phase=[Phase.RUNNING]) == ["job-1"]
    assert cache.counts == {("default", Phase.RUNNING): 1}


def test_a_late_answer_does_not_bring_a_deleted_job_back(cache: JobCache) -> None:
    cache.replace([stored(1)])
    cache.apply(shown("DELETED", stored(1, 7)))
    cache.put_written(stored(1, 6))
    assert ids(cache) == []
    assert cache.waiting_count("default") == 0


def test_what_was_deleted_while_nobody_watched_goes_with_the_next_list(cache: JobCache) -> None:
    cache.replace([stored(1), stored(2)])
    cache.replace([stored(2)])
    assert ids(cache) == ["job-2"]


def test_a_job_in_a_phase_unknown_to_this_version_is_left_out(cache: JobCache) -> None:
    cache.replace([stored(1, phase="Dreaming"), stored(2)])
    assert ids(cache) == ["job-2"]


def test_waiting_jobs_are_those_that_max_queued_counts(cache: JobCache) -> None:
    phases = list(Phase)
    cache.replace([stored(number, phase=phase.value) for number, phase in enumerate(phases)])
    assert cache.waiting_count("default") == 4
    cache.apply(shown("MODIFIED", stored(0, 99, phase="Succeeded")))
    assert cache.waiting_count("default") == 3


def test_a_page_goes_on_after_the_last_job_even_when_that_is_gone(cache: JobCache) -> None:
    cache.replace([stored(number) for number in range(7)])
    first = list_page(cache, Selection(), None, 3)
    assert [item.id for item in first.items] == ["job-6", "job-5", "job-4"]
    assert first.total == 7
    cache.apply(shown("DELETED", stored(4)))
    cache.apply(shown("ADDED", stored(8)))
    second = list_page(cache, Selection(), first.next, 3)
    assert [item.id for item in second.items] == ["job-3", "job-2", "job-1"]
    assert second.total is None
    last = list_page(cache, Selection(), second.next, 3)
    assert ([item.id for item in last.items], last.next) == (["job-0"], None)


def test_jobs_of_one_second_are_told_apart_by_their_uid(cache: JobCache) -> None:
    created = {"creationTimestamp": "2026-11-21T00:00:00Z"}
    cache.replace([stored(number, metadata=created) for number in range(5)])
    seen, cursor = [], None
    while True:
        found = list_page(cache, Selection(), cursor, 2)
        seen += [item.id for item in found.items]
        cursor = found.next
        if cursor is None:
            break
    assert seen == ["job-4", "job-3", "job-2", "job-1", "job-0"]


@pytest.mark.parametrize("cursor", ["x", "!!!", "W10", "bnVsbA", "a" * 200])
def test_what_is_no_cursor_is_refused_by_name(cache: JobCache, cursor: str) -> None:
    cache.replace([])
    with pytest.raises(RefusedError) as refused:
        list_page(cache, Selection(), cursor, 1)
    assert refused.value.errors[0].field == "query.cursor"


def test_ages_are_measured_to_the_second(cache: JobCache) -> None:
    cache.replace([stored(number) for number in range(5)])
    now = BEGIN + timedelta(seconds=10)
    older = compile_selection(Selection(older_than_seconds=8), now)
    newer = compile_selection(Selection(newer_than_seconds=7), now)
    assert older
    assert newer
    entries = list(cache.newest_first())
    assert [entry.summary.id for entry in entries if older(entry)] == ["job-2", "job-1", "job-0"]
    assert [entry.summary.id for entry in entries if newer(entry)] == ["job-4", "job-3"]


def test_a_schedule_with_a_long_name_is_found_by_its_label(cache: JobCache) -> None:
    name = "n" * 80
    labels = {"labels": {"asyncjob.dev/cron-job": cron_label_value(name)}}
    cache.replace([stored(1, metadata=labels), stored(2)])
    assert ids(cache, cron_job=name) == ["job-1"]


def test_nothing_heavy_or_secret_is_kept() -> None:
    heavy = {"a": "HEAVY"}
    obj = stored(
        1,
        spec={"payload": heavy, "request": {"headers": heavy}},
        metadata={
            "managedFields": [heavy],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "HEAVY"},
        },
        result=heavy,
        checkpoint=heavy,
        history=[{"time": "2026-01-01T00:00:00Z", "phase": "Queued", "message": "HEAVY"}],
    )
    kept = TrimmedJob(obj)
    assert set(kept) == {"metadata"}
    assert "HEAVY" not in f"{kept} {kept.cached}"
    assert kept.cached == cached_job_of(obj)


def test_what_a_list_shows_is_read_as_it_comes_and_not_at_one_stretch(
    cache: JobCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    shaped = [TrimmedJob(stored(number)) for number in range(3)]
    monkeypatch.setattr(
        "asyncjob_gateway.cache.entries.read_cached_job", None
    )  # nothing may call it
    cache.replace(shaped)
    cache.apply(WatchEvent("MODIFIED", shaped[0]))
    cache.apply(WatchEvent("DELETED", shaped[1]))
    assert ids(cache) == ["job-2", "job-0"]


def test_a_first_page_of_ten_thousand_jobs_takes_little(cache: JobCache) -> None:
    cache.replace([stored(number) for number in range(10_000)])
    for selection in (Selection(), Selection(text="job-99"), Selection(queue="other")):
        began = time.process_time()
        list_page(cache, selection, None, 50).model_dump_json(by_alias=True)
        assert time.process_time() - began < 0.15
