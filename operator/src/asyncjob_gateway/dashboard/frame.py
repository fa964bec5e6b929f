"""What every page has around its content."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob_gateway.dashboard.allowed import Permissions
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.words import DisplayTime, display_time

NOTICES: Final = {
    "submitted": "Submitted.",
    "cancelled": "Cancellation asked for.",
    "rerun": "Rerun asked for; this is the new job.",
    "redriven": "Redrive asked for.",
    "dismissed": "Dismissal asked for.",
    "suspended": "Suspended.",
    "resumed": "Resumed.",
    "priority": "Priority changed.",
    "paused": "Queue paused: no job of it starts.",
    "unpaused": "Queue resumed.",
    "triggered": "Triggered; this is the new job.",
    "cron-suspended": "Cron job suspended.",
    "cron-resumed": "Cron job resumed.",
}
"""What a page says after an action. A closed list: an address cannot make a page say anything."""


@dataclass(frozen=True, slots=True)
class Section:
    """One entry of the navigation; `key` goes there after `g`."""

    name: str
    title: str
    path: str
    key: str


QUEUES_SECTION: Final = Section("queues", "Queues", "/queues", "q")
JOBS_SECTION: Final = Section("jobs", "Jobs", "/jobs", "j")
DEAD_LETTERS_SECTION: Final = Section("dead", "Dead letters", "/dead-letters", "d")
CRON_JOBS_SECTION: Final = Section("cron", "Cron jobs", "/cron-jobs", "c")
WORKERS_SECTION: Final = Section("workers", "Workers", "/workers", "w")
SUBMIT_SECTION: Final = Section("submit", "Submit", "/submit", "s")


@dataclass(frozen=True, slots=True)
class Frame:
    """Who reads which namespace, what they may do, and when the page was made."""

    links: Links
    namespace: str
    namespaces: tuple[str, ...]
    allowed: Permissions
    now: datetime
    caller: str = ""
    can_sign_out: bool = False
    form_token: str = ""
    did: str = ""
    dead_letters: int = 0
    assets: str = ""

    @property
    def made(self) -> DisplayTime:
        """When the page was made."""
        made = display_time(self.now.isoformat(), self.now)
        assert made
        return made

    @property
    def notice(self) -> str:
        """What was just done."""
        return NOTICES.get(self.did, "")

    @property
    def sections(self) -> list[Section]:
        """The navigation: what the reader may see."""
        allowed = self.allowed
        shown = (
            (allowed.list_queues, QUEUES_SECTION),
            (allowed.list_jobs, JOBS_SECTION),
            (allowed.list_jobs, DEAD_LETTERS_SECTION),
            (allowed.list_cron_jobs, CRON_JOBS_SECTION),
            (allowed.list_queues, WORKERS_SECTION),
            (allowed.submit, SUBMIT_SECTION),
        )
        return [section for may, section in shown if may]
