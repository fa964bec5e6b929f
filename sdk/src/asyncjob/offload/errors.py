"""Errors of object stores.

Those that a job can fail with also derive from the built-in error of their category, so that
`retryOn: [NotFound]` includes an object that is missing.
"""

from asyncjob.errors import AsyncJobError, ConfigError


class OffloadError(AsyncJobError):
    """An object could not be read from a store or written to it."""

    code = "store"


class AddressError(OffloadError):
    """The address cannot be used, or lies outside of what is allowed."""


class ObjectMissingError(OffloadError, LookupError):
    """There is no such object, or not even its bucket."""


class StoreForbiddenError(OffloadError, PermissionError):
    """The store does not let us, or does not know us."""


class StoreRefusedError(OffloadError):
    """The store, or its driver, says that this can never work."""


class ObjectTooLargeError(OffloadError):
    """The object is larger than the limit."""


class IntegrityError(OffloadError):
    """The object is not the one that was written."""


class StoreUnavailableError(OffloadError):
    """The store did not answer, or had a failure of its own."""

    retryable = True


class DriverMissingError(ConfigError):
    """No driver is installed for the store."""

    code = "driver-missing"
