"""The SDK's one error tree. Whether to try again is a property of the type.

The class docstring is the default message, so that an error raised bare still says something.
"""


class AsyncJobError(Exception):
    """Something in asyncjob failed."""

    retryable: bool = False
    """Whether the same call may succeed later without anyone changing anything."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").splitlines()[0])


class ConfigError(AsyncJobError):
    """The configuration cannot be used."""


class NoClusterError(ConfigError):
    """No Kubernetes cluster is configured or it cannot be reached."""


class ApiError(AsyncJobError):
    """The API server answered with an error.

    `status` is the HTTP code (0 where there was no answer), `reason` the API's machine word
    (`Conflict`, `NotFound`, `Invalid`, …).
    """

    def __init__(self, message: str | None = None, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class ConflictError(ApiError):
    """The object changed since it was read (409)."""


class AlreadyExistsError(ConflictError):
    """An object of this name exists (409)."""


class ObjectNotFoundError(ApiError):
    """No such object, or its type is not installed (404)."""


class ForbiddenError(ApiError):
    """The API server refuses this identity (403): by RBAC, or by an admission policy."""


class UnauthorizedError(ApiError):
    """The API server does not accept the token (401)."""


class InvalidError(ApiError):
    """The API server refuses the object or the transition (400, 422).

    So it does, in effect, with an object that is nested too deeply to be sent (`status` 0).
    """


class TooLargeError(ApiError):
    """The object is larger than the store can take (413, or the store's own refusal)."""


class ExpiredError(ApiError):
    """The resourceVersion is too old to continue from (410)."""


class ThrottledError(ApiError):
    """The API server asks to slow down (429); `retry_after` in seconds."""

    retryable = True

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int = 429,
        reason: str = "",
        retry_after: float = 1.0,
    ) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class UnknownOutcomeError(ApiError):
    """No usable answer (time-out, reset, 5xx): the write may or may not have taken effect."""

    retryable = True
