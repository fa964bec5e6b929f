"""Numbers that a caller gives, looked at before they are sent: the same error wherever jobs are."""

from pydantic import ValidationError

from asyncjob.client.errors import InvalidRequestError
from asyncjob.models.cron import MAX_ACTIVE_RUNS, MAX_RUNS
from asyncjob.rest.surroundings import BackfillAsk


def check_range(name: str, value: object, minimum: int, maximum: int | None = None) -> int:
    """Return the number; raises InvalidRequestError that names it where it is out of range."""
    if isinstance(value, int) and minimum <= value and (maximum is None or value <= maximum):
        return value
    range_ = f"from {minimum} on" if maximum is None else f"from {minimum} to {maximum}"
    raise InvalidRequestError(f"{name}: {value!r} is no whole number {range_}")


def build_backfill(
    start: str, end: str, *, limit: int, max_active: int, replace: bool
) -> BackfillAsk:
    """Return what is asked of a schedule; raises InvalidRequestError that names what is wrong."""
    try:
        return BackfillAsk.model_validate(
            {
                "from": start,
                "to": end,
                "limit": check_range("limit", limit, 1, MAX_RUNS),
                "maxActive": check_range("max_active", max_active, 1, MAX_ACTIVE_RUNS),
                "replace": replace,
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}" if where else first["msg"]
        raise InvalidRequestError(said) from error
