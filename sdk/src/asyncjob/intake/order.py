"""The job that a submission asks for, ready to be created."""

from dataclasses import dataclass, replace
from typing import Final

from asyncjob import names
from asyncjob.intake.checks import check
from asyncjob.intake.content import asked, content_of
from asyncjob.intake.naming import key_name, label_of, number_of, numbered_name, stem
from asyncjob.json_types import Json, JsonObject
from asyncjob.models.spec import RequestData
from asyncjob.rest.submission import Submission

_NOT_SPEC: Final = ("name", "labels")


@dataclass(frozen=True, slots=True)
class Order:
    """A job to create. `content` tells it from another body under the same name or key.

    With a deduplicationId, `stem` is how all names with that id begin, and `name` is that of the
    first; `numbered` gives the others. `both`: the submitter gave an idempotencyKey as well, which
    the name does not keep unique then.
    """

    namespace: str
    name: str
    content: str
    spec: JsonObject
    labels: JsonObject
    key: str | None = None
    deduplication_id: str | None = None
    stem: str = ""
    both: bool = False

    @property
    def body(self) -> JsonObject:
        """Return the manifest."""
        metadata: dict[str, Json] = {
            "name": self.name,
            "namespace": self.namespace,
            "annotations": {names.CONTENT_ANNOTATION: self.content},
        }
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.JOB_KIND,
            "metadata": {**metadata, "labels": self.labels} if self.labels else metadata,
            "spec": self.spec,
        }

    @property
    def number(self) -> int:
        """Return the number among the jobs with the same deduplicationId, from 1 on; or 0."""
        return number_of(self.name, self.stem) if self.stem else 0

    def numbered(self, number: int) -> "Order":
        """Return the same as the job of this number among those with its deduplicationId."""
        return replace(self, name=numbered_name(self.stem, number))


def order(
    submission: Submission, namespace: str, *, new_id: str, carried: RequestData | None = None
) -> Order:
    """Return the job to create; raises InvalidSubmissionError that names each field at fault.

    `new_id` is a fresh UUID: the name of a job that has neither name nor keys, and the
    idempotencyKey of one that has only a deduplicationId, so that a repeat is known again.
    `carried` is what came with the HTTP request; it is handed to the handler unless the submission
    says what to hand over, and does not tell one submission from another.
    """
    fields = asked(submission)
    check(submission, fields)
    key, dedup = submission.idempotency_key, submission.deduplication_id
    key = key or (new_id if dedup else None)
    begin = stem(namespace, dedup) if dedup else ""
    return Order(
        namespace=namespace,
        name=_name(submission, namespace, begin, new_id),
        content=content_of(submission),
        spec=_spec(fields, key, carried),
        labels=_labels(submission, key),
        key=key,
        deduplication_id=dedup,
        stem=begin,
        both=bool(submission.idempotency_key and dedup),
    )


def _name(submission: Submission, namespace: str, begin: str, new_id: str) -> str:
    if begin:
        return numbered_name(begin, 1)
    if submission.idempotency_key:
        return key_name(namespace, submission.idempotency_key)
    return submission.name or new_id


def _spec(fields: JsonObject, key: str | None, carried: RequestData | None) -> JsonObject:
    spec = {name: value for name, value in fields.items() if name not in _NOT_SPEC}
    if key:
        spec["idempotencyKey"] = key
    if carried and "request" not in spec:
        spec["request"] = carried.model_dump(mode="json", by_alias=True, exclude_none=True)
    return spec


def _labels(submission: Submission, key: str | None) -> JsonObject:
    given: dict[str, Json] = dict(submission.labels or {})
    if submission.deduplication_id and key:
        given[names.DEDUPLICATION_LABEL] = label_of(submission.deduplication_id)
        given[names.IDEMPOTENCY_LABEL] = label_of(key)
    return given
