"""A child's main program: `python -m asyncjob_worker.isolation.child SOCKET WORKER-PID`.

Started by the worker, never by people. It imports the app by itself, and nothing that talks to the
API server.
"""

import asyncio
import faulthandler
import os
import socket
import sys

from asyncjob.app import WorkerApp
from asyncjob.errors import ConfigError
from asyncjob.logs import configure_logging
from asyncjob_worker.isolation import messages
from asyncjob_worker.isolation.inbox import MessageReader
from asyncjob_worker.isolation.lifeline import die_with, exit_group
from asyncjob_worker.isolation.link import WorkerConnection
from asyncjob_worker.isolation.messages import ProcessConfig
from asyncjob_worker.isolation.service import HandlerLoop
from asyncjob_worker.loading import load_app
from asyncjob_worker.tracing import tracing_of


def main() -> None:
    """Load the app, then run what the worker orders until it orders the end."""
    descriptor, worker = map(int, sys.argv[1:])
    die_with(worker)
    faulthandler.enable()
    os.set_inheritable(descriptor, False)  # noqa: FBT003  # the standard library's own form
    link = WorkerConnection(socket.socket(fileno=descriptor))
    begin = _receive_config(link)
    configure_logging("json" if begin.log_format == "json" else "text")
    sys.path[:] = begin.path
    try:
        app = load_app(begin.app)
    except ConfigError as error:
        link.send(messages.unable_message(" ".join(str(error).split())))
        sys.exit(1)
    asyncio.run(_serve(app, link, begin))


def _receive_config(connection: WorkerConnection) -> ProcessConfig:
    message = next(connection.messages(), None)
    if message is None:
        exit_group()
    return messages.read_begin(message)


async def _serve(app: WorkerApp, connection: WorkerConnection, config: ProcessConfig) -> None:
    inbox = MessageReader(connection)
    inbox.start()
    tracing = tracing_of(os.environ)
    try:
        service = HandlerLoop(app, connection, max_free_json=config.max_free_json, tracing=tracing)
        await service.run(inbox.runs)
    finally:
        tracing.close()


if __name__ == "__main__":
    main()
