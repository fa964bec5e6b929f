"""A claim selector whose queue, live workers and clock are in the test's hands."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.queue_state import LiveWorkers, QueueState
from asyncjob_worker.claiming.selector import ClaimSelector
from support.parts.worker_parts import candidate


class ClaimSelectorHarness:
    """A selector to pick from, with a queue, a live_workers and a clock to play with."""

    def __init__(
        self,
        limit: int = 100,
        limits: Mapping[str, int] | None = None,
        chunk_types: frozenset[str] = frozenset(),
        slots: int = 9,
    ) -> None:
        self.now = 0.0
        self.looks = 0
        self.selections = 0
        self.backlog = Backlog(
            takeover_delay=1.0, limit=limit, limited_types=chunk_types | (limits or {}).keys()
        )
        self.queue = QueueState(lambda: None, self.look_again)
        self.queue.replace([])
        self.live_workers = SimpleNamespace(synced=True)
        self.selector = ClaimSelector(
            backlog=self.backlog,
            queue=self.queue,
            live_workers=cast("LiveWorkers", self.live_workers),
            clock=lambda: self.now,
            relist=self.look_again,
            limits=limits or {},
            chunk_types=chunk_types,
            slots=slots,
        )
        self._select, self.selector.select = self.selector.select, self.select  # type: ignore[method-assign]

    def select(self) -> Candidate | None:
        self.selections += 1
        return self._select()

    def look_again(self) -> None:
        self.looks += 1
        self.backlog.clear()

    def put(self, *names: str, **changes: Any) -> None:
        for name in names:
            self.backlog.put(candidate(name, **changes), self.now)

    def pick(self) -> str | None:
        picked = self.selector.select()
        return picked.name if picked else None
