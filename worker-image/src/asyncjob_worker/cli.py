"""Command line of the worker."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn

import click
import uvloop

from asyncjob.app import WorkerApp
from asyncjob.errors import AsyncJobError
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.claim import Holder
from asyncjob.logs import Format, configure
from asyncjob_worker.health_server import serving
from asyncjob_worker.loading import load_app
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.offload.options import offload_options
from asyncjob_worker.options import PREFIX, TerseCommand, all_options
from asyncjob_worker.reload import run_reloading
from asyncjob_worker.settings import Settings, identify
from asyncjob_worker.tracing import Tracing, tracing_of
from asyncjob_worker.worker import Worker

EXIT_RESTART = 3
"""Exit code of a worker that wants to be started anew."""

BUILT_IN = "asyncjob_worker.builtin:app"

SPARE_CONNECTIONS = 8
"""Besides one per slot: watches, announcements."""


@click.group()
@click.version_option(package_name="asyncjob-worker")
def main() -> None:
    """Run handlers for AsyncJobs."""


@main.command(cls=TerseCommand, context_settings={"auto_envvar_prefix": PREFIX})
@click.argument("app", envvar="ASYNCJOB_WORKER_APP", default=BUILT_IN)
@all_options
@offload_options
def run(*, app: str, reload: bool, log_format: Format, **given: Any) -> None:
    """Run the handlers of APP, given as module:attribute; by default the built-in ones.

    APP can also be set by ASYNCJOB_WORKER_APP, each option by ASYNCJOB_WORKER_<OPTION>.
    """
    configure(log_format)
    settings = Settings.of({**given, "app": app, "log_format": log_format})
    try:
        holder = identify(given["pod_name"], given["pod_uid"])
        if reload:
            run_reloading(app, sys.argv[1:], settings)
            return
        with _ending_on_sigterm():
            code = uvloop.run(_serve(load_app(app), settings, holder, given))
    except AsyncJobError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    sys.exit(code)


async def _serve(
    app: WorkerApp, settings: Settings, holder: Holder, given: Mapping[str, Any]
) -> int:
    access = await load_access(given["kubeconfig"], given["namespace"])
    metrics = Metrics()
    async with (
        KubeSession(
            access,
            field_manager="asyncjob-worker",
            connections=settings.slots() + SPARE_CONNECTIONS,
            observer=metrics.request,
        ) as session,
        _traced() as tracing,
    ):
        worker = Worker(app, settings, session, holder, metrics, tracing=tracing)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        with serving(settings, worker.health(), metrics.registry):
            code = 0 if await worker.run() else EXIT_RESTART
    if worker.leftovers:
        _exit_now(code)
    return code


@asynccontextmanager
async def _traced() -> AsyncIterator[Tracing]:
    """Trace as the app or the environment asks, and hand on the last spans in the end."""
    tracing = tracing_of(os.environ)
    try:
        yield tracing
    finally:
        await asyncio.to_thread(tracing.close)


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Heed SIGTERM from the import on, where it means nothing to a container's first process.

    Later the event loop does. A worker that missed it would claim jobs, and be killed with them.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: _exit_now(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit_now(code: int) -> NoReturn:
    """Exit without waiting for handlers that ignore their stop, tasks or threads."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
