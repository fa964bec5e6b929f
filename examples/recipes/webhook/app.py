"""`push.build`: what is to happen for a push."""

from pydantic import BaseModel

from asyncjob import JobContext, WorkerApp

app = WorkerApp()


class Push(BaseModel):
    """The part of the message that the handler needs; the rest is ignored."""

    repository: str
    commit: str


@app.handler("push.build", timeout=900)
async def build(job: JobContext, push: Push) -> str:
    """Build it; here only a line says so."""
    job.log.info("building", repository=push.repository, commit=push.commit)
    return f"built {push.repository} at {push.commit}"
