"""What can be wrong with a schedule."""

from asyncjob.errors import AsyncJobError


class BadScheduleError(AsyncJobError):
    """The schedule cannot be read."""


class BadTimeZoneError(AsyncJobError):
    """There is no such time zone."""


class NeverFiresError(AsyncJobError):
    """No day will ever match the schedule."""
