"""The command `asyncjob-worker`.

It reads the options, builds the worker and runs it. When the worker has stopped, it exits the
process, even if handlers, tasks or threads still run in it.
"""

import asyncio
import atexit
import os
import signal
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from enum import IntEnum
from typing import Any, NoReturn

import click
import uvloop

from asyncjob.app import WorkerApp
from asyncjob.daemon_threads import run_in_daemon_thread
from asyncjob.errors import AsyncJobError, message_of
from asyncjob.kube import KubeSession, load_access
from asyncjob.kube.access import ClusterAccess
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.logs import LogFormat, configure_logging
from asyncjob_worker.app_loader import load_app, run_reloading
from asyncjob_worker.health import serve_health
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.options import TerseCommand, all_options, offload_options
from asyncjob_worker.settings import Settings, identify
from asyncjob_worker.tracing import Tracing, tracing_of
from asyncjob_worker.worker import Worker


class WorkerExitCode(IntEnum):
    """How the worker ends; `asyncjob explain` says more of each."""

    STOPPED = 0
    FAILED = 1
    USAGE = 2
    """Given by click."""

    RESTART = 3
    """The worker asks to be restarted."""


BUILT_IN_APP = "asyncjob_worker.builtin:app"

EXIT_CALLS_SECONDS = 3.0
"""How long the calls registered with `atexit` may take in all, flushing of logs included."""

TRACING_CLOSE_SECONDS = 10.0
"""How long the export of the last spans may take."""

SPARE_CONNECTIONS = 8
"""Connections beside one per slot: for the watches and the worker's own Lease."""


@click.group()
@click.version_option(package_name="asyncjob-worker")
def main() -> None:
    """Run handlers for AsyncJobs."""


@main.command(cls=TerseCommand)
@click.argument("app", envvar="ASYNCJOB_WORKER_APP", default=BUILT_IN_APP)
@all_options
@offload_options
def run(*, app: str, reload: bool, log_format: LogFormat, **options: Any) -> None:
    """Run the handlers of APP, given as module:attribute; by default the built-in ones.

    APP can also be set by ASYNCJOB_WORKER_APP, each option by ASYNCJOB_WORKER_<OPTION>.
    """
    configure_logging(log_format)
    settings = Settings.from_options({**options, "app": app, "log_format": log_format})
    try:
        holder = identify(options["pod_name"], options["pod_uid"])
        if reload:
            run_reloading(app, sys.argv[1:], settings)
            return
        with _exit_on_sigterm():
            uvloop.run(_serve_and_exit(load_app(app), settings, holder, options))
    except AsyncJobError as error:
        raise _explain(error) from error


async def _serve_and_exit(
    app: WorkerApp, settings: Settings, holder: LeaseHolder, options: Mapping[str, Any]
) -> NoReturn:
    """Run the worker, then exit the process without waiting for anything that still runs in it.

    Threads that hang, and tasks that ignore their cancellation, would keep the event loop and
    Python from ending, and the container from being restarted.
    """
    access = await load_access(options["kubeconfig"], options["namespace"])
    code = WorkerExitCode.FAILED
    try:
        code = await _serve(app, settings, holder, access)
    except AsyncJobError as error:
        _explain(error).show()
    except BaseException:  # noqa: BLE001  # the process ends with it, in the next line
        traceback.print_exc()
    _exit_now(code)


async def _serve(
    app: WorkerApp, settings: Settings, holder: LeaseHolder, access: ClusterAccess
) -> WorkerExitCode:
    metrics = Metrics()
    async with (
        KubeSession(
            access,
            field_manager="asyncjob-worker",
            connections=settings.slots() + SPARE_CONNECTIONS,
            observer=metrics.request,
        ) as session,
        _tracing() as tracing,
    ):
        worker = Worker(app, settings, session, holder, metrics=metrics, tracing=tracing)
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, worker.stop)
        with serve_health(settings, worker.health(), metrics.registry):
            return WorkerExitCode.STOPPED if await worker.run() else WorkerExitCode.RESTART


@asynccontextmanager
async def _tracing() -> AsyncIterator[Tracing]:
    """Trace as the app or the environment configures it; export the last spans at the end."""
    tracing = tracing_of(os.environ)
    try:
        yield tracing
    finally:
        # Not in the loop's own threads: handlers may have left all of them hanging.
        closing = run_in_daemon_thread(tracing.close, "tracing")
        await asyncio.wait({closing}, timeout=TRACING_CLOSE_SECONDS)


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Exit on SIGTERM while the app is imported and the worker built.

    A container's first process ignores SIGTERM unless it installs a handler. Later the event loop
    has one. A worker that missed the signal would claim jobs and be killed while they run.
    """
    previous = signal.signal(signal.SIGTERM, lambda *_: _exit_now(WorkerExitCode.STOPPED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _explain(error: AsyncJobError) -> click.ClickException:
    return click.ClickException(message_of(error))


def _exit_now(code: int) -> NoReturn:
    """Exit without waiting for handlers that ignore their stop, for tasks or for threads."""
    exit_calls = threading.Thread(target=_run_exit_calls, name="last-calls", daemon=True)
    exit_calls.start()
    exit_calls.join(EXIT_CALLS_SECONDS)
    os._exit(code)


def _run_exit_calls() -> None:
    """Call what is registered with `atexit`, which `os._exit` skips, and flush the output."""
    try:
        atexit._run_exitfuncs()  # noqa: SLF001  # there is no public way
        sys.stderr.flush()
    finally:
        sys.stdout.flush()
