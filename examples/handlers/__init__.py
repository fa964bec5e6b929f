"""The app of the example handlers: `asyncjob-worker run examples.handlers:app`."""

from examples.handlers import (
    api_call,
    count,
    digest,
    orders_import,
    outages,
    report,
    thumbnails,
    words,
)

from asyncjob import WorkerApp

app = WorkerApp()
for part in (digest, report, outages, count, thumbnails, orders_import, words, api_call):
    app.include(part.app)
