"""The options of `array submit`, and what they and a file of items make: one ArraySubmission.

All is checked before anything is sent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
from pydantic import ValidationError

from asyncjob.cli.durations import DurationParam, TimeParam
from asyncjob.cli.input.documents import Document, DocumentError
from asyncjob.cli.input.filters import Callback, combine_options
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.cli.input.submissions import (
    DEPENDS_ON_OPTION,
    KEY_VALUE,
    RETRY_OPTIONS,
    given_fields,
    parse_dependency,
    retry_fields,
    section_option,
)
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.chunks import (
    DEFAULT_ITEM_RETRIES,
    DEFAULT_PARALLELISM,
)
from asyncjob.lifecycle.arrays.records import RecordFormat
from asyncjob.models.array import MAX_INLINE_ITEMS, MAX_ITEMS
from asyncjob.rest.arrays import ArraySubmission
from asyncjob.submission.arrays import build_array_manifest
from asyncjob.submission.errors import from_validation_error

ITEMS_SECTION: Final = "Items (exactly one)"
LIMIT_SECTION: Final = "How it runs"

WAY_OUT: Final = (
    "put the items into a file that workers may read, and name it with --from URI in place of -f"
)

_DURATION: Final = DurationParam()


class MaxFailedParam(click.ParamType[Mapping[str, int]]):
    """A number of items, or a share of all: `100`, `5%`."""

    name = "number or percent"

    def convert(
        self,
        value: str | Mapping[str, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Mapping[str, int]:
        """Return the field that it sets."""
        if not isinstance(value, str):
            return value
        number = value.removesuffix("%")
        if not (number.isascii() and number.isdigit()):
            wrong = f"{value!r} is neither a number nor a percentage: write 100 or 5%"
            self.fail(wrong, param, ctx)
        field = "maxFailedPercent" if value.endswith("%") else "maxFailed"
        return {field: int(number)}

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        """Return what stands for the value in the help."""
        return "NUMBER|PERCENT%"


def _how(*flags: str, **details: Any) -> Any:
    return section_option(*flags, section=LIMIT_SECTION, **details)


def _number(flag: str, text: str, default: int) -> Any:
    """Return an option whose range the model checks."""
    return _how(flag, type=int, metavar="N", help=f"{text}  [default: {default}]")


array_options: Final[Callable[[Callback], Callback]] = combine_options(
    [
        section_option(
            "--count",
            section=ITEMS_SECTION,
            type=click.IntRange(1, MAX_ITEMS),
            metavar="N",
            help="Number of items; the handler gets their numbers, from 0.",
        ),
        section_option(
            "--file",
            "-f",
            section=ITEMS_SECTION,
            metavar="FILE",
            help="JSON lines, or a list as JSON or YAML; - for stdin. At most 10,000 items and "
            "256 KiB.",
        ),
        section_option(
            "--from",
            "uri",
            section=ITEMS_SECTION,
            metavar="URI",
            help="JSON lines or CSV in a store that workers may read: s3://…; of any size.",
        ),
        section_option(
            "--format",
            "record_format",
            section=ITEMS_SECTION,
            type=click.Choice([one.value for one in RecordFormat], case_sensitive=False),
            help="Format of --from, where its name does not say it.",
        ),
        section_option(
            "--skip",
            section=LIMIT_SECTION,
            metavar="ITEMS",
            help="Numbers of items that are done already: 0-399,402.",
        ),
        section_option("--name", type=NameParam(None), help="The array's name; else generated."),
        section_option(
            "--queue", "-q", metavar="QUEUE", help="Queue of the chunks.  [default: default]"
        ),
        section_option("--label", "-l", "labels", help="Label; repeatable.", **KEY_VALUE),
        section_option(
            "--priority", "-p", type=click.IntRange(-1000, 1000), help="Higher starts first."
        ),
        section_option("--not-before", type=TimeParam(), help="Earliest start: +10m, or RFC 3339."),
        DEPENDS_ON_OPTION,
        section_option("--ttl", type=_DURATION, help="Delete it this long after it has ended."),
        section_option("--suspend", is_flag=True, help="Submit the array suspended."),
        _how("--chunk-size", type=int, metavar="N", help="Items in a chunk.  [default: adapts]"),
        _number("--parallelism", "Unfinished chunks.", DEFAULT_PARALLELISM),
        _number("--item-retries", "Retries of an item.", DEFAULT_ITEM_RETRIES),
        _how("--item-timeout", type=_DURATION, help="Time limit of one try of an item."),
        _how(
            "--max-failed",
            type=MaxFailedParam(),
            help="Failed items with which it still succeeds: 100, 5%.",
        ),
        _how(
            "--results",
            metavar="URI",
            help="Folder that what the items return goes to: s3://bucket/jobs/results/NAMESPACE.",
        ),
        _how("--execution-timeout", type=_DURATION, help="Time limit of an attempt of a chunk."),
        _how("--queue-timeout", type=_DURATION, help="Replace a chunk not claimed by then."),
        _how("--lease", type=_DURATION, help="Recover a chunk this long after a heartbeat."),
        _how("--cancel-grace", type=_DURATION, help="Time for a chunk to stop after a cancel."),
        *RETRY_OPTIONS,
    ]
)

_FIELDS: Final = {
    "name": "name",
    "queue": "queue",
    "priority": "priority",
    "not_before": "notBefore",
    "chunk_size": "chunkSize",
    "parallelism": "parallelism",
    "item_retries": "itemRetries",
    "item_timeout": "itemTimeoutSeconds",
    "execution_timeout": "executionTimeoutSeconds",
    "queue_timeout": "queueTimeoutSeconds",
    "lease": "leaseDurationSeconds",
    "cancel_grace": "cancelGraceSeconds",
    "ttl": "ttlSecondsAfterFinished",
    "suspend": "suspend",
}


def array_submission(
    kind: str, items: Mapping[str, Json], payload: Json, options: Mapping[str, Any]
) -> ArraySubmission:
    """Return the submission; raises InvalidSubmissionError that names each field at fault."""
    fields = {
        "type": kind,
        "items": items,
        "payload": payload,
        "labels": dict(options.get("labels") or ()),
        "dependsOn": [parse_dependency(one) for one in options.get("depends_on") or ()],
        "retryPolicy": retry_fields(options),
        "results": {"uri": options["results"]} if options.get("results") else None,
        **given_fields(options, _FIELDS),
        **(options.get("max_failed") or {}),
    }
    given = {name: value for name, value in fields.items() if value not in (None, {}, [])}
    try:
        made = ArraySubmission.model_validate(given)
    except ValidationError as error:
        raise from_validation_error(error) from error
    build_array_manifest(made, "default", new_id="checked")  # checks what the schema does not
    return made


def inline_items(location: str, documents: Sequence[Document]) -> list[Json]:
    """Return the items of a file: the elements of its one list, or else each of its values.

    Raises DocumentError for what is too many, or text that is not JSON.
    """
    found = [one.value for one in documents]
    if len(found) == 1:
        only = found[0]
        if isinstance(only, str):
            raise DocumentError(
                f"{location}: a text, not items: write a JSON value per line (jq -R . FILE makes "
                "JSON of lines of text)"
            )
        found = only if isinstance(only, list) else found
    if not found:
        raise DocumentError(f"{location}: items.inline: an array has at least one item")
    if len(found) > MAX_INLINE_ITEMS:
        raise DocumentError(
            f"{location}: items.inline: {len(found):,} items are more than {MAX_INLINE_ITEMS:,}; "
            f"{WAY_OUT}"
        )
    return found
