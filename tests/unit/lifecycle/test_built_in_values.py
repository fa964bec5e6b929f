"""The numbers that the reference calls built in, and names that stay within their limits."""

import re
from datetime import timedelta

import pytest
from pydantic import BaseModel

from asyncjob.lifecycle.arrays.chunks import chunk_slots
from asyncjob.lifecycle.derived_jobs import cron_label_value, is_run_name, rerun_name, run_name
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.policy import (
    BUILT_IN_POLICY,
    DEFAULT_CANCEL_GRACE_SECONDS,
    DEFAULT_QUEUE_TIMEOUT_SECONDS,
)
from asyncjob.lifecycle.waits import MAX_SLEEP_SECONDS, PARK_AFTER_SECONDS
from asyncjob.models import AsyncJobSpec
from asyncjob.models.array import ArrayOptions
from asyncjob.models.base import RetryPolicy
from support.objects.snapshots import raw

BUILT_IN = {
    **BUILT_IN_POLICY.to_json(),
    "queueTimeoutSeconds": DEFAULT_QUEUE_TIMEOUT_SECONDS,
    "cancelGraceSeconds": DEFAULT_CANCEL_GRACE_SECONDS,
}


@pytest.mark.parametrize("model", [AsyncJobSpec, ArrayOptions, RetryPolicy])
def test_what_the_reference_calls_built_in_is_what_counts(model: type[BaseModel]) -> None:
    said = {
        field.alias or name: found[1]
        for name, field in model.model_fields.items()
        if (found := re.search(r"Built in: ([\w.]*\w)", field.description or ""))
    }
    assert said == {
        name: f"{BUILT_IN[name]:g}" if name != "backoff" else "Exponential" for name in said
    }
    assert len(said) >= 4


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("notBefore", "2027-01-15T08:00:00Z"),
        ("notAfter", "2027-01-15T08:00:00Z"),
        ("dependsOn", [{"name": "a"}]),
        ("deduplicationId", "a"),
        ("concurrencyKey", "a"),
    ],
)
def test_a_job_may_have_a_single_gate(field: str, value: object) -> None:
    assert read_job(raw(spec={field: value})).gates != read_job(raw()).gates


def test_a_derived_name_is_cut_only_if_it_is_longer_than_a_name_may_be() -> None:
    assert rerun_name("a" * 250, 4) == "a" * 250 + "-r4"
    cut = rerun_name("a" * 251, 4)
    assert len(cut) == 253
    assert re.fullmatch(r"a{239}-[0-9a-f]{10}-r4", cut)
    assert is_run_name(run_name("b" * 253, 0), "b" * 253)
    assert cron_label_value("c" * 63) == "c" * 63
    assert re.fullmatch(r"c{52}-[0-9a-f]{10}", cron_label_value("c" * 64))


def test_a_sleep_may_take_a_year_and_one_of_two_seconds_keeps_its_slot() -> None:
    assert timedelta(seconds=MAX_SLEEP_SECONDS) == timedelta(days=365)
    assert PARK_AFTER_SECONDS == 2


@pytest.mark.parametrize(("slots", "chunks"), [(1, 1), (2, 1), (4, 3), (32, 24)])
def test_chunks_take_three_quarters_of_the_slots_and_one_at_least(slots: int, chunks: int) -> None:
    assert chunk_slots(slots) == chunks
