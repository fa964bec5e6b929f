"""Acting on many dead letters: what is asked for, the question, and what became of it."""

import re
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import QueryParams

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.selection import BulkReport, Selection
from asyncjob_gateway.dashboard.forms import Form, one
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.filters import Filters, read_filters
from asyncjob_gateway.dashboard.words import plural

AT_ONCE: Final = 1000
"""Most dead letters of one action: what a request has time for."""

LISTED: Final = 20
"""Names that the question and the report show."""

_LIMIT: Final = re.compile(r"[1-9][0-9]{0,5}")
_DONE: Final = {"redrive": "redriven", "dismiss": "dismissed"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Redrive or dismiss: these, or all that match the filters, `limit` at most."""

    action: str
    all: bool
    ids: tuple[str, ...]
    filters: Filters
    written: str
    limit: int = AT_ONCE

    @property
    def selection(self) -> Selection:
        """Which are meant, where all that match are."""
        return self.filters.selection or Selection()


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The question."""

    asked: Asked
    count: int
    matched: int
    question: str
    button: str
    names: list[str]
    unnamed: int
    back: str


@dataclass(frozen=True, slots=True)
class Report:
    """What became of it."""

    title: str
    failed: list[tuple[str, str, str]]
    unnamed: int
    left: int
    back: str


def read_asked(form: Form) -> Asked | None:
    """Return what a form asks for; None where that is nothing."""
    action, _, scope = one(form, "action").partition("-")
    written = one(form, "filters")
    filters = read_filters(QueryParams(written), Phase.DEAD_LETTER)
    ids = tuple(dict.fromkeys(filter(None, form.get("id", []))))[:AT_ONCE]
    everything = scope == "all"
    meant = filters.selection is not None if everything else bool(ids)
    if action not in _DONE or not meant:
        return None
    return Asked(action, everything, () if everything else ids, filters, written, _limit(form))


def _limit(form: Form) -> int:
    text = one(form, "limit")
    return min(AT_ONCE, int(text)) if _LIMIT.fullmatch(text) else AT_ONCE


def asked_of(asked: Asked) -> str:
    """Return the action as forms carry it."""
    return f"{asked.action}-all" if asked.all else asked.action


def confirmation(asked: Asked, found: BulkReport, links: Links) -> Confirmation:
    """Return the question about those that were found."""
    count = len(found.done)
    what = plural(count, "dead letter")
    verb = asked.action.capitalize()
    return Confirmation(
        asked=asked,
        count=count,
        matched=found.matched,
        question=f"{verb} {what}?",
        button=f"{verb} {what}",
        names=found.done[:LISTED],
        unnamed=max(0, count - LISTED),
        back=_back(asked, links),
    )


def report(asked: Asked, done: BulkReport, links: Links) -> Report:
    """Return what became of each."""
    failed = [(one.id, links.job(one.id), one.detail) for one in done.failed]
    title = f"{plural(len(done.done), 'dead letter')} {_DONE[asked.action]}"
    more = f", {len(failed):,} not" if failed else ""
    left = max(0, done.matched - len(done.done) - len(failed))
    return Report(
        title + more, failed[:LISTED], max(0, len(failed) - LISTED), left, _back(asked, links)
    )


def _back(asked: Asked, links: Links) -> str:
    return links.to("/dead-letters", asked.filters.given)
