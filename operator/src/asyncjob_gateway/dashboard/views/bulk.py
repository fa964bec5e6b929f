"""Acting on many dead letters: what is asked for, the question, and what became of it."""

import re
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import QueryParams

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.selection import BulkReport, Selection
from asyncjob_gateway.dashboard.forms import Form, field_value
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.filters import Filters, read_filters
from asyncjob_gateway.dashboard.words import plural

MAX_BULK_JOBS: Final = 1000
"""Most dead letters of one action: what a request has time for."""

MAX_LISTED_NAMES: Final = 20
"""Names that the question and the report show."""

_LIMIT_PATTERN: Final = re.compile(r"[1-9][0-9]{0,5}")
_PAST_TENSE: Final = {"redrive": "redriven", "dismiss": "dismissed"}


@dataclass(frozen=True, slots=True)
class BulkAction:
    """Redrive or dismiss: these, or all that match the filters, `limit` at most."""

    action: str
    all: bool
    ids: tuple[str, ...]
    filters: Filters
    written: str
    limit: int = MAX_BULK_JOBS

    @property
    def selection(self) -> Selection:
        """Which are meant, where all that match are."""
        return self.filters.selection or Selection()


@dataclass(frozen=True, slots=True)
class ConfirmationPage:
    """The question."""

    asked: BulkAction
    count: int
    matched: int
    question: str
    button: str
    names: list[str]
    unnamed: int
    back: str


@dataclass(frozen=True, slots=True)
class BulkReportPage:
    """What became of it."""

    title: str
    failed: list[tuple[str, str, str]]
    unnamed: int
    left: int
    back: str


def read_bulk_action(form: Form) -> BulkAction | None:
    """Return what a form asks for; None where that is nothing."""
    action, _, scope = field_value(form, "action").partition("-")
    written = field_value(form, "filters")
    filters = read_filters(QueryParams(written), Phase.DEAD_LETTER)
    ids = tuple(dict.fromkeys(filter(None, form.get("id", []))))[:MAX_BULK_JOBS]
    everything = scope == "all"
    meant = filters.selection is not None if everything else bool(ids)
    if action not in _PAST_TENSE or not meant:
        return None
    return BulkAction(
        action, everything, () if everything else ids, filters, written, _read_limit(form)
    )


def _read_limit(form: Form) -> int:
    text = field_value(form, "limit")
    return min(MAX_BULK_JOBS, int(text)) if _LIMIT_PATTERN.fullmatch(text) else MAX_BULK_JOBS


def form_action(action: BulkAction) -> str:
    """Return the action as forms carry it."""
    return f"{action.action}-all" if action.all else action.action


def confirmation_page(action: BulkAction, matching: BulkReport, links: Links) -> ConfirmationPage:
    """Return the question about those that were found."""
    count = len(matching.done)
    what = plural(count, "dead letter")
    verb = action.action.capitalize()
    return ConfirmationPage(
        asked=action,
        count=count,
        matched=matching.matched,
        question=f"{verb} {what}?",
        button=f"{verb} {what}",
        names=matching.done[:MAX_LISTED_NAMES],
        unnamed=max(0, count - MAX_LISTED_NAMES),
        back=_back_url(action, links),
    )


def bulk_report_page(action: BulkAction, done: BulkReport, links: Links) -> BulkReportPage:
    """Return what became of each."""
    failed = [(one.id, links.job(one.id), one.detail) for one in done.failed]
    title = f"{plural(len(done.done), 'dead letter')} {_PAST_TENSE[action.action]}"
    more = f", {len(failed):,} not" if failed else ""
    left = max(0, done.matched - len(done.done) - len(failed))
    return BulkReportPage(
        title + more,
        failed[:MAX_LISTED_NAMES],
        max(0, len(failed) - MAX_LISTED_NAMES),
        left,
        _back_url(action, links),
    )


def _back_url(action: BulkAction, links: Links) -> str:
    return links.to("/dead-letters", action.filters.given)
