"""What makes two submissions the same: all that is asked for, but for names, keys and traces."""

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from asyncjob import names
from asyncjob.canonical import digest
from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.timestamps import format_timestamp, parse_timestamp
from asyncjob.rest.submission import Submission

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
