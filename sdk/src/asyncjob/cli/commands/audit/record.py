"""`audit record`."""

import asyncio
import signal

import click

from asyncjob import __version__
from asyncjob.audit.history_file import (
    DIGESTS,
    STDIO,
    WHOLE,
    RecordingScope,
    open_for_recording,
)
from asyncjob.audit.recorder import HistoryRecorder
from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_all_namespaces
from asyncjob.cli.context import CliContext
from asyncjob.cli.durations import DurationParam
from asyncjob.cli.output.printer import note
from asyncjob.cli.output.tables import counted
from asyncjob.kube import KubeSession, load_access


@click.command(cls=SectionedCommand)
@click.argument("file", metavar="FILE")
@click.option("--append", is_flag=True, help="Go on in FILE if it exists.")
@click.option(
    "--payloads",
    is_flag=True,
    help="Record payloads, results and checkpoints; else digests stand in their place.",
)
@click.option("--for", "seconds", type=DurationParam(), help="End after this time.")
@with_all_namespaces
@click.pass_obj
def record(
    cli: CliContext,
    *,
    file: str,
    append: bool,
    payloads: bool,
    seconds: int | None,
    connection: ConnectionOptions,
) -> None:
    """Record every version of every job and array in FILE, until Ctrl-C or SIGTERM.

    Writes JSON lines, packed if FILE ends with .gz, readable only by you; - is stdout. Queues and
    cron jobs are recorded too. Takes the right to list and watch all four; without that to arrays
    the others are recorded. `audit check` judges what was recorded.

    \b
      asyncjob audit record -A history.jsonl.gz
      asyncjob audit record --for 10m history.jsonl
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    if connection.server:
        raise click.UsageError("a gateway shows no versions: leave --server out (--server '')")
    _logs_to_stderr()
    recording = _record(cli, connection, file, append=append, payloads=payloads, seconds=seconds)
    versions, gaps = asyncio.run(recording)
    noted = f", {counted(gaps, 'gap')}" if gaps else ""
    note(f"recorded {counted(versions, 'version')}{noted}{'' if file == STDIO else f' in {file}'}")


def _logs_to_stderr() -> None:
    from asyncjob.logs import configure_logging

    configure_logging()


async def _record(
    cli: CliContext,
    connection: ConnectionOptions,
    file: str,
    *,
    append: bool,
    payloads: bool,
    seconds: int | None,
) -> tuple[int, int]:
    """Record until stopped; returns how many versions, and how many gaps."""
    access = await load_access(connection.kubeconfig, connection.namespace, connection.context)
    namespace = "*" if connection.everywhere else access.namespace
    scope = RecordingScope(namespace, WHOLE if payloads else DIGESTS)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    with open_for_recording(file, append=append, scope=scope) as writer:
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, stopped.set)
        async with KubeSession(access, field_manager="asyncjob-cli") as session:
            recorder = HistoryRecorder(session, writer, scope, cli.now)
            for resource, error in (await recorder.check_access()).items():
                note(f"{resource} are not recorded, and their rules not judged: {error}")
            if seconds is not None:
                loop.call_later(seconds, stopped.set)
            await recorder.run(stopped, __version__, lambda: note(f"recording {scope}"))
    return writer.versions, recorder.gaps
