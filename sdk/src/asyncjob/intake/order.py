"""The job that a submission asks for, ready to be created."""

from dataclasses import dataclass, replace
from typing import Final

from asyncjob import names
from asyncjob.intake.checks import check_submission
from asyncjob.intake.content import fingerprint_of, set_fields
from asyncjob.intake.naming import (
    dedup_name_prefix,
    key_label_value,
    key_name,
    sequence_name,
    sequence_of,
)
from asyncjob.json_types import Json, JsonObject
from asyncjob.models.spec import RequestData
from asyncjob.rest.submission import Submission

_METADATA_FIELDS: Final = ("name", "labels")


@dataclass(frozen=True, slots=True)
class JobManifest:
    """A job to create. `fingerprint` tells it from another body under the same name or key.

    With a deduplicationId, `name_prefix` is how all names with that id begin, and `name` is that of
    the first; `with_dedup_sequence` gives the others. `has_both_keys`: the submitter gave an
    idempotencyKey as well, which the name does not keep unique then.
    """

    namespace: str
    name: str
    fingerprint: str
    spec: JsonObject
    labels: JsonObject
    idempotency_key: str | None = None
    deduplication_id: str | None = None
    name_prefix: str = ""
    has_both_keys: bool = False

    @property
    def manifest(self) -> JsonObject:
        """Return the manifest."""
        metadata: dict[str, Json] = {
            "name": self.name,
            "namespace": self.namespace,
            "annotations": {names.CONTENT_ANNOTATION: self.fingerprint},
        }
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.JOB_KIND,
            "metadata": {**metadata, "labels": self.labels} if self.labels else metadata,
            "spec": self.spec,
        }

    @property
    def dedup_sequence(self) -> int:
        """Return the number among the jobs with the same deduplicationId, from 1 on; or 0."""
        return sequence_of(self.name, self.name_prefix) if self.name_prefix else 0

    def with_dedup_sequence(self, sequence: int) -> "JobManifest":
        """Return the same as the job of this number among those with its deduplicationId."""
        return replace(self, name=sequence_name(self.name_prefix, sequence))


def build_manifest(
    submission: Submission, namespace: str, *, new_id: str, forwarded: RequestData | None = None
) -> JobManifest:
    """Return the job to create; raises InvalidSubmissionError that names each field at fault.

    `new_id` is a fresh UUID: the name of a job that has neither name nor keys, and the
    idempotencyKey of one that has only a deduplicationId, so that a repeat is known again.
    `forwarded` is what came with the HTTP request; it is handed to the handler unless the
    submission says what to hand over, and does not tell one submission from another.
    """
    fields = set_fields(submission)
    check_submission(submission, fields)
    key, dedup = submission.idempotency_key, submission.deduplication_id
    key = key or (new_id if dedup else None)
    begin = dedup_name_prefix(namespace, dedup) if dedup else ""
    return JobManifest(
        namespace=namespace,
        name=_job_name(submission, namespace, begin, new_id),
        fingerprint=fingerprint_of(submission),
        spec=_job_spec(fields, key, forwarded),
        labels=_job_labels(submission, key),
        idempotency_key=key,
        deduplication_id=dedup,
        name_prefix=begin,
        has_both_keys=bool(submission.idempotency_key and dedup),
    )


def _job_name(submission: Submission, namespace: str, prefix: str, new_id: str) -> str:
    if prefix:
        return sequence_name(prefix, 1)
    if submission.idempotency_key:
        return key_name(namespace, submission.idempotency_key)
    return submission.name or new_id


def _job_spec(fields: JsonObject, key: str | None, forwarded: RequestData | None) -> JsonObject:
    spec = {name: value for name, value in fields.items() if name not in _METADATA_FIELDS}
    if key:
        spec["idempotencyKey"] = key
    if forwarded and "request" not in spec:
        spec["request"] = forwarded.model_dump(mode="json", by_alias=True, exclude_none=True)
    return spec


def _job_labels(submission: Submission, key: str | None) -> JsonObject:
    given: dict[str, Json] = dict(submission.labels or {})
    if submission.deduplication_id and key:
        given[names.DEDUPLICATION_LABEL] = key_label_value(submission.deduplication_id)
        given[names.IDEMPOTENCY_LABEL] = key_label_value(key)
    return given
