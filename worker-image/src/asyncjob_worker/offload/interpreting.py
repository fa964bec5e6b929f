"""From a payload's text to what the handler takes. Pure; what is secret is not repeated.

Messages of a schema's errors hold field names and sometimes values from the input (tags of a union,
what a validator says), and the names of fields may come from the input, too.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from asyncjob.app import Handler, Isolation
from asyncjob.errors import AsyncJobError
from asyncjob.free_json import FreeJsonError, parse
from asyncjob.json_types import Json


class PayloadError(AsyncJobError):
    """The payload cannot be read, and no retry would help."""


class SecretPayloadError(AsyncJobError):
    """The handler's own check of a secret payload failed."""


@dataclass(frozen=True, slots=True)
class PayloadText:
    """A payload as it was found; `origin` tells people where."""

    data: bytes
    origin: str
    is_secret: bool = False


def parse_payload(found: PayloadText, handler: Handler) -> object:
    """Return the payload as the handler wants it.

    Raises PayloadError if it is not JSON or, being secret, does not fit; else what the handler's
    schema raises.
    """
    value = _parse_json(found)
    if not found.is_secret:
        return handler.read_payload(value)
    try:
        # Here even for a handler with a process of its own: what that said would not be sifted.
        checked = handler.inside_process().read_payload(value)
    except ValidationError as error:
        raise PayloadError(
            f"{found.origin} does not fit: {_redacted_message(error, handler)}"
        ) from None
    except Exception as error:  # noqa: BLE001  # a validator of the handler's own may raise anything
        kind = type(error).__name__
        raise SecretPayloadError(f"{found.origin} fails the handler's own check: {kind}") from None
    return value if handler.isolation is Isolation.PROCESS else checked


def _parse_json(found: PayloadText) -> Json:
    try:
        return parse(found.data, what=found.origin)
    except FreeJsonError as error:
        if found.is_secret and "is not JSON" not in str(error):
            # Names of fields are content, too.
            raise PayloadError(
                f"{found.origin} is not JSON as it can be kept: nested too deep, or a number out "
                f"of range"
            ) from None
        raise PayloadError(f"{error}; plain text is JSON when it stands in quotes") from None


def _redacted_message(error: ValidationError, handler: Handler) -> str:
    known = _field_names(handler)
    parts = (
        f"{'.'.join(_redacted_step(step, known) for step in item['loc']) or 'payload'}: "
        f"{item['type']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return "; ".join(parts)


def _redacted_step(step: int | str, known: set[str]) -> str:
    return str(step) if isinstance(step, int) or step in known else "…"


def _field_names(handler: Handler) -> set[str]:
    """Return the names that the handler's schema has itself, wherever in it."""
    try:
        return set(_property_names(handler.payload_adapter.json_schema()))
    except Exception:  # noqa: BLE001  # not every type has a JSON schema; then no name is told
        return set()


def _property_names(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for item in schema for name in _property_names(item)]
    if not isinstance(schema, dict):
        return []
    own = schema.get("properties")
    names = list(own) if isinstance(own, dict) else []
    return names + [name for item in schema.values() for name in _property_names(item)]
