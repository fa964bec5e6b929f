"""Command line of the worker."""

import asyncio
import os
import signal
import sys

import click
import structlog
import uvloop

from asyncjob.app import WorkerApp
from asyncjob.errors import AsyncJobError, ConfigError
from asyncjob.kube import KubeSession, load_access
from asyncjob.lifecycle.claim import Holder
from asyncjob.logs import configure
from asyncjob_worker.loading import load_app
from asyncjob_worker.settings import Settings, identify
from asyncjob_worker.worker import Worker

log = structlog.get_logger()

EXIT_RESTART = 3
"""Exit code of a worker that wants to be started anew."""


@click.group(context_settings={"auto_envvar_prefix": "ASYNCJOB_WORKER"})
@click.version_option(package_name="asyncjob-worker")
def main() -> None:
    """Run handlers for AsyncJobs."""


@main.command()
@click.argument("app")
@click.option("--queue", default="default", show_default=True, help="Queue to serve.")
@click.option("--concurrency", type=int, default=0, help="Jobs at a time.  [default: usable CPUs]")
@click.option("--grace", type=float, default=30.0, show_default=True, help="Seconds to drain.")
@click.option("--kubeconfig", type=click.Path(), help="Cluster to use.  [default: as kubectl]")
@click.option("--namespace", help="Namespace to serve.  [default: the pod's]")
@click.option("--pod-name", envvar="POD_NAME", help="Name of this pod.")
@click.option("--pod-uid", envvar="POD_UID", help="UID of this pod.")
@click.option("--allow-unenforced", is_flag=True, help="Run where ownership is not enforced.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text")
def run(
    app: str,
    queue: str,
    concurrency: int,
    grace: float,
    kubeconfig: str | None,
    namespace: str | None,
    pod_name: str | None,
    pod_uid: str | None,
    allow_unenforced: bool,
    log_format: str,
) -> None:
    """Run the handlers of APP, given as module:attribute."""
    configure("json" if log_format == "json" else "text")
    settings = Settings(
        queue=queue, concurrency=concurrency, grace=grace, require_policy=not allow_unenforced
    )
    try:
        holder = _holder(pod_name, pod_uid)
        loaded = load_app(app)
        done = uvloop.run(_serve(loaded, settings, holder, kubeconfig, namespace))
    except AsyncJobError as error:
        raise click.ClickException(str(error)) from error
    sys.exit(0 if done else EXIT_RESTART)


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
) -> bool:
    access = await load_access(kubeconfig or os.environ.get("KUBECONFIG"), namespace)
    async with KubeSession(access, field_manager="asyncjob-worker") as session:
        worker = Worker(app, settings, session, holder)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        return await worker.run()
