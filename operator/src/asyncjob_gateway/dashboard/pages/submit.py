"""Submitting a job by a form.

From its fields to a submission, or back to the form with what is wrong; what was typed is never
lost.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob.client.errors import InTheWayError, InvalidSubmissionError
from asyncjob.free_json import FreeJsonError, parse
from asyncjob.rest.submission import Submission
from asyncjob.submission.validation import read_submission
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.layout import render_page, see_other
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page_context import PageContext, form_context, page_context
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.security import nonempty_fields
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.strict_json import MAX_VALUES

TEXT_FIELDS: Final = {
    "type": "type",
    "queue": "queue",
    "name": "name",
    "notBefore": "notBefore",
    "idempotencyKey": "idempotencyKey",
    "deduplicationId": "deduplicationId",
    "concurrencyKey": "concurrencyKey",
}
NUMBER_FIELDS: Final = (
    "priority",
    "executionTimeoutSeconds",
    "deadlineSeconds",
    "ttlSecondsAfterFinished",
)
FIELDS: Final = (*TEXT_FIELDS, *NUMBER_FIELDS, "maxRetries", "labels", "payload")

_NUMBER_PATTERN: Final = re.compile(r"-?[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class SubmitForm:
    """What was typed, and what is wrong with it, field by field; `problem` is about the whole."""

    given: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def more(self) -> bool:
        """Whether one of the rarer fields is filled in, or wrong."""
        first = {"type", "queue", "payload"}
        return bool((set(self.given) | set(self.errors)) - first)


def read_submit_form(given: Mapping[str, str]) -> Submission | SubmitForm:
    """Return the submission, or the form again with what is wrong."""
    fields: dict[str, object] = {name: given[name] for name in TEXT_FIELDS if name in given}
    errors: dict[str, str] = {}
    for name in (*NUMBER_FIELDS, "maxRetries"):
        if name in given and not _NUMBER_PATTERN.fullmatch(given[name]):
            errors[name] = "a whole number"
        elif name in given and name != "maxRetries":
            fields[name] = int(given[name])
    if "maxRetries" in given and "maxRetries" not in errors:
        fields["retryPolicy"] = {"maxRetries": int(given["maxRetries"])}
    _read_labels(given, fields, errors)
    _read_payload(given, fields, errors)
    return SubmitForm(given, errors) if errors else _validated(given, fields)


def _validated(given: Mapping[str, str], fields: Mapping[str, object]) -> Submission | SubmitForm:
    try:
        return read_submission(fields)
    except InvalidSubmissionError as error:
        return with_errors(given, error)


def with_errors(given: Mapping[str, str], error: InvalidSubmissionError) -> SubmitForm:
    """Return the form with what the submission was refused for."""
    errors = {_input_name(one.field): one.detail for one in error.errors}
    known = {name: text for name, text in errors.items() if name in FIELDS}
    return SubmitForm(given, known, "" if known and len(known) == len(errors) else str(error))


def _input_name(field: str) -> str:
    """Return the name of the input that a field comes from."""
    return field.removeprefix("retryPolicy.").split(".", maxsplit=1)[0]


def _read_labels(
    given: Mapping[str, str], fields: dict[str, object], errors: dict[str, str]
) -> None:
    if "labels" not in given:
        return
    pairs = [part.strip().partition("=") for part in given["labels"].split(",") if part.strip()]
    if all(name.strip() and equals for name, equals, _ in pairs):
        fields["labels"] = {name.strip(): value.strip() for name, _, value in pairs}
    else:
        errors["labels"] = "name=value, several with commas between them"


def _read_payload(
    given: Mapping[str, str], fields: dict[str, object], errors: dict[str, str]
) -> None:
    if "payload" not in given:
        return
    try:
        data = given["payload"].encode()
        fields["payload"] = parse(data, what="payload", max_values=MAX_VALUES, unique_keys=True)
    except (FreeJsonError, UnicodeEncodeError) as error:
        errors["payload"] = str(error)


router = APIRouter(prefix=f"{PREFIX}/submit", route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
async def show_submit_form(request: Request) -> Response:
    """Show the form; the address may fill fields in."""
    ctx = await page_context(request, rights.SUBMIT_JOBS)
    query = request.query_params
    given = {name: query[name] for name in FIELDS if query.get(name)}
    return _submit_page(ctx, SubmitForm(given), 200)


@router.post("")
async def submit(request: Request) -> Response:
    """Submit and show the job, or the form again with what is wrong."""
    ctx, form = await form_context(request, rights.SUBMIT_JOBS)
    given = {name: text for name, text in nonempty_fields(form).items() if name in FIELDS}
    read = read_submit_form(given)
    if isinstance(read, SubmitForm):
        return _submit_page(ctx, read, 422)
    try:
        done = await ctx.request_context.operations.submit(read)
    except InvalidSubmissionError as error:
        return _submit_page(ctx, with_errors(given, error), 422)
    except (InTheWayError, RefusedError) as error:
        return _submit_page(ctx, SubmitForm(given, {}, str(error)), 409)
    return see_other(ctx.links.job(done.id, {"did": "submitted"}))


def _submit_page(ctx: PageContext, view: SubmitForm, status: int) -> Response:
    known = ctx.request_context.cache
    queues = [queue.name for queue in known.queues(ctx.now)] if ctx.allowed.list_queues else []
    types = {kind for worker in known.workers(ctx.now) for kind in worker.types}
    shown = sorted(types) if ctx.allowed.list_queues else []
    return render_page("submit.html", ctx.frame, view, status, queues=queues, types=shown)
