"""How long to leave a job alone whose write has failed: longer each time, within bounds."""

from asyncjob_operator.kube.chance import shortened


class Patience:
    """Failures in a row per job; pauses in seconds, doubled from `initial` up to `cap`."""

    def __init__(self, initial: float, cap: float) -> None:
        self.cap = cap
        self._initial = initial
        self._failures: dict[str, int] = {}

    def failed(self, uid: str) -> float:
        """Count a failure and return the pause before the next try."""
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        return shortened(min(self._initial * 2 ** min(failures - 1, 30), self.cap))

    def failures(self, uid: str) -> int:
        """Return how often in a row the job has failed."""
        return self._failures.get(uid, 0)

    def succeeded(self, uid: str) -> None:
        """Begin anew: the job could be written, or there is nothing more to do about it."""
        self._failures.pop(uid, None)
