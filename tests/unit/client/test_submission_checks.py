"""What a submission becomes."""

from typing import Any

import pytest

from asyncjob.models.job import RequestData
from asyncjob.submission import (
    InvalidSubmissionError,
    JobManifest,
    Match,
    build_manifest,
    fingerprint_of_job,
    match_existing,
    read_submission,
    sequence_of,
)
from support.objects.builders import stored

CARRIED = RequestData(headers={"x": ["1"]})


def made(carried: RequestData | None = None, **fields: Any) -> JobManifest:
    submission = read_submission({"type": "t", **fields})
    return build_manifest(submission, "ns", new_id="new-id", forwarded=carried)


def existing(order: JobManifest, **status: Any) -> dict[str, Any]:
    obj = stored(order.name, status, **dict(order.spec))
    return {**obj, "metadata": {**obj["metadata"], **order.manifest["metadata"]}}  # type: ignore[dict-item]  # a manifest


def test_names_follow_from_keys_and_namespaces() -> None:
    assert made().name == "new-id"
    assert made(name="mine").name == "mine"
    keyed = made(idempotencyKey="k")
    assert keyed.name == made(idempotencyKey="k", payload=1).name
    other = build_manifest(
        read_submission({"type": "t", "idempotencyKey": "k"}), "other", new_id="x"
    )
    assert keyed.name != other.name
    row = made(deduplicationId="k")
    assert row.name_prefix != keyed.name
    names = [row.with_dedup_sequence(number).name for number in (1, 2, 3)]
    assert [sequence_of(name, row.name_prefix) for name in names] == [1, 2, 3]
    assert (
        sequence_of("anything", row.name_prefix)
        == sequence_of(f"{row.name_prefix}-x", row.name_prefix)
        == 0
    )


def test_a_deduplication_id_alone_brings_a_key_of_its_own_and_labels_to_find_it_by() -> None:
    row = made(deduplicationId="d")
    assert row.spec["idempotencyKey"] == "new-id"
    assert set(row.labels) == {"asyncjob.dev/deduplication-id", "asyncjob.dev/idempotency-key"}
    assert all(len(str(value)) <= 63 for value in row.labels.values())


@pytest.mark.parametrize("levels", [65, 150, 300, 900, 5_000])
def test_a_payload_that_is_too_deep_is_refused_with_the_limit(levels: int) -> None:
    payload: Any = 1
    for _ in range(levels):
        payload = [payload]
    with pytest.raises(InvalidSubmissionError, match="nested deeper than 64 levels") as refused:
        made(payload=payload)
    assert [one.field for one in refused.value.errors] == ["payload"]


@pytest.mark.parametrize("field", ["notBefore", "notAfter"])
def test_a_time_that_utc_has_no_year_for_is_refused_and_named(field: str) -> None:
    read = read_submission({"type": "t", field: "9999-12-31T23:59:59-14:00"})
    with pytest.raises(InvalidSubmissionError, match=f"{field}: not a valid time"):
        build_manifest(read, "ns", new_id="new-id")


def test_what_came_with_the_request_is_handed_on_and_tells_nothing_apart() -> None:
    with_it, without = made(CARRIED), made()
    assert with_it.spec["request"] == {"headers": {"x": ["1"]}}
    assert with_it.fingerprint == without.fingerprint
    own = made(CARRIED, request={"headers": {"y": ["2"]}})
    assert own.spec["request"] == {"headers": {"y": ["2"]}}
    assert own.fingerprint != without.fingerprint


@pytest.mark.parametrize(
    "more",
    [
        {"traceparent": "00-a"},
        {"queue": "default"},
        {"priority": 0},
        {"suspend": False},
        {"name": "mine"},
        {"idempotencyKey": "k"},
        {"labels": {}},
    ],
)
def test_what_changes_nothing_is_the_same_content(more: dict[str, Any]) -> None:
    assert made(**more).fingerprint == made().fingerprint


@pytest.mark.parametrize(
    "more",
    [
        {"payload": False},
        {"payload": 0},
        {"queue": "other"},
        {"labels": {"a": "b"}},
        {"notBefore": "2026-01-01T00:00:00Z"},
        {"deduplicationId": "d"},
        {"retryPolicy": {"maxRetries": 3}},
    ],
)
def test_what_changes_something_is_another_content(more: dict[str, Any]) -> None:
    assert made(**more).fingerprint != made().fingerprint


def test_one_moment_is_the_same_however_it_is_written() -> None:
    assert (
        made(notBefore="2026-01-01T00:00:00Z").fingerprint
        == made(notBefore="2026-01-01T01:00:00.000+01:00").fingerprint
    )


def test_verdicts_on_a_job_under_the_same_key() -> None:
    wanted = made(idempotencyKey="k", payload=1)
    other = made(idempotencyKey="k", payload=2)
    assert match_existing(existing(wanted, phase="Cancelled"), wanted) is Match.SAME
    assert match_existing(existing(other), wanted) is Match.KEY_REUSED
    stranger = existing(wanted)
    stranger["spec"].pop("idempotencyKey")
    assert match_existing(stranger, wanted) is Match.NAME_TAKEN


def test_verdicts_on_a_job_with_the_same_deduplication_id() -> None:
    mine = made(deduplicationId="d")
    theirs = build_manifest(
        read_submission({"type": "t", "deduplicationId": "d"}), "ns", new_id="theirs"
    )
    assert match_existing(existing(mine), mine) is Match.SAME
    assert match_existing(existing(theirs), mine) is Match.DUPLICATE
    assert match_existing(existing(theirs, phase="DeadLetter"), mine) is Match.FINISHED_DUPLICATE
    going = existing(theirs)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert match_existing(going, mine) is Match.FINISHED_DUPLICATE


def test_a_job_applied_with_kubectl_is_compared_by_its_spec() -> None:
    wanted = made(idempotencyKey="k", payload={"a": 1.0})
    applied = stored(wanted.name, type="t", idempotencyKey="k", payload={"a": 1})
    applied["spec"].pop("type")
    applied["spec"]["type"] = "t"
    assert match_existing(applied, wanted) is Match.SAME
    assert fingerprint_of_job(stored("j", rerunOf={"name": "a", "uid": "b"})) is None


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidSubmissionError) as caught:
        made(
            payload="x" * 2_000_000,
            payloadFrom={},
            labels={"asyncjob.dev/parent": "x", "ok": "not ok"},
            notBefore="2026-01-02T00:00:00Z",
            notAfter="2026-01-01T00:00:00Z",
            name="n",
            deduplicationId="d",
        )
    assert [one.field for one in caught.value.errors] == [
        "payload",
        "name",
        "payloadFrom",
        "payloadFrom",
        "labels.asyncjob.dev/parent",
        "labels.ok",
        "notAfter",
    ]


@pytest.mark.parametrize("field", ["\ud800", "queryParams"])
def test_what_cannot_be_sent_is_named_all_the_same(field: str) -> None:
    with pytest.raises(InvalidSubmissionError) as caught:
        made(request={"headers": {"\ud800": ["a"]}}, labels={field: "\u00e4"})
    assert all(one.field.encode() for one in caught.value.errors)


@pytest.mark.parametrize(
    ("depends_on", "said"),
    [
        ([{}], "dependsOn.0: give either name, of a job, or array"),
        ([{"name": "a", "array": "a"}], "dependsOn.0: give either name, of a job, or array"),
        ([{"array": "a", "children": True}], "dependsOn.0.children: children are those of a job"),
        ([{"name": "b"}, {"name": "b"}], "dependsOn.1: b is named twice"),
        ([{"array": "a"}, {"array": "a"}], "dependsOn.1: array a is named twice"),
        ([{"name": "mine"}], "dependsOn.0: mine cannot depend on itself; leave it out"),
    ],
)
def test_dependencies_that_cannot_be_are_named(depends_on: list[Any], said: str) -> None:
    with pytest.raises(InvalidSubmissionError) as error:
        made(name="mine", dependsOn=depends_on)
    assert said in str(error.value)


def test_a_job_and_an_array_of_one_name_are_two() -> None:
    both = [{"name": "a"}, {"array": "a"}, {"array": "mine"}]
    assert len(made(name="mine", dependsOn=both).spec["dependsOn"]) == 3  # type: ignore[arg-type]  # a list
