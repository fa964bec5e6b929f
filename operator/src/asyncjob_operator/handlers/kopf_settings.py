"""kopf's settings for watching and nothing else: endless patience, and no storage to write to."""

import itertools
from collections.abc import Iterator
from typing import Final

import kopf

IDLE_SECONDS: Final = 1.0
PAGE_SIZE: Final = 500
FIRST_BACKOFFS: Final = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0)
LAST_BACKOFF: Final = 10.0


class EndlessBackoffs:
    """Backoffs that never run out: kopf gives up, and exits, at the end of a finite list."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain(FIRST_BACKOFFS, itertools.repeat(LAST_BACKOFF))


class NoProgressStorage(kopf.ProgressStorage):
    """Keeps nothing: events have no progress."""

    def fetch(self, **_: object) -> None:
        """Return nothing."""

    def store(self, **_: object) -> None:
        """Store nothing."""

    def purge(self, **_: object) -> None:
        """Remove nothing."""

    def touch(self, **_: object) -> None:
        """Touch nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Return the essence itself, not a deep copy."""
        return essence


class NoDiffBaseStorage(kopf.DiffBaseStorage):
    """Keeps nothing: nobody asks what has changed."""

    def build(self, **_: object) -> kopf.BodyEssence:
        """Return an empty essence, not a deep copy of the object."""
        return kopf.BodyEssence()

    def fetch(self, **_: object) -> None:
        """Return nothing."""

    def store(self, **_: object) -> None:
        """Store nothing."""


def kopf_settings() -> kopf.OperatorSettings:
    """Return settings under which kopf watches, survives outages, and writes nothing."""
    chosen = kopf.OperatorSettings()
    chosen.process.ultimate_exiting_timeout = None
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.queueing.worker_limit = None
    chosen.queueing.idle_timeout = IDLE_SECONDS
    chosen.watching.chunk_size = PAGE_SIZE
    chosen.networking.error_backoffs = EndlessBackoffs()
    chosen.networking.connect_timeout = 5.0
    chosen.persistence.progress_storage = NoProgressStorage()
    chosen.persistence.diffbase_storage = NoDiffBaseStorage()
    return chosen
