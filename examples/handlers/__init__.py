"""The app of the example handlers: `asyncjob-worker run examples.handlers:app`."""

from examples.handlers import count, digest, outages, report

from asyncjob import WorkerApp

app = WorkerApp()
for part in (digest, report, outages, count):
    app.include(part.app)
