"""The options of `submit`, one for each field of a submission.

Documents and options make submissions together; all are validated before the first is sent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
from pydantic import ValidationError

from asyncjob.cli.command_classes import SectionedOption
from asyncjob.cli.durations import DurationParam, TimeParam
from asyncjob.cli.input.documents import Document
from asyncjob.cli.input.filters import Callback, combine_options
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.json_types import Json, JsonObject, child
from asyncjob.lifecycle.policy import Backoff
from asyncjob.rest.submission import Submission
from asyncjob.submission.errors import InvalidSubmissionError, from_validation_error
from asyncjob.submission.manifest import build_manifest

RETRY_SECTION: Final = "Retries"
PAYLOAD_SECTION: Final = "Payload from elsewhere"
REQUEST_SECTION: Final = "Request data for the handler"

_DURATION: Final = DurationParam()


def section_option(*flags: str, section: str = "", **details: Any) -> Any:
    """Return a decorator that adds an option, under a heading of its own if one is given."""
    return click.option(*flags, cls=SectionedOption, section=section, **details)


def _parse_pairs(
    _: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> Sequence[Any]:
    pairs = [value.partition("=") for value in values]
    for (key, sign, _text), value in zip(pairs, values, strict=True):
        if not key or not sign:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE", param=parameter)
    return [(key, text) for key, _, text in pairs]


def _parse_reference(
    _: click.Context, parameter: click.Parameter, value: str | None
) -> Mapping[str, str] | None:
    if value is None:
        return None
    name, sign, key = value.partition("/")
    if not (name and sign and key):
        raise click.BadParameter(f"{value!r} is not NAME/KEY", param=parameter)
    return {"name": name, "key": key}


KEY_VALUE: Final[dict[str, Any]] = {
    "multiple": True,
    "callback": _parse_pairs,
    "metavar": "KEY=VALUE",
}
_KEY_REFERENCE: Final[dict[str, Any]] = {
    "callback": _parse_reference,
    "metavar": "NAME/KEY",
    "section": PAYLOAD_SECTION,
}

RETRY_OPTIONS: Final = (
    section_option(
        "--max-retries", type=click.IntRange(0), section=RETRY_SECTION, help="Maximum retries."
    ),
    section_option(
        "--backoff",
        type=click.Choice([one.value for one in Backoff], case_sensitive=False),
        section=RETRY_SECTION,
        help="How the delay grows from retry to retry.",
    ),
    section_option(
        "--initial-delay", type=_DURATION, section=RETRY_SECTION, help="Before the first retry."
    ),
    section_option("--max-delay", type=_DURATION, section=RETRY_SECTION, help="Longest delay."),
    section_option(
        "--jitter", type=click.FloatRange(0, 1), section=RETRY_SECTION, help="Spread, 0 to 1."
    ),
    section_option(
        "--retry-on",
        multiple=True,
        metavar="CATEGORY",
        section=RETRY_SECTION,
        help="Retry only errors of this category; repeatable.",
    ),
    section_option(
        "--no-retry-on",
        multiple=True,
        metavar="CATEGORY",
        section=RETRY_SECTION,
        help="Never retry errors of this category; repeatable.",
    ),
    section_option(
        "--max-crashes", type=click.IntRange(0), section=RETRY_SECTION, help="Maximum crashes."
    ),
)
"""Options for a retry policy, of jobs and of the chunks of arrays."""

DEPENDS_ON_OPTION: Final = section_option(
    "--depends-on",
    multiple=True,
    metavar="[array/]NAME[:any]",
    help="Wait until this job or array has succeeded, with :any finished; repeatable.",
)
"""Of jobs and of arrays."""

submission_options: Final[Callable[[Callback], Callback]] = combine_options(
    [
        section_option("--name", type=NameParam(None), help="The job's id; else generated."),
        section_option(
            "--queue", "-q", metavar="QUEUE", help="Name of the queue.  [default: default]"
        ),
        section_option(
            "--label", "-l", "labels", help="Label of the job; repeatable.", **KEY_VALUE
        ),
        section_option(
            "--priority", "-p", type=click.IntRange(-1000, 1000), help="Higher starts first."
        ),
        section_option("--not-before", type=TimeParam(), help="Earliest start: +10m, or RFC 3339."),
        section_option(
            "--not-after", type=TimeParam(), help="Cancel the job if not started by then."
        ),
        section_option(
            "--deadline", type=_DURATION, help="Cancel the job if not finished after this time."
        ),
        DEPENDS_ON_OPTION,
        section_option(
            "--queue-timeout", type=_DURATION, help="Dead letter if not claimed within this time."
        ),
        section_option("--execution-timeout", type=_DURATION, help="Time limit of one attempt."),
        section_option(
            "--lease", type=_DURATION, help="Recover the job after this time without heartbeat."
        ),
        section_option(
            "--cancel-grace", type=_DURATION, help="Time for the handler to stop after a cancel."
        ),
        section_option(
            "--ttl", type=_DURATION, help="Delete the job this long after it has finished."
        ),
        section_option(
            "--idempotency-key", help="Submitting again with this key returns the same job."
        ),
        section_option(
            "--deduplication-id", help="Refuse while another unfinished job has this id."
        ),
        section_option("--concurrency-key", help="Key for the queue's maxConcurrencyPerKey."),
        section_option("--traceparent", help="W3C trace context."),
        section_option("--suspend", is_flag=True, help="Submit the job suspended."),
        *RETRY_OPTIONS,
        section_option(
            "--payload-secret", help="A key of a Secret that holds JSON.", **_KEY_REFERENCE
        ),
        section_option(
            "--payload-config-map", help="A key of a ConfigMap that holds JSON.", **_KEY_REFERENCE
        ),
        section_option(
            "--payload-uri", section=PAYLOAD_SECTION, help="A JSON object in a store: s3://…"
        ),
        section_option(
            "--header", "headers", section=REQUEST_SECTION, help="Repeatable.", **KEY_VALUE
        ),
        section_option(
            "--route-param",
            "route_params",
            section=REQUEST_SECTION,
            help="Repeatable.",
            **KEY_VALUE,
        ),
        section_option(
            "--query-param",
            "query_params",
            section=REQUEST_SECTION,
            help="Repeatable.",
            **KEY_VALUE,
        ),
    ]
)

_FIELDS: Final = {
    "name": "name",
    "queue": "queue",
    "priority": "priority",
    "not_before": "notBefore",
    "not_after": "notAfter",
    "deadline": "deadlineSeconds",
    "queue_timeout": "queueTimeoutSeconds",
    "execution_timeout": "executionTimeoutSeconds",
    "lease": "leaseDurationSeconds",
    "cancel_grace": "cancelGraceSeconds",
    "ttl": "ttlSecondsAfterFinished",
    "idempotency_key": "idempotencyKey",
    "deduplication_id": "deduplicationId",
    "concurrency_key": "concurrencyKey",
    "traceparent": "traceparent",
    "suspend": "suspend",
}
_RETRY_FIELDS: Final = {
    "max_retries": "maxRetries",
    "backoff": "backoff",
    "initial_delay": "initialDelaySeconds",
    "max_delay": "maxDelaySeconds",
    "jitter": "jitter",
    "retry_on": "retryOn",
    "no_retry_on": "noRetryOn",
    "max_crashes": "maxCrashes",
}
_PAYLOAD_FIELDS: Final = {
    "payload_secret": "secretKeyRef",
    "payload_config_map": "configMapKeyRef",
    "payload_uri": "uri",
}
_REQUEST_FIELDS: Final = {
    "headers": "headers",
    "route_params": "routeParams",
    "query_params": "queryParams",
}


def submission_fields(given: Mapping[str, Any]) -> dict[str, Json]:
    """Return the fields of a Submission, by the names of JSON, that the options set."""
    request = {
        name: _group_values(given[flag])
        for flag, name in _REQUEST_FIELDS.items()
        if given.get(flag)
    }
    parts: dict[str, Json] = {
        **given_fields(given, _FIELDS),
        "labels": dict(given.get("labels") or ()),
        "dependsOn": [parse_dependency(one) for one in given.get("depends_on") or ()],
        "retryPolicy": retry_fields(given),
        "payloadFrom": given_fields(given, _PAYLOAD_FIELDS),
        "request": request,
    }
    return {name: value for name, value in parts.items() if value not in ({}, [])}


def retry_fields(given: Mapping[str, Any]) -> dict[str, Json]:
    """Return the fields of a retry policy that the options set."""
    return given_fields(given, _RETRY_FIELDS)


def given_fields(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Json]:
    """Return what is set; an empty tuple and a flag that is off are not."""
    there = {name: given.get(flag) for flag, name in names.items()}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in there.items()
        if value is not None and value is not False and value != ()
    }


def _group_values(pairs: Sequence[tuple[str, str]]) -> dict[str, Json]:
    values: dict[str, list[str]] = {}
    for key, text in pairs:
        values.setdefault(key, []).append(text)
    return dict(values)


_ARRAY_WORDS: Final = frozenset({"array", "aa", "asyncarray", "asyncarrays"})
"""What stands before the name of an array, also as `kubectl get -o name` prints it."""


def parse_dependency(text: str) -> dict[str, Json]:
    """Return the dependency that `JOB`, `JOB:any`, `array/NAME` or `array/NAME:any` means."""
    kind, _, rest = text.rpartition("/")
    name, _, outcome = rest.partition(":")
    field = "array" if kind.partition(".")[0].lower() in _ARRAY_WORDS else "name"
    return {field: name, **({"outcome": outcome.capitalize()} if outcome else {})}


MERGED_FIELDS: Final = ("labels", "retryPolicy")
"""Of these an option sets one part, and leaves the others as the file has them."""

SINGLE_JOB_OPTIONS: Final = {"name": "--name", "idempotencyKey": "--idempotency-key"}
"""Options that are valid for a single job only."""

MAX_REPORTED_MISTAKES: Final = 10
"""Maximum number of mistakes reported at once."""


@dataclass(frozen=True, slots=True)
class PreparedSubmission:
    """A submission, and where it comes from."""

    location: str
    submission: Submission


class InvalidInputError(ValueError):
    """What is to be submitted cannot be; a line for each mistake."""


def payload_documents(kind: str, payloads: Iterable[Document]) -> list[Document]:
    """Return the jobs of a type, one for each payload."""
    return [Document(one.location, {"type": kind, "payload": one.value}) for one in payloads]


def prepare_submissions(jobs: Iterable[Document], options: JsonObject) -> list[PreparedSubmission]:
    """Return the submissions; options win over what files say. Raises MistakesError."""
    documents = list(jobs)
    _check_single_job_options(documents, options)
    made, mistakes = [], []
    for document in documents:
        try:
            made.append(PreparedSubmission(document.location, _build_submission(document, options)))
        except InvalidSubmissionError as error:
            mistakes.append(f"{document.location}: {error}" if document.location else str(error))
    if mistakes:
        more = len(mistakes) - MAX_REPORTED_MISTAKES
        rest = [f"… and {more} more"] if more > 0 else []
        raise InvalidInputError("\n".join([*mistakes[:MAX_REPORTED_MISTAKES], *rest]))
    return made


def _check_single_job_options(documents: list[Document], options: JsonObject) -> None:
    for field, flag in SINGLE_JOB_OPTIONS.items():
        if field in options and len(documents) > 1:
            raise InvalidInputError(f"{flag} is for one job, not {len(documents)}: leave it out")


def _build_submission(document: Document, options: JsonObject) -> Submission:
    value = document.value if isinstance(document.value, Mapping) else {}
    try:
        made = Submission.model_validate(merge_options(value, options))
    except ValidationError as error:
        raise from_validation_error(error) from error
    build_manifest(made, "default", new_id="checked")  # checks what the schema does not
    return made


def merge_options(fields: JsonObject, options: JsonObject) -> dict[str, Json]:
    """Return the fields with the options over them."""
    merged = {
        name: {**child(fields, name), **child(options, name)}
        for name in MERGED_FIELDS
        if name in options
    }
    return {**fields, **options, **merged}
