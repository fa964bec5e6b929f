"""A worker app that knows one type of its own and none of the usual ones."""

from asyncjob import JobContext, WorkerApp
from support.apps.worker import traced

app = WorkerApp()


@app.handler("elsewhere")
async def elsewhere(job: JobContext) -> str:
    """Tell that this app has run the job."""
    with traced(job):
        return "elsewhere"
