"""What of a submission's HTTP request is handed to the job's handler: by allow-list only."""

from fastapi import Request
from pydantic import ValidationError

from asyncjob.models.spec import RequestData
from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.settings import GatewaySettings


def forwarded_request(request: Request, settings: GatewaySettings) -> RequestData | None:
    """Return the headers to hand on, None if there are none.

    Raises RefusedError where they do not fit: 16 values of 4096 characters each.
    """
    headers = {
        name: request.headers.getlist(name)
        for name in settings.forward_headers
        if name in request.headers
    }
    try:
        return RequestData(headers=headers) if headers else None
    except ValidationError as error:
        found = [
            FieldProblem(field=f"header.{one['loc'][1]}", detail=one["msg"])
            for one in error.errors(include_url=False, include_input=False)
        ]
        detail = f"{found[0].field}: {found[0].detail}"
        raise RefusedError(kinds.INVALID, detail, errors=found) from error
