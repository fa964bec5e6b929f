"""What the worker asks of tracing, and the answer where nobody wants any."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from asyncjob.lifecycle.move import PhaseChange
from asyncjob_worker.held import HeldJob


class AttemptTrace(Protocol):
    """One attempt as it is traced."""

    def ended(self, stored: PhaseChange | None) -> None:
        """Take what is stored of the attempt's outcome; None: nothing is, it was fenced."""


class Tracing(Protocol):
    """Traces attempts and what happens inside of them."""

    def attempt(self, held: HeldJob) -> AbstractContextManager[AttemptTrace]:
        """Trace the claim that has just been answered, and the attempt while inside.

        The job's `traceparent` is then that of the attempt: handler, children and logs go by it.
        """

    def attach(self, traceparent: str | None) -> AbstractContextManager[None]:
        """Let spans made while inside belong to that one, which lives in another process."""

    def close(self) -> None:
        """Hand on what has not been exported yet, but wait for that no longer than a moment."""


class _NoAttemptTrace:
    def ended(self, stored: PhaseChange | None) -> None:
        pass


class _NoTracing:
    @contextmanager
    def attempt(self, held: HeldJob) -> Iterator[AttemptTrace]:  # noqa: ARG002  # nothing to say
        yield _NO_ATTEMPT_TRACE

    @contextmanager
    def attach(self, traceparent: str | None) -> Iterator[None]:  # noqa: ARG002
        yield

    def close(self) -> None:
        pass


_NO_ATTEMPT_TRACE = _NoAttemptTrace()
NO_TRACING: Tracing = _NoTracing()
