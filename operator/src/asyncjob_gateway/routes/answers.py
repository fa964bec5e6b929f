"""Answers as JSON, written once: models are checked where they are made."""

from collections.abc import Mapping, Sequence

import orjson
from pydantic import BaseModel
from starlette.responses import Response

from asyncjob.json_types import Json

JSON_MEDIA_TYPE = "application/json"


def json_response(
    model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer that is one object."""
    body = model.model_dump_json(by_alias=True)
    return Response(body, status, headers, JSON_MEDIA_TYPE)


def json_list_response(models: Sequence[BaseModel]) -> Response:
    """Return an answer that is a list of objects."""
    dumped: list[Json] = [model.model_dump(mode="json", by_alias=True) for model in models]
    return Response(orjson.dumps(dumped), 200, None, JSON_MEDIA_TYPE)
