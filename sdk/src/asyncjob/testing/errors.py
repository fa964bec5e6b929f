"""Errors of the test kit itself. What the API server would refuse is the SDK's InvalidError."""

from asyncjob.errors import AsyncJobError


class TestKitError(AsyncJobError):
    """The test kit cannot go on."""

    code = "test-kit"

    __test__ = False


class NotFakedError(TestKitError):
    """The fake cluster does not play this part of the real one."""


class StuckError(TestKitError):
    """What the test waits for does not come."""


class IllegalTransitionError(TestKitError):
    """The kit was about to store what the API server refuses."""
