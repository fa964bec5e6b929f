"""The SDK's one error tree. Whether to try again is a property of the type.

The class docstring is the default message, so that an error raised bare still says something.
"""

import re
from typing import Final

_RULE_ID: Final = re.compile(r"\(([a-z]+(?:-[a-z]+)*(?:\.[A-Za-z-]+)+)\)\W*$")
"""How the API server's refusal by a rule ends."""

_CODES_OF_RULES: Final = ("forbidden", "invalid")
"""What a refusal by a rule is, by its HTTP status."""

_PROGRAM: Final = "asyncjob"


class AsyncJobError(Exception):
    """Something in asyncjob failed."""

    code: str = "unexpected"
    """What `asyncjob explain` knows the error by."""

    retryable: bool = False
    """Whether the same call may succeed later without anyone changing anything."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").splitlines()[0])


class ConfigError(AsyncJobError):
    """The configuration cannot be used."""

    code = "configuration"


class NoClusterError(ConfigError):
    """No Kubernetes cluster is configured or it cannot be reached."""

    code = "no-cluster"


class PortTakenError(ConfigError):
    """A port that is to be served cannot be opened."""

    code = "port-taken"

    @classmethod
    def of(cls, error: OSError, what: str, host: str, port: int, way_out: str) -> "PortTakenError":
        """Return the error that names the port, why it cannot be opened, and what to do."""
        reason = error.strerror or error
        return cls(f"cannot serve {what} on {host} port {port}: {reason}; {way_out}")


class ApiError(AsyncJobError):
    """The API server answered with an error.

    `status` is the HTTP code (0 where there was no answer), `reason` the API's machine word
    (`Conflict`, `NotFound`, `Invalid`, …), `retry_after` the seconds after which to come again,
    if it says so.
    """

    code = "api-server"

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class ConflictError(ApiError):
    """The object changed since it was read (409)."""

    code = "conflict"


class AlreadyExistsError(ConflictError):
    """An object of this name exists (409)."""


class ObjectNotFoundError(ApiError):
    """No such object, or its type is not installed (404)."""

    code = "not-found"


class ForbiddenError(ApiError):
    """The API server refuses this identity (403): by RBAC, or by an admission policy."""

    code = "forbidden"


class UnauthorizedError(ApiError):
    """The API server does not accept the token (401)."""

    code = "unauthenticated"


class InvalidError(ApiError):
    """The API server refuses the object or the transition (400, 422).

    So it does, in effect, with an object that is nested too deeply to be sent (`status` 0).
    """

    code = "invalid"


class TooLargeError(ApiError):
    """The object is larger than the store can take (413, or the store's own refusal)."""

    code = "too-large"


class ExpiredError(ApiError):
    """The resourceVersion is too old to continue from (410)."""


class ThrottledError(ApiError):
    """The API server asks to slow down (429); `retry_after` in seconds."""

    code = "throttled"

    retryable = True

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int = 429,
        reason: str = "",
        retry_after: float = 1.0,
    ) -> None:
        super().__init__(message, status=status, reason=reason, retry_after=retry_after)


class UnknownOutcomeError(ApiError):
    """No usable answer (time-out, reset, 5xx): the write may or may not have taken effect."""

    code = "unavailable"

    retryable = True


def code_of(error: AsyncJobError) -> str:
    """Return what to look the error up by: the rule that refuses the request, else its code."""
    rule = _RULE_ID.search(str(error)) if error.code in _CODES_OF_RULES else None
    return rule[1] if rule else error.code


def hint(error: AsyncJobError, program: str = _PROGRAM) -> str:
    """Return the command that explains the error, as messages end with it."""
    return explain_command(code_of(error), program)


def message_of(error: AsyncJobError) -> str:
    """Return the error in one line, with the command that explains it."""
    return explained(" ".join(str(error).split()), code_of(error))


def explained(text: str, code: str) -> str:
    """Return a text with the command that explains its code, as all messages end."""
    return f"{text} ({explain_command(code)})"


def explain_command(code: str, program: str = _PROGRAM) -> str:
    """Return the command that explains a code."""
    return f"{program} explain {code}"
