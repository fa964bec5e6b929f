"""What can be wrong with child jobs, as their parent's handler sees it."""

from asyncjob.errors import AsyncJobError


class SubmitError(AsyncJobError):
    """A child job cannot be submitted, and trying again does not help."""


class SubmitForbiddenError(SubmitError):
    """The worker may not create jobs."""


class SubmitRefusedError(SubmitError):
    """A child job is not what a job has to be, or too large."""


class SubmitConflictError(SubmitError):
    """The name of a child job is taken by a job with other content."""


class AttemptOverError(SubmitError):
    """The attempt has been told to stop: it submits nothing more and waits for nothing."""


class ChildFailedError(AsyncJobError):
    """A child job has not succeeded."""


class ChildGoneError(AsyncJobError):
    """A child job has been deleted."""
