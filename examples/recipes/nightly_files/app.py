"""`files.nightly` cuts a folder into parts, each a child job of the type `files.part`.

Which files a night has is decided once and kept in a file: a later attempt may see other files in
the folder, and has to submit the same children as the one before.
"""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

from examples.handlers.places import replacing, target_path
from pydantic import BaseModel, ConfigDict, Field

from asyncjob import Category, JobContext, RetryPolicy, WorkerApp

app = WorkerApp()

CHILDREN_HAVE_RETRIED = RetryPolicy(no_retry_on=[Category.DEPENDENCY])


class Night(BaseModel):
    """Which files, where the results go, and how many files make a part."""

    model_config = ConfigDict(extra="forbid")

    source: Path
    target: Path
    pattern: str = "*"
    part: int = Field(default=100, ge=1, le=1000)
    pause: float = Field(default=0.0, ge=0, le=60)


class Part(BaseModel):
    """Some of the files; `pause` is how long one takes, in seconds."""

    files: list[Path]
    target: Path
    pause: float = 0.0


class Done(BaseModel):
    """The result of a night."""

    night: str
    files: int
    parts: int


@app.handler("files.nightly", timeout=6 * 3600, retry=CHILDREN_HAVE_RETRIED)
async def nightly(job: JobContext, night: Night) -> Done:
    """Submit a child for each part, and wait for all of them."""
    date = (job.scheduled_time or datetime.now(UTC)).date().isoformat()
    plan = target_path(night.target / f"{job.uid}.json", ".json")
    files = await asyncio.to_thread(_files_of_the_night, night, plan)
    parts = [files[n : n + night.part] for n in range(0, len(files), night.part)]
    children = [
        await job.submit(
            "files.part",
            Part(files=part, target=night.target, pause=night.pause),
            key=f"part-{number}",
            queue="files",
        )
        for number, part in enumerate(parts)
    ]
    await job.gather(*children, check=True)
    return Done(night=date, files=len(files), parts=len(parts))


@app.handler("files.part", timeout=3600)
async def part(job: JobContext, part: Part) -> int:
    """Work on the files that have no result yet."""
    made = 0
    for number, file in enumerate(part.files, start=1):
        target = target_path(part.target / f"{file.name}.sha256", ".sha256")
        if not target.exists():
            await asyncio.sleep(part.pause)
            await asyncio.to_thread(_digest, file, target)
            made += 1
        await job.progress(100 * number / len(part.files), file.name)
    return made


def _files_of_the_night(night: Night, plan: Path) -> list[Path]:
    """Return what the first attempt has found."""
    if not plan.exists():
        found = sorted(file for file in night.source.rglob(night.pattern) if file.is_file())
        with replacing(plan) as stream:
            json.dump([str(file) for file in found], stream)
    return [Path(file) for file in json.loads(plan.read_text())]


def _digest(file: Path, target: Path) -> None:
    with replacing(target) as stream:
        stream.write(hashlib.sha256(file.read_bytes()).hexdigest())
