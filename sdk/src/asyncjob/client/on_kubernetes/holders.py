"""Who holds a deduplicationId: the live job that has it, whoever created it."""

from asyncjob.client.errors import DuplicateJobError
from asyncjob.client.on_kubernetes.calls import jobs_path, list_all
from asyncjob.client.steps import Steps
from asyncjob.intake.verdict import is_live
from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.phases import FINISHED_PHASES


def live_duplicates_selector(deduplication_id: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a LIST of the unfinished jobs with the id."""
    dead = [f"status.phase!={phase.value}" for phase in sorted(FINISHED_PHASES)]
    return (
        (
            "fieldSelector",
            ",".join([f"spec.deduplicationId={_escape_selector_value(deduplication_id)}", *dead]),
        ),
    )


def check_no_live_duplicate(job: JsonObject, patience: float) -> Steps[None]:
    """Raise DuplicateJobError if another live job has the id of this dead letter."""
    held = text(child(job, "spec"), "deduplicationId")
    if not held:
        return
    meta = child(job, "metadata")
    path = jobs_path(text(meta, "namespace"))
    holders = yield from list_all(path, live_duplicates_selector(held), patience, _if_live)
    for other in holders:
        name = text(child(other, "metadata"), "name")
        raise DuplicateJobError(
            f"deduplicationId: job {name} has it and is live; redrive {text(meta, 'name')} once"
            " that has finished",
            job_id=name,
        )


def _if_live(job: JsonObject) -> JsonObject | None:
    return job if is_live(job) else None


def _escape_selector_value(value: str) -> str:
    """Return the text as the right side of a field selector takes it."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
