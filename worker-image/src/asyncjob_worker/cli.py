"""Command line of the worker."""

import asyncio
import logging
import os
import signal
import sys
from typing import NoReturn

import click
import uvloop

from asyncjob.app import WorkerApp
from asyncjob.errors import AsyncJobError, ConfigError
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.claim import Holder
from asyncjob.logs import configure
from asyncjob_worker.loading import load_app
from asyncjob_worker.offload.config import OffloadSettings
from asyncjob_worker.offload.options import offload_options
from asyncjob_worker.settings import Settings, identify
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


@main.command(context_settings={"auto_envvar_prefix": "ASYNCJOB_WORKER"})
@click.argument("app", envvar="ASYNCJOB_WORKER_APP", default=BUILT_IN)
@click.option("--queue", default="default", show_default=True, help="Queue to serve.")
@click.option(
    "--concurrency",
    type=click.IntRange(min=0),
    default=0,
    help="Jobs at a time.  [default: usable CPUs]",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that running handlers get after SIGTERM.",
)
@click.option(
    "--stop-wait",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Seconds that a handler gets to stop before it is abandoned, or its process killed.",
)
@click.option(
    "--max-free-json",
    type=click.IntRange(min=0),
    default=256 * 1024,
    show_default=True,
    help="Largest checkpoint or result, in bytes.",
)
@click.option(
    "--jobs-per-process",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Jobs after which a handler's own process is replaced; 0: any number.",
)
@click.option("--kubeconfig", type=click.Path(), help="Cluster to use.  [default: as kubectl]")
@click.option("--namespace", help="Namespace to serve.  [default: the pod's]")
@click.option("--pod-name", envvar="POD_NAME", help="Name of this pod.")
@click.option("--pod-uid", envvar="POD_UID", help="UID of this pod.")
@click.option("--allow-unenforced", is_flag=True, help="Run where ownership is not enforced.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text")
@offload_options
def run(
    app: str,
    queue: str,
    concurrency: int,
    grace: float,
    stop_wait: float,
    max_free_json: int,
    jobs_per_process: int,
    kubeconfig: str | None,
    namespace: str | None,
    pod_name: str | None,
    pod_uid: str | None,
    allow_unenforced: bool,
    log_format: str,
    offload: OffloadSettings,
) -> None:
    """Run the handlers of APP, given as module:attribute; by default the built-in ones.

    APP can also be set by ASYNCJOB_WORKER_APP, each option by ASYNCJOB_WORKER_<OPTION>.
    """
    configure("json" if log_format == "json" else "text")
    settings = Settings(
        app=app,
        log_format="json" if log_format == "json" else "text",
        jobs_per_process=jobs_per_process,
        queue=queue,
        concurrency=concurrency,
        grace=grace,
        stop_wait=stop_wait,
        max_free_json=max_free_json,
        offload=offload,
        require_policy=not allow_unenforced,
    )
    try:
        holder = _holder(pod_name, pod_uid)
        loaded = load_app(app)
        code = uvloop.run(_serve(loaded, settings, holder, kubeconfig, namespace))
    except AsyncJobError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    sys.exit(code)


def _holder(pod_name: str | None, pod_uid: str | None) -> Holder:
    if not pod_name or not pod_uid:
        raise ConfigError(
            "POD_NAME and POD_UID are not set: the worker's pod takes them from its own "
            "metadata.name and metadata.uid; `make up` sets them for development"
        )
    return identify(pod_name, pod_uid)


async def _serve(
    app: WorkerApp,
    settings: Settings,
    holder: Holder,
    kubeconfig: str | None,
    namespace: str | None,
) -> int:
    access = await load_access(kubeconfig, namespace)
    connections = settings.slots() + SPARE_CONNECTIONS
    async with KubeSession(
        access, field_manager="asyncjob-worker", connections=connections
    ) as session:
        worker = Worker(app, settings, session, holder)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        code = 0 if await worker.run() else EXIT_RESTART
    if worker.leftovers:
        _exit_now(code)
    return code


def _exit_now(code: int) -> NoReturn:
    """Exit without waiting for handlers that ignore their stop, tasks or threads."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
