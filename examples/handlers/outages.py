"""`flaky.call` and `always.fails`: what retries are for, and what they cannot help."""

from pydantic import BaseModel, Field

from asyncjob import JobContext, WorkerApp

app = WorkerApp()


class FlakyCall(BaseModel):
    """A service that is away for a while."""

    failures: int = Field(default=2, ge=0)


class Answer(BaseModel):
    """What the service said in the end."""

    answer: str
    attempt: int


@app.handler("flaky.call")
async def flaky_call(job: JobContext, call: FlakyCall) -> Answer:
    """Fail in the first attempts, then answer."""
    if job.attempt <= call.failures:
        raise ConnectionError(f"attempt {job.attempt}: connection refused")
    return Answer(answer="pong", attempt=job.attempt)


@app.handler("always.fails")
async def always_fails(job: JobContext) -> None:
    """Fail in every attempt."""
    raise RuntimeError(f"attempt {job.attempt}: this never works")
