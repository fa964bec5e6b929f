"""`words.count`: the words of a folder, counted by a child job for each file.

The parent only splits, waits and adds up. Should it die half-way, its next attempt submits the same
children again, by the same keys, and so finds those it has: no file is counted twice.
"""

import asyncio
import re
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from asyncjob import Category, Fail, JobContext, RetryPolicy, WorkerApp

app = WorkerApp()

WORD = re.compile(r"\w+")
MAX_FILES = 1000
MAX_WORDS = 5000
"""Different words that a child tells, the most frequent first: a result takes 256 KiB."""

CHILDREN_HAVE_RETRIED = RetryPolicy(no_retry_on=[Category.DEPENDENCY])
"""A child that is a dead letter has had its own retries: the parent's would change nothing."""


class FolderOfWords(BaseModel):
    """Which folder, which files in it, and how many of the most frequent words to tell."""

    model_config = ConfigDict(extra="forbid")

    folder: Path
    pattern: str = "*.txt"
    top: int = Field(default=5, ge=1, le=100)


class FileOfWords(BaseModel):
    """One file of these."""

    file: Path


class Words(BaseModel):
    """How many words there are, and how often each is found."""

    total: int
    frequency: dict[str, int]


class FolderCount(BaseModel):
    """The result: all words, and the most frequent ones with their numbers."""

    files: int
    total: int
    top: list[tuple[str, int]]


@app.handler("words.count", timeout=600, retry=CHILDREN_HAVE_RETRIED)
async def count_words(job: JobContext, request: FolderOfWords) -> FolderCount:
    """Have each file counted, in a queue of their own, whose workers the parents leave alone."""
    files = await asyncio.to_thread(_files, request)
    children = [
        await job.submit("words.count-file", FileOfWords(file=file), key=str(file), queue="words")
        for file in files
    ]
    views = await job.gather(*children, check=True)
    total, frequency = 0, Counter[str]()
    for words in (Words.model_validate(view.result) for view in views):
        total += words.total
        frequency.update(words.frequency)
    await job.progress(100, f"{len(views)} of {len(children)} files")
    return FolderCount(files=len(children), total=total, top=frequency.most_common(request.top))


@app.handler("words.count-file", timeout=60)
def count_words_of_file(job: JobContext, request: FileOfWords) -> Words:
    """Count the words of one file, line by line."""
    frequency: Counter[str] = Counter()
    with request.file.open(encoding="utf-8") as lines:
        for line in lines:
            frequency.update(WORD.findall(line.lower()))
    job.log.info("words counted", file=str(request.file), total=frequency.total())
    return Words(total=frequency.total(), frequency=dict(frequency.most_common(MAX_WORDS)))


def _files(request: FolderOfWords) -> list[Path]:
    found = sorted(request.folder.rglob(request.pattern))
    if not 0 < len(found) <= MAX_FILES:
        message = f"{request.folder} has {len(found)} files, not 1 to {MAX_FILES}"
        raise Fail(message, category=Category.VALIDATION)
    return found
