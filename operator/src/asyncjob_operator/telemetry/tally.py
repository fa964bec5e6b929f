"""Counts recovered jobs between two log lines: a thousand of them make one line, not a thousand."""

from collections import Counter

import structlog

log = structlog.get_logger()


class RecoverySummary:
    """Jobs recovered since the last report, by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        """Count one."""
        self._counts[reason] += 1

    def report(self) -> None:
        """Log what was counted, if anything."""
        if self._counts:
            log.info("jobs recovered", count=self._counts.total(), reasons=dict(self._counts))
            self._counts.clear()
