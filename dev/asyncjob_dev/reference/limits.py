"""The page on limits: each bound with its number from the code, and what happens beyond it."""

from collections.abc import Iterable
from typing import Final

from asyncjob import models
from asyncjob.app import item_results, items
from asyncjob.app.errors import MAX_CATEGORY_LENGTH
from asyncjob.app.steps import MAX_STEP_RESULT_BYTES
from asyncjob.cli.backup import reader
from asyncjob.cli.commands import watch
from asyncjob.cli.doctor import examination
from asyncjob.cli.input import documents, yaml_loader
from asyncjob.client.kubernetes.submitting import MAX_CREATE_TRIES
from asyncjob.free_json import MAX_DEPTH, MAX_STORED_BYTES
from asyncjob.json_types import JsonObject, child
from asyncjob.lifecycle import phase_change, policy, signals, step_records, waits
from asyncjob.lifecycle.arrays import item_index, records
from asyncjob.lifecycle.arrays.chunks import MAX_CHUNK_SHARE
from asyncjob.lifecycle.policy import MAX_PRIORITY
from asyncjob.models import array, cron
from asyncjob.offload.store import MAX_OBJECT_BYTES
from asyncjob.rest import listing
from asyncjob.rest.submission import MAX_BATCH_JOBS
from asyncjob.schema.structural import structural
from asyncjob.submission.validation import MAX_OTHER_BYTES, MAX_PAYLOAD_BYTES
from asyncjob_dev.reference.blocks import table
from asyncjob_gateway.cache import changes
from asyncjob_gateway.dashboard import formatting, security
from asyncjob_gateway.dashboard.pages import dead_letters
from asyncjob_gateway.dashboard.views import job_tree, resources, signal_forms
from asyncjob_gateway.limits import bodies, strict_json
from asyncjob_gateway.settings import GatewaySettings
from asyncjob_operator.controllers.events import EVENT_BURST, SECONDS_PER_EVENT
from asyncjob_operator.controllers.retention import MAX_NEEDED_SECONDS
from asyncjob_operator.core.dependencies import MAX_EDGES_FOLLOWED
from asyncjob_operator.core.options import RetentionOptions
from asyncjob_operator.core.schedules.due_runs import MAX_TIMES_CONSIDERED
from asyncjob_operator.telemetry.job_metrics import MAX_QUEUES, MAX_TYPES
from asyncjob_worker.execution import hooks
from asyncjob_worker.isolation import protocol

_DAY: Final = 86_400
_RETENTION: Final = RetentionOptions()
_GATEWAY: Final = GatewaySettings()
_REFUSED: Final = "The API server refuses the object and names the field."


def _error(code: str, page: str) -> str:
    return f"[`{code}`](errors/{page}.md#{code})"


_TOO_LARGE: Final = _error("too-large", "problems")
_INVALID: Final = _error("invalid", "problems")


def _bytes(number: int) -> str:
    mebi = 1024 * 1024
    return f"{number // mebi} MiB" if number >= mebi else f"{number // 1024} KiB"


def _seconds(number: float) -> str:
    return f"{number / _DAY:g} days" if number >= _DAY else f"{number:g} s"


def _bound(model: type[models.AsyncJobSpec | models.AsyncQueueSpec], path: str, name: str) -> str:
    schema: JsonObject = structural(model)
    for step in path.split("."):
        schema = child(child(schema, "properties"), step)
    return f"{schema[name]:,}"


def _job(path: str, name: str) -> str:
    return _bound(models.AsyncJobSpec, path, name)


def jobs() -> str:
    """Return the limits of one job."""
    return _limits(
        [
            ("Payload", _bytes(MAX_PAYLOAD_BYTES), f"Refused ({_INVALID}). Keep it elsewhere."),
            ("Any other field of a submission", _bytes(MAX_OTHER_BYTES), f"Refused ({_INVALID})."),
            (
                "Result or checkpoint in the job",
                _bytes(MAX_STORED_BYTES),
                "A result is offloaded, where the worker has a store; else "
                f"{_error('ResultRefused', 'reasons-of-jobs')}, as a checkpoint does.",
            ),
            (
                "Offloaded result, payload from elsewhere",
                _bytes(MAX_OBJECT_BYTES),
                f"{_error('ResultRefused', 'reasons-of-jobs')} or "
                f"{_error('InvalidPayload', 'reasons-of-jobs')}; `--offload-limit` of the worker.",
            ),
            (
                "Steps of a job",
                f"{step_records.MAX_STEPS}",
                f"The next is not begun: {_error('ResultRefused', 'reasons-of-jobs')}.",
            ),
            (
                "Key of a step",
                f"{step_records.MAX_STEP_KEY_LENGTH} characters",
                f"Refused: {_error('step-invalid', 'errors')}.",
            ),
            (
                "Result of a step in the job",
                _bytes(step_records.MAX_STEP_BYTES),
                "Offloaded, where the worker has a store; else "
                f"{_error('ResultRefused', 'reasons-of-jobs')} that names the step.",
            ),
            (
                "Results of all steps in the job",
                _bytes(step_records.MAX_INLINE_STEP_BYTES),
                "The same.",
            ),
            (
                "Result of a step, offloaded",
                _bytes(MAX_STEP_RESULT_BYTES),
                f"{_error('ResultRefused', 'reasons-of-jobs')}; `--offload-limit` of the worker "
                "may be less.",
            ),
            (
                "Sleep of a handler, or timeout of a signal",
                f"{waits.MAX_SLEEP_SECONDS // 86_400} days",
                f"Refused: {_error('step-invalid', 'errors')}.",
            ),
            (
                "Signals of a job",
                f"{signals.MAX_SIGNALS}",
                "Refused: by REST and clients as a conflict; the API server names the field.",
            ),
            (
                "Payload of a signal",
                _bytes(signals.MAX_SIGNAL_BYTES),
                "Refused by REST and clients. Of one that is sent past them the handler gets "
                f"{_error('signal-invalid', 'errors')}.",
            ),
            (
                "JSON schema of a signal's payload, in `waiting`",
                _bytes(waits.MAX_PAYLOAD_SCHEMA_BYTES),
                "Left out: the job's page then has a field for JSON.",
            ),
            (
                "Fields of a signal's payload that the job's page has an input for",
                f"{signal_forms.MAX_INPUTS}",
                "Of a model with more the page has a field for JSON.",
            ),
            (
                "Name of a signal",
                f"{signals.MAX_SIGNAL_NAME_LENGTH} characters",
                "Refused, as is a name with others than letters, digits, dots, dashes and "
                "underscores.",
            ),
            (
                "Waits that a parked job names in `waiting`",
                f"{waits.MAX_WAITING}",
                "All signals, what ends first by time, and of more children and sleeps those that "
                "fit. A job that waits for more signals than that keeps its slot.",
            ),
            (
                "Children that a parked job names for one wait",
                f"{waits.MAX_CHILDREN_NAMED}",
                "The first that are unfinished are named; the job is parked again for the others.",
            ),
            (
                "Children that a parked job names for all its waits",
                f"{waits.MAX_CHILDREN_NAMED_IN_ALL}",
                "Each wait names its share; the job is parked again for the others.",
            ),
            (
                "Nesting of payload, checkpoint and result",
                f"{MAX_DEPTH} levels",
                "Refused: see [depth](asyncjob.md#depth).",
            ),
            ("`dependsOn`", f"{_job('dependsOn', 'maxItems')} jobs and arrays", _REFUSED),
            (
                "Dependencies in which a cycle is looked for",
                f"{MAX_EDGES_FOLLOWED:,}",
                "The cycle is not detected, and its jobs wait for one another.",
            ),
            (
                "Times that a submission starts over, as its name is taken and freed",
                f"{MAX_CREATE_TRIES}",
                f"{_error('unavailable', 'problems')}. Submit again.",
            ),
            (
                "Category of an error",
                f"{MAX_CATEGORY_LENGTH} characters",
                "Of `WorkerApp`: the worker does not start "
                f"({_error('app-mistake', 'errors')}). Of `Retry`: that of its cause. Of `Fail`: "
                "`Internal`.",
            ),
            (
                "Lifecycle events that wait for one hook",
                f"{hooks.MAX_WAITING:,}",
                "Dropped; the worker's log counts them.",
            ),
            ("`priority`", f"-{MAX_PRIORITY} to {MAX_PRIORITY}", _REFUSED),
            (
                "`executionTimeoutSeconds`",
                f"1 to {_job('executionTimeoutSeconds', 'maximum')}",
                _REFUSED,
            ),
            (
                "`leaseDurationSeconds`",
                f"{_job('leaseDurationSeconds', 'minimum')} to "
                f"{_job('leaseDurationSeconds', 'maximum')}",
                _REFUSED,
            ),
            (
                "`retryPolicy.maxRetries`",
                f"{_job('retryPolicy.maxRetries', 'maximum')}",
                _REFUSED,
            ),
            (
                "Delay of `Retry(after=…)`",
                _seconds(policy.MAX_REQUESTED_DELAY_SECONDS),
                "The delay is cut to this.",
            ),
            (
                "Releases before they have a backoff",
                f"{phase_change.MAX_IMMEDIATE_RELEASES}",
                "Each further release waits before the next attempt.",
            ),
            (
                "Releases",
                f"{phase_change.MAX_RELEASES}",
                "Each further one counts as a crash, so that it ends as "
                f"{_error('CrashBudgetExhausted', 'reasons-of-jobs')}.",
            ),
            (
                "History",
                f"{phase_change.MAX_HISTORY_ENTRIES} entries",
                "The oldest goes; `status.historyOmitted` counts them.",
            ),
            (
                "`status.message`, that of a history entry, that of `status.error`",
                f"{phase_change.MAX_MESSAGE_LENGTH:,}, {phase_change.MAX_HISTORY_MESSAGE_LENGTH}, "
                f"{phase_change.MAX_ERROR_MESSAGE_LENGTH:,} characters",
                "The rest is cut.",
            ),
            (
                "What goes to and from a handler's own process",
                _bytes(protocol.MAX_BYTES),
                f"{_error('InvalidPayload', 'reasons-of-jobs')}, "
                f"{_error('ResultRefused', 'reasons-of-jobs')}.",
            ),
        ]
    )


def arrays() -> str:
    """Return the limits of arrays, their chunks and items."""
    return _limits(
        [
            ("Items of an array", f"{array.MAX_ITEMS:,}", _REFUSED),
            (
                "Items that stand in the array",
                f"{array.MAX_INLINE_ITEMS:,}, {_bytes(array.MAX_INLINE_BYTES)} in all",
                f"{_REFUSED} Beyond the size: {_error('PayloadTooLarge', 'reasons-of-arrays')}.",
            ),
            (
                "Records of a file of items",
                f"{item_index.MAX_RECORDS:,}",
                f"{_error('ItemsUnreadable', 'reasons-of-arrays')}.",
            ),
            (
                "One record of a file of items",
                _bytes(records.MAX_RECORD_BYTES),
                "The item fails; its error names the record.",
            ),
            (
                "The header of a CSV file of items, with blank lines before it",
                _bytes(records.MAX_HEADER_BYTES),
                f"{_error('ItemsUnreadable', 'reasons-of-arrays')}.",
            ),
            (
                "`payload` of an array",
                _bytes(array.MAX_SHARED_PAYLOAD_BYTES),
                f"{_error('PayloadTooLarge', 'reasons-of-arrays')}.",
            ),
            (
                "What one item returns, where results are kept",
                _bytes(item_results.MAX_RESULT_BYTES),
                "The item fails.",
            ),
            ("`chunkSize`", f"1 to {array.MAX_CHUNK_SIZE:,}; it adapts if left out", _REFUSED),
            ("`parallelism`", f"1 to {array.MAX_PARALLELISM}", _REFUSED),
            ("`itemRetries`", f"0 to {array.MAX_ITEM_RETRIES}", _REFUSED),
            (
                "Delay between two tries of an item",
                _seconds(items.MAX_ITEM_DELAY_SECONDS),
                "The delay is cut to this.",
            ),
            (
                "`concurrency` of an item handler",
                f"1 to {items.MAX_ITEM_CONCURRENCY}",
                f"The worker does not start ({_error('app-mistake', 'errors')}).",
            ),
            (
                "Ranges of failed items, and of items to be run again",
                f"{array.MAX_ITEM_RANGES:,} each",
                "Failed items beyond are counted and not named, and no further chunk is created: "
                f"{_error('TooScattered', 'reasons-of-arrays')}. Items to be run again beyond "
                "fail.",
            ),
            (
                "Share of a worker's slots that chunks take",
                f"{MAX_CHUNK_SHARE:.0%}, at least one",
                "Further chunks wait.",
            ),
        ]
    )


def queues_and_schedules() -> str:
    """Return the limits of queues and cron jobs, and what retention keeps by default."""
    return _limits(
        [
            (
                "`maxConcurrency` of a queue",
                _bound(models.AsyncQueueSpec, "maxConcurrency", "maximum"),
                f"{_REFUSED} A queue without a limit has no such bound.",
            ),
            (
                "Runs of one backfill, and that `FireAll` makes up for",
                f"{cron.MAX_RUNS:,}",
                f"{_error('BackfillRefused', 'reasons-of-cron-jobs')}; of missed runs the oldest "
                "are left out.",
            ),
            (
                "Unfinished runs of one backfill",
                f"{cron.MAX_ACTIVE_RUNS}",
                f"{_REFUSED} Further runs wait.",
            ),
            (
                "Missed times that are looked at",
                f"{MAX_TIMES_CONSIDERED:,}",
                "Earlier ones are left out at once.",
            ),
            (
                "Finished jobs kept for each queue",
                f"{_RETENTION.max_finished:,}, for {_seconds(_RETENTION.max_age)}",
                "The oldest are deleted. Dead letters are counted apart, and kept for "
                f"{_seconds(_RETENTION.dead_letter_max_age)}.",
            ),
            (
                "Time for which a request or a dependent keeps a finished job",
                _seconds(MAX_NEEDED_SECONDS),
                "It is deleted as other finished jobs are.",
            ),
            (
                "Events about a namespace",
                f"{EVENT_BURST:g} at once, then one every {_seconds(SECONDS_PER_EVENT)}",
                f"Dropped; {_error('EventsLeftOut', 'reasons-of-events')} says how many.",
            ),
            (
                "Finished jobs kept for each namespace",
                f"{_RETENTION.namespace_limit:,}",
                "The oldest are deleted, whatever their age and keys.",
            ),
        ]
    )


def gateway() -> str:
    """Return the limits of the gateway; its options change those that have one."""
    return _limits(
        [
            ("Body of a request", _bytes(_GATEWAY.max_body), f"{_TOO_LARGE}; `--max-body`."),
            ("Body with a single job", _bytes(bodies.MAX_SINGLE_JOB_BYTES), f"{_TOO_LARGE}."),
            (
                "Values in a body, and their levels",
                f"{strict_json.MAX_VALUES:,}, {strict_json.MAX_DEPTH}",
                f"{_TOO_LARGE}, {_INVALID}.",
            ),
            ("Jobs of a batch", f"{MAX_BATCH_JOBS:,}", f"{_INVALID}."),
            ("Jobs on a page of a list", f"{listing.MAX_PAGE_SIZE}", f"{_INVALID}."),
            (
                "Dead letters of one bulk action",
                f"{listing.MAX_BULK_JOBS:,}",
                f"{_INVALID}. Repeat the action for the rest.",
            ),
            (
                "Requests at once",
                f"{_GATEWAY.max_requests}",
                f"{_error('busy', 'problems')}; `--max-requests`.",
            ),
            (
                "Connections",
                f"{_GATEWAY.max_connections:,}",
                "New ones that say nothing are closed first; `--max-connections`.",
            ),
            (
                "Time for the headers of a request, and for its body",
                f"{_seconds(_GATEWAY.header_timeout)}, {_seconds(_GATEWAY.body_timeout)}",
                f"The connection is closed; {_error('slow-body', 'problems')}.",
            ),
            (
                "Jobs of one bulk action in the dashboard",
                f"{dead_letters.MAX_BULK_JOBS:,}",
                "Repeat the action for the rest.",
            ),
            (
                "Event streams at once, and of one caller",
                f"{_GATEWAY.max_streams}, {_GATEWAY.max_streams_per_caller}",
                f"{_error('busy', 'problems')}, {_error('throttled', 'problems')}.",
            ),
            (
                "Changes that an event stream lags behind by, and that are kept for who comes back",
                f"{changes.MAX_LAG}, {changes.MAX_BUFFERED_CHANGES:,}",
                "The stream says `resync`.",
            ),
            (
                "Token that signs in to the dashboard",
                f"{security.MAX_TOKEN_CHARS:,} characters",
                "Refused: no cookie is longer.",
            ),
            (
                "Payload or result on a page of the dashboard",
                f"{formatting.MAX_JSON_CHARS:,} characters",
                "Cut; REST has all of it.",
            ),
            (
                "Family tree in the dashboard: jobs, children of one, generations upwards",
                f"{job_tree.MAX_TREE_JOBS}, {job_tree.MAX_CHILDREN_PER_JOB}, "
                f"{job_tree.MAX_ANCESTORS}",
                "Left out; a list of jobs has further children.",
            ),
            (
                "Types of a worker in the dashboard",
                f"{resources.MAX_WORKER_TYPES}",
                "It says how many more there are.",
            ),
            (
                "Time for a request",
                _seconds(_GATEWAY.request_timeout),
                f"{_error('timed-out', 'problems')}; `--request-timeout`.",
            ),
        ]
    )


def command_line() -> str:
    """Return the limits of the command line."""
    return _limits(
        [
            (
                "Files of one `submit`, together",
                _bytes(documents.MAX_TOTAL_BYTES),
                f"Refused, and nothing is submitted ({_error('exit-2', 'exit-codes')}).",
            ),
            (
                "Text of a YAML file, with its aliases written out, and its levels",
                f"{yaml_loader.MAX_CHARACTERS:,} characters, {yaml_loader.MAX_DEPTH}",
                "Refused likewise. JSON has no such bound.",
            ),
            (
                "An object in a file of `restore`",
                _bytes(reader.MAX_LINE_BYTES),
                "Refused likewise.",
            ),
            ("Jobs in view of `watch`", f"{watch.MAX_JOBS}", "The oldest that finished goes."),
            (
                "Unfinished jobs that `doctor` looks at",
                f"{examination.MAX_JOBS_EXAMINED:,}, the newest",
                "It says that there are more.",
            ),
        ]
    )


def metrics() -> str:
    """Return the limits of labels in metrics."""
    return _limits(
        [
            (
                "Queues with series of their own",
                f"{MAX_QUEUES}",
                "Further ones are shown as `other`.",
            ),
            (
                "Types with series of their own",
                f"{MAX_TYPES}",
                "Further ones are shown as `other`.",
            ),
        ]
    )


def _limits(rows: Iterable[tuple[str, str, str]]) -> str:
    return table(("What", "Limit", "Beyond it"), list(rows))
