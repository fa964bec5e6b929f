"""Requests to the gateway, and which of them may be repeated when no answer comes."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from asyncjob.client.by_rest.problems import error_of
from asyncjob.client.errors import (
    CronJobNotFoundError,
    GatewayUnavailableError,
    JobNotFoundError,
    QueueFullError,
    QueueNotFoundError,
)
from asyncjob.client.ids import checked
from asyncjob.client.steps import Answer, Call, Patience, Steps
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json
from asyncjob.rest.wire import Ask

ROOT: Final = "/api/v1"

Params = tuple[tuple[str, str], ...]

M = TypeVar("M", bound=BaseModel)


def path(*parts: str) -> str:
    """Return the path below the API's root, each part quoted: an id is no path."""
    return "/".join([ROOT, *(quote(part, safe="") for part in parts)])


def at_job(job_id: str, *parts: str) -> str:
    """Return a path at a job; raises JobNotFoundError for what cannot be a job's id."""
    return path("jobs", checked(job_id, JobNotFoundError), *parts)


def at_queue(name: str, *parts: str) -> str:
    """Return a path at a queue; raises QueueNotFoundError for what cannot be a queue's name."""
    return path("queues", checked(name, QueueNotFoundError), *parts)


def at_cron_job(name: str, *parts: str) -> str:
    """Return a path at a schedule; raises CronJobNotFoundError for what cannot be its name."""
    return path("cron-jobs", checked(name, CronJobNotFoundError), *parts)


SUBMITTING: Final = (path("jobs"), path("jobs", "batch"))
"""Where jobs are posted to."""


def ask(call: Call, patience: float) -> Steps[Answer]:
    """Send a request; with 0 seconds of patience, once. Raises the clients' errors."""
    waiting = Patience(patience)
    while True:
        try:
            answer = yield call
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise error_of(answer, submits=call.method == "POST" and call.path in SUBMITTING)
        except QueueFullError:
            raise
        except AsyncJobError as error:
            yield from waiting.outlast(error)
        else:
            return answer


def ask_for(model: type[M], call: Call, patience: float) -> Steps[M]:
    """Send a request and return its answer as this model."""
    answer = yield from ask(call, patience)
    return read(model, answer.body)


def ask_for_all(model: type[M], call: Call, patience: float) -> Steps[list[M]]:
    """Send a request and return its answer as a list of this model."""
    answer = yield from ask(call, patience)
    try:
        return TypeAdapter(list[model]).validate_python(answer.body)  # type: ignore[valid-type]  # a type at run time
    except ValidationError as error:
        raise _foreign(model) from error


def read(model: type[M], body: Json) -> M:
    """Return a body as this model; raises GatewayUnavailableError where it is something else."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise _foreign(model) from error


def _foreign(model: type[BaseModel]) -> GatewayUnavailableError:
    return GatewayUnavailableError(
        f"the server's answer is no {model.__name__}; is the address that of a gateway?"
    )


def as_body(ask: Ask) -> Json:
    """Return what is sent of a request's body."""
    body: Mapping[str, Json] = ask.model_dump(mode="json", by_alias=True, exclude_none=True)
    return body


def as_params(ask: Ask) -> tuple[tuple[str, str], ...]:
    """Return a request's fields as parameters, a list's as several of one name."""
    fields: Mapping[str, Json] = ask.model_dump(mode="json", by_alias=True, exclude_none=True)
    return tuple(_flat(fields))


def _flat(fields: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            yield name, str(one)
