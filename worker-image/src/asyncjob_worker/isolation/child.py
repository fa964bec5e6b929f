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
from asyncjob.logs import configure
from asyncjob_worker.isolation import messages
from asyncjob_worker.isolation.inbox import Inbox
from asyncjob_worker.isolation.lifeline import leave, tie_to
from asyncjob_worker.isolation.link import Link
from asyncjob_worker.isolation.messages import Begin
from asyncjob_worker.isolation.service import Service
from asyncjob_worker.loading import load_app
from asyncjob_worker.tracing import tracing_of


def main() -> None:
    """Load the app, then run what the worker orders until it orders the end."""
    descriptor, worker = map(int, sys.argv[1:])
    tie_to(worker)
    faulthandler.enable()
    os.set_inheritable(descriptor, False)  # noqa: FBT003  # the standard library's own form
    link = Link(socket.socket(fileno=descriptor))
    begin = _begin(link)
    configure("json" if begin.log_format == "json" else "text")
    sys.path[:] = begin.path
    try:
        app = load_app(begin.app)
    except ConfigError as error:
        link.send(messages.unable(" ".join(str(error).split())))
        sys.exit(1)
    asyncio.run(_serve(app, link, begin))


def _begin(link: Link) -> Begin:
    message = next(link.messages(), None)
    if message is None:
        leave()
    return messages.read_begin(message)


async def _serve(app: WorkerApp, link: Link, begin: Begin) -> None:
    inbox = Inbox(link)
    inbox.start()
    tracing = tracing_of(os.environ)
    try:
        service = Service(app, link, max_free_json=begin.max_free_json, tracing=tracing)
        await service.run(inbox.orders)
    finally:
        tracing.close()


if __name__ == "__main__":
    main()
