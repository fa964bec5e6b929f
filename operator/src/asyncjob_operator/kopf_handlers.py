"""The operator as kopf runs it: all of its handlers, in kopf's default registry.

`asyncjob-operator run` and `kopf run -m asyncjob_operator.kopf_handlers` both run these. The first
takes its options from flags and hands them over in kopf's memo; under the second they come from the
same environment variables, and the namespaces from kopf's own options.

kopf signs in, watches, takes the signals, answers `--liveness` and decides when the process ends.
Handlers of events take what has happened into caches and return None: whatever is decided, our own
loops decide and write, which begin in `start` and end in `stop`. There is no handler of changes, no
timer, daemon or index: those write onto every object.
"""

from typing import Any, Final, cast

import click
import kopf

from asyncjob.errors import AsyncJobError, message_of
from asyncjob.json_types import JsonObject
from asyncjob.kube import load_access
from asyncjob.names import ARRAYS, CRON_JOBS, GROUP, JOBS, QUEUES, VERSION
from asyncjob_operator.kube.kopf_session import watch_only
from asyncjob_operator.options import settings_from_environment
from asyncjob_operator.process import OperatorRuntime
from asyncjob_operator.settings import JobWatchSource, Settings

PEERING_IDENTITY: Final[Any] = "asyncjob-operator"
"""A name for peering, which is off; without one kopf asks for its user's, which a pod may lack."""


async def run_operator(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT, as `kopf run` would with these options.

    Raises AsyncJobError where there is no cluster to connect to, or a port cannot be opened.
    """
    access = await load_access(settings.kubeconfig)
    try:
        await kopf.operator(
            registry=kopf.get_default_registry(),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            identity=PEERING_IDENTITY,
            memo=kopf.Memo(runtime=OperatorRuntime(access, settings)),
        )
    except Exception as error:
        if known := _known_cause(error):
            raise known from None
        raise


def _known_cause(error: BaseException | None) -> AsyncJobError | None:
    """Return what of ours an error of kopf's was raised from."""
    while error and not isinstance(error, AsyncJobError):
        error = error.__cause__
    return error if isinstance(error, AsyncJobError) else None


@kopf.on.startup(id="configure")
async def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    """Have kopf watch and write nothing."""
    watch_only(settings)


@kopf.on.startup(id="start", errors=kopf.ErrorsMode.PERMANENT)
async def start(memo: kopf.Memo, **_: object) -> None:
    """Wait until the operator can work, then start its loops; kopf watches only after this."""
    try:
        if "runtime" not in memo:
            memo.runtime = await _runtime_of_kopf_run()
        runtime: OperatorRuntime = memo.runtime
        if runtime.settings.job_watch is JobWatchSource.KOPF:
            kopf.on.event(GROUP, VERSION, JOBS, id="job")(on_job)
        await runtime.start()
    except AsyncJobError as error:  # else kopf would log a traceback of what a person can mend
        raise kopf.PermanentError(message_of(error)) from error


@kopf.on.cleanup(id="stop", errors=kopf.ErrorsMode.PERMANENT)
async def stop(memo: kopf.Memo, **_: object) -> None:
    """End the loops in good order; by now kopf watches nothing any more."""
    await memo.runtime.stop()


@kopf.on.login(id="sign-in")
async def sign_in(memo: kopf.Memo, **_: object) -> kopf.AiohttpSession:
    """Give kopf connections that sign each request by itself, with a token that is new."""
    runtime: OperatorRuntime = memo.runtime
    return runtime.kopf_session.sign_in()


@kopf.on.probe(id="loops")
async def check_loops(memo: kopf.Memo, **_: object) -> str:
    """Answer `--liveness` as `/healthz` does: it fails if a loop no longer runs."""
    wrong = memo.runtime.operator.check_liveness()
    if wrong:
        raise kopf.PermanentError(wrong)
    return "ok"


@kopf.on.event(GROUP, VERSION, QUEUES, id="queue")
async def on_queue(event: kopf.RawEvent, memo: kopf.Memo, **_: object) -> None:
    """Take an AsyncQueue."""
    memo.runtime.operator.on_queue_event(event["type"], cast("JsonObject", event["object"]))


@kopf.on.event(GROUP, VERSION, CRON_JOBS, id="cron-job")
async def on_cron_job(event: kopf.RawEvent, memo: kopf.Memo, **_: object) -> None:
    """Take an AsyncCronJob."""
    memo.runtime.operator.on_cron_job_event(event["type"], cast("JsonObject", event["object"]))


@kopf.on.event(GROUP, VERSION, ARRAYS, id="array")
async def on_array(event: kopf.RawEvent, memo: kopf.Memo, **_: object) -> None:
    """Take an AsyncArray."""
    memo.runtime.operator.on_array_event(event["type"], cast("JsonObject", event["object"]))


async def on_job(event: kopf.RawEvent, memo: kopf.Memo, **_: object) -> None:
    """Take an AsyncJob; a handler with `--job-watch=kopf` only."""
    memo.runtime.operator.on_job_event(event["type"], cast("JsonObject", event["object"]))


async def _runtime_of_kopf_run() -> OperatorRuntime:
    settings = settings_from_environment()
    context = click.get_current_context(silent=True)
    watched = context.params.get("namespaces", ()) if context else settings.namespaces
    if set(watched) != set(settings.namespaces):
        raise kopf.PermanentError(
            f"kopf run watches {_listed(watched)}, and ASYNCJOB_OPERATOR_NAMESPACE says "
            f"{_listed(settings.namespaces)}: give both the same"
        )
    return OperatorRuntime(await load_access(settings.kubeconfig), settings)


def _listed(namespaces: tuple[str, ...]) -> str:
    return ", ".join(namespaces) or "all namespaces"
