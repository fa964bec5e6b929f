"""Refusals, with the status code, reason and words that a real API server has for them."""

from collections.abc import Mapping
from typing import Any

from asyncjob.errors import AsyncJobError


class StatusError(AsyncJobError):
    """A request that is refused; what the client gets is a `Status`."""

    def __init__(
        self, code: int, reason: str, message: str, *, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.http_code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})

    def status(self) -> dict[str, Any]:
        """Return the body of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({"details": self.details} if self.details else {}),
            "code": self.http_code,
        }


class PolicyError(AsyncJobError):
    """A policy or CRD has what this API server does not understand."""


def bad_request(message: str) -> StatusError:
    """Return the refusal of a request that cannot be understood."""
    return StatusError(400, "BadRequest", message)


def not_found(resource: str, name: str) -> StatusError:
    """Return the answer about what is not there."""
    return StatusError(404, "NotFound", f'{resource} "{name}" not found')


def no_such_path() -> StatusError:
    """Return the answer to a path that no resource has."""
    return StatusError(404, "NotFound", "404 page not found")


def unauthorized() -> StatusError:
    """Return the answer to who is not known."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> StatusError:
    """Return the answer to who asks for a version that is no longer known."""
    return StatusError(410, "Expired", message)


def conflict(what: str, message: str) -> StatusError:
    """Return the refusal of a write that rests on what is no longer so."""
    return StatusError(409, "Conflict", f"Operation cannot be fulfilled on {what}: {message}")


def changed(what: str) -> StatusError:
    """Return the refusal of a write on condition of an older version."""
    words = "the object has been modified; please apply your changes to the latest version and"
    return conflict(what, f"{words} try again")


def invalid(what: str, errors: list[str]) -> StatusError:
    """Return the refusal of an object that its schema or rules do not allow."""
    listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return StatusError(422, "Invalid", f"{what} is invalid: {listed}")


def rejected() -> StatusError:
    """Return the refusal of a JSON Patch of which an operation failed, a test for instance."""
    words = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", words)
