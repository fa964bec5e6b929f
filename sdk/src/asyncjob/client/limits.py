"""Numbers that a caller gives, looked at before they are sent: the same error wherever jobs are."""

from asyncjob.client.errors import InvalidRequestError


def within(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return the number; raises InvalidRequestError that names it where it is out of range."""
    if isinstance(value, int) and least <= value and (most is None or value <= most):
        return value
    range_ = f"from {least} on" if most is None else f"from {least} to {most}"
    raise InvalidRequestError(f"{name}: {value!r} is no whole number {range_}")
