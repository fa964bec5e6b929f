"""What a rerun takes along."""

from typing import Any

from asyncjob.lifecycle.derived_jobs import RERUN_FIELDS, is_rerun_of, rerun_manifest
from asyncjob.models import AsyncJobSpec
from asyncjob.shards import shard_of
from support.objects.snapshots import raw

LEFT_BEHIND = {
    "notBefore",
    "notAfter",
    "dependsOn",
    "cancelCascade",
    "idempotencyKey",
    "deduplicationId",
    "rerunOf",
    "traceparent",
    "cancel",
    "suspend",
    "redrive",
    "rerun",
    "signals",
}


def test_every_field_of_a_spec_is_either_taken_along_or_left_behind() -> None:
    fields = {field.alias or name for name, field in AsyncJobSpec.model_fields.items()}
    assert set(RERUN_FIELDS) | LEFT_BEHIND == fields
    assert not set(RERUN_FIELDS) & LEFT_BEHIND


def test_a_rerun_is_linked_to_its_original() -> None:
    original = raw(spec={"payload": {"a": [None]}, "rerun": 1, "traceparent": "t"})
    body: Any = rerun_manifest(original, "job-r1")
    assert body == {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {
            "name": "job-r1",
            "namespace": "ns",
            "labels": {"asyncjob.dev/shard": str(shard_of("job-r1"))},
        },
        "spec": {
            "type": "test",
            "queue": "default",
            "payload": {"a": [None]},
            "rerunOf": {"name": "job", "uid": "uid-job"},
        },
    }
    assert is_rerun_of(body, original)
    assert not is_rerun_of(raw("job-r1"), original)
