"""What makes two submissions the same: all that is asked for, but for names, keys and traces."""

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from asyncjob import names
from asyncjob.canonical import digest
from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.timestamps import from_text, to_text
from asyncjob.rest.submission import Submission

_APART: Final = ("name", "idempotencyKey", "traceparent")
_TIMES: Final = ("notBefore", "notAfter")
_LENGTH: Final = 32
_OWN: Final = f"{names.GROUP}/"


def asked(submission: Submission) -> dict[str, Json]:
    """Return the fields that the submission sets, by their names in JSON."""
    fields: dict[str, Json] = submission.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"payload"}
    )
    if submission.payload is not None:
        fields["payload"] = submission.payload  # as it is: a dump would make NaN null
    return {name: value for name, value in fields.items() if (name, value) != ("suspend", False)}


def content_of(submission: Submission) -> str:
    """Return what tells this submission from others."""
    fields = {name: value for name, value in asked(submission).items() if name not in _APART}
    moments: dict[str, Json] = {name: _moment(fields[name]) for name in _TIMES if name in fields}
    return digest({**fields, **moments, "labels": fields.get("labels") or None}, _LENGTH)


def content_of_job(job: JsonObject) -> str | None:
    """Return what tells the submission that an existing job came from; None if it came from none.

    A job that somebody applied with kubectl has no such annotation: it is worked out from its spec,
    in which priority and suspend may have been changed since.
    """
    annotations = child(child(job, "metadata"), "annotations")
    return text(annotations, names.CONTENT_ANNOTATION) or _worked_out(job)


def _worked_out(job: JsonObject) -> str | None:
    labels = child(child(job, "metadata"), "labels")
    own: Mapping[str, Json] = {
        name: value for name, value in labels.items() if not name.startswith(_OWN)
    }
    try:
        return content_of(Submission.model_validate({**child(job, "spec"), "labels": own}))
    except (ValidationError, ValueError):  # ValueError: a time that is none
        return None


def _moment(value: Json) -> str:
    return to_text(from_text(str(value)))
