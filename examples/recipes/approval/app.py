"""`deploy.plan` says what would change, `deploy.apply` changes it, host by host."""

import asyncio
from pathlib import Path

from examples.handlers.places import replacing, target_path
from pydantic import BaseModel, ConfigDict, Field

from asyncjob import JobContext, WorkerApp

app = WorkerApp()


class Release(BaseModel):
    """What to install where; `pause` is how long a host takes, in seconds."""

    model_config = ConfigDict(extra="forbid")

    service: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    version: str
    hosts: list[str] = Field(min_length=1, max_length=100)
    pause: float = Field(default=0.0, ge=0, le=60)

    def file(self, host: str) -> Path:
        """Where the host says what it runs; here a file stands for the host."""
        return target_path(Path(".dev/out/hosts") / host / f"{self.service}.txt", ".txt")


@app.handler("deploy.plan", timeout=60)
def plan(job: JobContext, release: Release) -> list[str]:
    """Read what runs now, and change nothing."""
    lines: list[str] = []
    for host in release.hosts:
        file = release.file(host)
        now = file.read_text() if file.exists() else "nothing"
        lines.append(f"{host}: {release.service} {now} -> {release.version}")
    job.log.info("planned", changes=lines)
    return lines


@app.handler("deploy.apply", timeout=600)
async def apply(job: JobContext, release: Release) -> list[str]:
    """Install it on one host after the other; a later attempt leaves out those that are done."""
    done: list[str] = list(job.last_checkpoint or [])
    for host in release.hosts:
        if host not in done:
            await asyncio.sleep(release.pause)
            with replacing(release.file(host)) as file:
                file.write(release.version)
            done.append(host)
            await job.checkpoint(done)
            await job.progress(100 * len(done) / len(release.hosts), host)
    return done
