"""Numbers that a caller gives, looked at before they are sent: the same error wherever jobs are."""

from pydantic import ValidationError

from asyncjob.client.errors import InvalidRequestError
from asyncjob.models.cron import MAX_ACTIVE, RUNS
from asyncjob.rest.surroundings import BackfillAsk


def within(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return the number; raises InvalidRequestError that names it where it is out of range."""
    if isinstance(value, int) and least <= value and (most is None or value <= most):
        return value
    range_ = f"from {least} on" if most is None else f"from {least} to {most}"
    raise InvalidRequestError(f"{name}: {value!r} is no whole number {range_}")


def backfill_ask(
    start: str, end: str, *, limit: int, max_active: int, replace: bool
) -> BackfillAsk:
    """Return what is asked of a schedule; raises InvalidRequestError that names what is wrong."""
    try:
        return BackfillAsk.model_validate(
            {
                "from": start,
                "to": end,
                "limit": within("limit", limit, 1, RUNS),
                "maxActive": within("max_active", max_active, 1, MAX_ACTIVE),
                "replace": replace,
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}" if where else first["msg"]
        raise InvalidRequestError(said) from error
