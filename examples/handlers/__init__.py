"""The app of the example handlers: `asyncjob-worker run examples.handlers:app`."""

from importlib.util import find_spec

from examples.handlers import (
    api_call,
    count,
    digest,
    fulfilment,
    order_check,
    orders_import,
    outages,
    release,
    report,
    words,
)

from asyncjob import WorkerApp

app = WorkerApp()
for part in (
    digest,
    report,
    outages,
    count,
    fulfilment,
    order_check,
    orders_import,
    release,
    words,
    api_call,
):
    app.include(part.app)
# Only thumbnails take a library of their own, and the demo of `asyncjob dev` does without.
if find_spec("PIL"):
    from examples.handlers import thumbnails

    app.include(thumbnails.app)
