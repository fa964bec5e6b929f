"""One wish for many dead letters, the oldest first; each succeeds or fails by itself."""

from collections.abc import Callable
from datetime import datetime

from asyncjob.client.on_kubernetes.calls import translate_errors
from asyncjob.client.on_kubernetes.listing import list_jobs
from asyncjob.client.on_kubernetes.wishes import CheckJob, DecideChange, apply_change
from asyncjob.client.steps import Steps
from asyncjob.errors import AsyncJobError
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob.rest.selection import BulkAsk, BulkFailure, BulkReport, Selection


def change_dead_letters(
    namespace: str,
    request: BulkAsk,
    new_change: Callable[[], DecideChange],
    now: datetime,
    patience: float,
    *,
    check: CheckJob | None = None,
) -> Steps[BulkReport]:
    """Make the wish for those that match, `limit` at most; a dry run only says for which."""
    found = yield from list_jobs(namespace, _dead_letters_only(request.selection), now, patience)
    meant = (
        [job.id for job in reversed(found)][: request.limit]
        if _selects_dead_letters(request.selection)
        else []
    )
    matched = len(found) if meant else 0
    if request.dry_run:
        return BulkReport(matched=matched, done=meant, dry_run=True)
    done: list[str] = []
    failed: list[BulkFailure] = []
    for name in meant:
        try:
            yield from translate_errors(
                apply_change(job_path(namespace, name), new_change(), patience, check)
            )
            done.append(name)
        except AsyncJobError as error:
            failed.append(BulkFailure(id=name, detail=str(error)))
            patience = 0.0 if error.retryable else patience  # it was waited for once
    return BulkReport(matched=matched, done=done, failed=failed)


def _dead_letters_only(selection: Selection) -> Selection:
    return selection.model_copy(update={"phase": [Phase.DEAD_LETTER]})


def _selects_dead_letters(selection: Selection) -> bool:
    return selection.phase is None or Phase.DEAD_LETTER in selection.phase
