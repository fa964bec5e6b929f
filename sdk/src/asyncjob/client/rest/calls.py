"""The gateway as a client asks it: paths, retries, and answers read as models."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from asyncjob.client.connection import Answer, Call, Connection, RetryBudget
from asyncjob.client.errors import (
    ArrayNotFoundError,
    CronJobNotFoundError,
    GatewayUnavailableError,
    JobNotFoundError,
    QueueFullError,
    QueueNotFoundError,
)
from asyncjob.client.options import check_name
from asyncjob.client.rest.errors import error_from_answer
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json
from asyncjob.rest.base import RequestModel

API_ROOT: Final = "/api/v1"

ParamPairs = tuple[tuple[str, str], ...]

M = TypeVar("M", bound=BaseModel)


def api_path(*parts: str) -> str:
    """Return the path below the API's root, each part quoted: an id is no path."""
    return "/".join([API_ROOT, *(quote(part, safe="") for part in parts)])


def job_path(job_id: str, *parts: str) -> str:
    """Return a path at a job; raises JobNotFoundError for what cannot be a job's id."""
    return api_path("jobs", check_name(job_id, JobNotFoundError), *parts)


def queue_path(name: str, *parts: str) -> str:
    """Return a path at a queue; raises QueueNotFoundError for what cannot be a queue's name."""
    return api_path("queues", check_name(name, QueueNotFoundError), *parts)


def cron_job_path(name: str, *parts: str) -> str:
    """Return a path at a cron job; raises CronJobNotFoundError for what cannot be its name."""
    return api_path("cron-jobs", check_name(name, CronJobNotFoundError), *parts)


def array_path(name: str, *parts: str) -> str:
    """Return a path at an array; raises ArrayNotFoundError for what cannot be its name."""
    return api_path("arrays", check_name(name, ArrayNotFoundError), *parts)


SUBMIT_PATHS: Final = (api_path("jobs"), api_path("jobs", "batch"), api_path("arrays"))
"""Where jobs and arrays are posted to."""


@dataclass(frozen=True, slots=True)
class GatewayCalls:
    """The gateway as one client asks it. Raises the clients' errors."""

    connection: Connection

    async def send(self, call: Call, *, patience: float) -> Answer:
        """Send a request until it is answered, for `patience` seconds; with 0, once."""
        waiting = RetryBudget(self.connection, patience)
        while True:
            try:
                answer = await self.connection.send(call)
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    submits = call.method == "POST" and call.path in SUBMIT_PATHS
                    raise error_from_answer(answer, submits=submits)
            except QueueFullError:
                raise
            except AsyncJobError as error:
                await waiting.wait_or_raise(error)
            else:
                return answer

    async def request_model(self, model: type[M], call: Call, *, patience: float) -> M:
        """Send a request and return its answer as this model."""
        return read_model(model, (await self.send(call, patience=patience)).body)

    async def request_list(self, model: type[M], call: Call, *, patience: float) -> list[M]:
        """Send a request and return its answer as a list of this model."""
        answer = await self.send(call, patience=patience)
        try:
            return TypeAdapter(list[model]).validate_python(answer.body)  # type: ignore[valid-type]  # a type at run time
        except ValidationError as error:
            raise _not_a_gateway_error(model) from error


def read_model(model: type[M], body: Json) -> M:
    """Return a body as this model; raises GatewayUnavailableError where it is something else."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise _not_a_gateway_error(model) from error


def _not_a_gateway_error(model: type[BaseModel]) -> GatewayUnavailableError:
    return GatewayUnavailableError(
        f"the server's answer is not a {model.__name__}; is the address that of a gateway?"
    )


def to_body(request: RequestModel) -> Json:
    """Return what is sent of a request's body."""
    body: Mapping[str, Json] = request.model_dump(mode="json", by_alias=True, exclude_none=True)
    return body


def to_params(request: RequestModel) -> tuple[tuple[str, str], ...]:
    """Return a request's fields as parameters, a list's as several of one name."""
    fields: Mapping[str, Json] = request.model_dump(mode="json", by_alias=True, exclude_none=True)
    return tuple(_flatten(fields))


def _flatten(fields: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            yield name, str(one)
