"""Builds the manifest of the job that a submission asks for: its fingerprint, its name, its spec.

The fingerprint tells whether two submissions ask for the same job; names, keys and traces do not
count. Names are derived from keys, because the API server keeps names unique and so keeps keys
unique. The jobs with one deduplicationId have a sequence number in their names, which counts down,
so that the newest comes first in every list, which is sorted by name.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError

from asyncjob import names
from asyncjob.free_json import canonical_json, digest
from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.timestamps import format_timestamp, parse_timestamp
from asyncjob.models.job import RequestData
from asyncjob.rest.submission import Submission
from asyncjob.shards import shard_label
from asyncjob.submission.validation import check_submission

_NOT_FINGERPRINTED: Final = ("name", "idempotencyKey", "traceparent")
_TIME_FIELDS: Final = ("notBefore", "notAfter")
_FINGERPRINT_LENGTH: Final = 32
_RESERVED_PREFIX: Final = f"{names.GROUP}/"


def set_fields(submission: Submission) -> dict[str, Json]:
    """Return the fields that the submission sets, by their names in JSON."""
    fields: dict[str, Json] = submission.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"payload"}
    )
    if submission.payload is not None:
        fields["payload"] = submission.payload  # as it is: a dump would make NaN null
    return {name: value for name, value in fields.items() if (name, value) != ("suspend", False)}


def fingerprint_of(submission: Submission) -> str:
    """Return what tells this submission from others."""
    fields = {
        name: value
        for name, value in set_fields(submission).items()
        if name not in _NOT_FINGERPRINTED
    }
    moments: dict[str, Json] = {
        name: _canonical_time(fields[name]) for name in _TIME_FIELDS if name in fields
    }
    return digest(
        {**fields, **moments, "labels": fields.get("labels") or None}, _FINGERPRINT_LENGTH
    )


def fingerprint_of_job(job: JsonObject) -> str | None:
    """Return what tells the submission that an existing job came from; None if it came from none.

    A job that somebody applied with kubectl has no such annotation: it is worked out from its spec,
    in which priority and suspend may have been changed since.
    """
    annotations = child(child(job, "metadata"), "annotations")
    return text(annotations, names.CONTENT_ANNOTATION) or _fingerprint_from_spec(job)


def _fingerprint_from_spec(job: JsonObject) -> str | None:
    labels = child(child(job, "metadata"), "labels")
    own: Mapping[str, Json] = {
        name: value for name, value in labels.items() if not name.startswith(_RESERVED_PREFIX)
    }
    try:
        return fingerprint_of(Submission.model_validate({**child(job, "spec"), "labels": own}))
    except (ValidationError, ValueError):  # ValueError: a time that is none
        return None


def _canonical_time(value: Json) -> str:
    return format_timestamp(parse_timestamp(str(value)))


_UUID_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "asyncjob.dev")
_SEQUENCE_DIGITS: Final = 9
_SEQUENCE_LIMIT: Final = 10**_SEQUENCE_DIGITS


def key_name(namespace: str, key: str) -> str:
    """Return the name, a UUID, of the job with this idempotencyKey in the namespace."""
    return _derived_uuid("idempotencyKey", namespace, key)


def dedup_name_prefix(namespace: str, deduplication_id: str) -> str:
    """Return how the names of all jobs with this deduplicationId in the namespace begin."""
    return _derived_uuid("deduplicationId", namespace, deduplication_id)


def sequence_name(prefix: str, sequence: int) -> str:
    """Return the name of the job of this number, from 1 on, among those with one id."""
    return f"{prefix}-{_SEQUENCE_LIMIT - sequence:0{_SEQUENCE_DIGITS}d}"


def sequence_of(name: str, prefix: str) -> int:
    """Return the number of a job among those with one id; 0 if its name is no such name."""
    before, _, rest = name.rpartition("-")
    if before != prefix or len(rest) != _SEQUENCE_DIGITS or not (rest.isascii() and rest.isdigit()):
        return 0
    return _SEQUENCE_LIMIT - int(rest)


def key_label_value(key: str) -> str:
    """Return the label value that stands for a key or id, which may be longer than labels are."""
    return digest(key, 52)


def _derived_uuid(kind: str, namespace: str, value: str) -> str:
    return str(uuid.uuid5(_UUID_NAMESPACE, canonical_json([kind, namespace, value]).decode()))


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
            "labels": {**self.labels, **shard_label(self.name)},
            "annotations": {names.CONTENT_ANNOTATION: self.fingerprint},
        }
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.JOB_KIND,
            "metadata": metadata,
            "spec": self.spec,
        }

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
