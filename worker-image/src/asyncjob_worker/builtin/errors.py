"""The retryable errors of the built-in handlers, each with its category."""

from typing import ClassVar

from asyncjob.app import Category
from asyncjob_worker.errors import WorkerError


class BuiltInError(WorkerError):
    """A built-in handler failed."""

    retryable = True
    category: ClassVar[Category] = Category.INTERNAL


class TimedOutError(BuiltInError):
    """There was no answer, or no end, within the time that the job gives."""

    category = Category.TIMEOUT


class UnreachableError(BuiltInError):
    """The host cannot be reached, or the connection broke."""

    category = Category.NETWORK


class RateLimitedError(BuiltInError):
    """The service asks to slow down (429)."""

    category = Category.RATE_LIMITED


class ServiceFailedError(BuiltInError):
    """The service could not do its part this time (5xx, or another status worth a retry)."""

    category = Category.DEPENDENCY


class ProgramFailedError(BuiltInError):
    """The program ended with another code than 0."""

    category = Category.INTERNAL


class StoppedError(BuiltInError):
    """The worker stopped the program; how that is reported is the worker's own matter."""
