"""From the submission of an array to its manifest: checked, named, recognised when it comes again.

An array has no idempotencyKey: its name is what keeps it from being created twice, so a repeat has
to have the same name, and a digest of all else tells it from another array of that name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from asyncjob import names
from asyncjob.free_json import FreeJsonError, TooManyBytesError, digest, encode
from asyncjob.json_text import dumps
from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.models.array import MAX_INLINE_BYTES, MAX_ITEMS, MAX_SHARED_PAYLOAD_BYTES
from asyncjob.offload.addresses import Address
from asyncjob.offload.errors import AddressError
from asyncjob.rest.arrays import ArraySubmission
from asyncjob.rest.problem import FieldProblem
from asyncjob.submission.errors import InvalidSubmissionError, field_problem
from asyncjob.submission.validation import (
    dependency_problems,
    label_problems,
    time_problems,
)

_FINGERPRINT_LENGTH: Final = 32
_METADATA_FIELDS: Final = ("name", "labels")

_TOO_MANY_BYTES_ADVICE: Final = {
    "payload": "let the items say where the rest is",
    "items.inline": (
        "put the items into a file that workers may read, and name it as items.from.uri"
    ),
}


@dataclass(frozen=True, slots=True)
class ArrayManifest:
    """An array to create. `fingerprint` tells it from another one of the same name."""

    namespace: str
    name: str
    fingerprint: str
    manifest: JsonObject

    def is_same(self, existing: JsonObject) -> bool:
        """Return whether an existing array came from the same submission."""
        annotations = child(child(existing, "metadata"), "annotations")
        return text(annotations, names.CONTENT_ANNOTATION) == self.fingerprint


def array_fields(submission: ArraySubmission) -> dict[str, Json]:
    """Return the fields that the submission sets, by their names in JSON."""
    fields: dict[str, Json] = submission.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude={"payload": True, "items": {"inline"}},
    )
    if submission.payload is not None:
        fields["payload"] = submission.payload  # as they are: a dump would make NaN null
    if submission.items.inline is not None:
        fields["items"] = {**child(fields, "items"), "inline": submission.items.inline}
    return {name: value for name, value in fields.items() if (name, value) != ("suspend", False)}


def check_array(submission: ArraySubmission, fields: Mapping[str, Json]) -> None:
    """Raise InvalidSubmissionError with all that is wrong; `fields` are what is set, as JSON."""
    wrong = [
        *_source_problems(submission),
        *_json_problems(fields),
        *_limit_problems(submission),
        *dependency_problems(submission.depends_on or (), submission.name, names.ARRAY_KIND),
        *time_problems("notBefore", submission.not_before),
        *_results_problems(submission),
        *label_problems(submission.labels or {}),
    ]
    if wrong:
        raise InvalidSubmissionError(wrong)


def build_array_manifest(
    submission: ArraySubmission, namespace: str, *, new_id: str
) -> ArrayManifest:
    """Return the array to create; raises InvalidSubmissionError that names each field at fault.

    `new_id` is a fresh UUID: the name of an array that is given none.
    """
    fields = array_fields(submission)
    check_array(submission, fields)
    name = submission.name or new_id
    # Older clients submit a chunk size of 500 where none is given: theirs is the same submission.
    content = {"chunkSize": 500} | {key: value for key, value in fields.items() if key != "name"}
    fingerprint = digest({**content, "labels": fields.get("labels") or None}, _FINGERPRINT_LENGTH)
    labels: JsonObject = {**(submission.labels or {})}
    manifest: JsonObject = {
        "apiVersion": names.API_VERSION,
        "kind": names.ARRAY_KIND,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {names.CONTENT_ANNOTATION: fingerprint},
        },
        "spec": {key: value for key, value in fields.items() if key not in _METADATA_FIELDS},
    }
    return ArrayManifest(namespace, name, fingerprint, manifest)


def oversize_message(obj: JsonObject) -> str:
    """Return why a stored array's payload or items are too large to be run; empty if they are not.

    Who creates an array without a client may exceed what clients refuse to send.
    """
    spec = child(obj, "spec")
    for field, value, limit in (
        ("payload", spec.get("payload"), MAX_SHARED_PAYLOAD_BYTES),
        ("items.inline", child(spec, "items").get("inline"), MAX_INLINE_BYTES),
    ):
        size = len(dumps(value)) if value is not None else 0
        if size > limit:
            return f"{field} has {size} bytes, and at most {limit} are allowed"
    return ""


def _source_problems(submission: ArraySubmission) -> Iterator[FieldProblem]:
    source = submission.items
    if sum(one is not None for one in (source.count, source.inline, source.from_)) != 1:
        yield field_problem("items", "give exactly one of count, inline and from")
        return
    try:
        skip = ItemRanges.parse(source.skip or "")
    except ValueError as error:
        yield field_problem("items.skip", str(error))
        return
    count = MAX_ITEMS if source.from_ is not None else source.count or len(source.inline or ())
    if skip and (last := skip.ranges[-1][1]) >= count:
        yield field_problem("items.skip", f"there is no item {last}: the last one is {count - 1}")


def _json_problems(fields: Mapping[str, Json]) -> Iterator[FieldProblem]:
    inline = child(fields, "items").get("inline")
    for name, value, limit in (
        ("payload", fields.get("payload"), MAX_SHARED_PAYLOAD_BYTES),
        ("items.inline", inline, MAX_INLINE_BYTES),
    ):
        try:
            encode(value, what=name, max_bytes=limit)
        except TooManyBytesError as error:
            yield field_problem(name, f"{error}; {_TOO_MANY_BYTES_ADVICE[name]}")
        except FreeJsonError as error:
            yield field_problem(name, str(error))


def _limit_problems(submission: ArraySubmission) -> Iterator[FieldProblem]:
    if submission.max_failed is not None and submission.max_failed_percent is not None:
        yield field_problem("maxFailedPercent", "give maxFailed or maxFailedPercent, not both")


def _results_problems(submission: ArraySubmission) -> Iterator[FieldProblem]:
    if submission.results is None:
        return
    try:
        Address.folder(submission.results.uri)
    except AddressError as error:
        yield field_problem("results.uri", str(error))
