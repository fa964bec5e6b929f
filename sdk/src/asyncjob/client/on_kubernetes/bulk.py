"""One wish for many dead letters, the oldest first; each succeeds or fails by itself."""

from collections.abc import Callable
from datetime import datetime

from asyncjob.client.on_kubernetes.calls import in_words
from asyncjob.client.on_kubernetes.listing import chosen
from asyncjob.client.on_kubernetes.wishes import Check, Decide, wished
from asyncjob.client.steps import Steps
from asyncjob.errors import AsyncJobError
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob.rest.selection import BulkAsk, BulkFailure, BulkReport, Selection


def on_dead_letters(
    namespace: str,
    ask: BulkAsk,
    wish: Callable[[], Decide],
    now: datetime,
    patience: float,
    *,
    check: Check | None = None,
) -> Steps[BulkReport]:
    """Make the wish for those that match, `limit` at most; a dry run only says for which."""
    found = yield from chosen(namespace, _dead(ask.selection), now, patience)
    meant = [job.id for job in reversed(found)][: ask.limit] if _means_dead(ask.selection) else []
    matched = len(found) if meant else 0
    if ask.dry_run:
        return BulkReport(matched=matched, done=meant, dry_run=True)
    done: list[str] = []
    failed: list[BulkFailure] = []
    for name in meant:
        try:
            yield from in_words(wished(job_path(namespace, name), wish(), patience, check))
            done.append(name)
        except AsyncJobError as error:
            failed.append(BulkFailure(id=name, detail=str(error)))
            patience = 0.0 if error.retryable else patience  # it was waited for once
    return BulkReport(matched=matched, done=done, failed=failed)


def _dead(selection: Selection) -> Selection:
    return selection.model_copy(update={"phase": [Phase.DEAD_LETTER]})


def _means_dead(selection: Selection) -> bool:
    return selection.phase is None or Phase.DEAD_LETTER in selection.phase
