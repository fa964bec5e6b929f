"""The app of the example handlers: `asyncjob-worker run examples.handlers:app`."""

from importlib.util import find_spec

from examples.handlers import (
    api_call,
    count,
    digest,
    fulfilment,
    orders_import,
    outages,
    report,
    words,
)

from asyncjob import WorkerApp

app = WorkerApp()
for part in (digest, report, outages, count, fulfilment, orders_import, words, api_call):
    app.include(part.app)
# Only thumbnails take a library of their own, and the demo of `asyncjob dev` does without.
if find_spec("PIL"):
    from examples.handlers import thumbnails

    app.include(thumbnails.app)
