"""The seam to whoever submits child jobs: a worker, a test, the parent of a child process."""

import concurrent.futures
from collections.abc import Sequence
from typing import Protocol

from asyncjob.app.child_errors import SubmitError
from asyncjob.app.child_order import ChildManifest
from asyncjob.app.child_view import ChildRef, ChildView


class ChildJobs(Protocol):
    """Submits and looks at the children of one attempt; called from the handler's thread.

    Futures are filled from any thread. They raise the errors of `child_errors`.
    """

    def submit(self, manifest: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Create the job; the same order twice is the same job."""

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Look until the job has finished; TimeoutError after so many seconds."""

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Look at all children of the job, those of earlier attempts included."""

    def stop(self) -> None:
        """Submit nothing more, and cancel all futures that are not filled yet."""


class NoChildJobs:
    """Stands where nobody submits."""

    def submit(self, manifest: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Refuse."""
        raise SubmitError(f"whoever runs this handler submits no jobs: {manifest.name}")

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Refuse."""
        raise SubmitError(f"whoever runs this handler looks at no jobs: {child.name}, {timeout}")

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Refuse."""
        raise SubmitError("whoever runs this handler looks at no jobs")

    def stop(self) -> None:
        """Do nothing."""
