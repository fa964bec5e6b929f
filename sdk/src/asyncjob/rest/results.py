"""What a job's handler returned, as REST gives it to those who may read it."""

from asyncjob.models.base import FreeJson
from asyncjob.models.status import ResultReference
from asyncjob.rest.wire import ResponseModel


class Result(ResponseModel):
    """One of the two: the result itself, or where a large one lies."""

    result: FreeJson | None = None
    """What the handler returned: any JSON."""

    result_ref: ResultReference | None = None
    """Where it lies, if it was too large to be kept in the job."""
