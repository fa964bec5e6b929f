"""`files.digest`: SHA-256 and line statistics of every file, one checkpoint per file."""

import hashlib
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from asyncjob import Category, Fail, JobContext, WorkerApp

app = WorkerApp()

MAX_FILES = 1000
"""More lines than these would not fit into a checkpoint or a result."""


class DigestRequest(BaseModel):
    """Which files: all below `folder` that match `pattern`, or the listed ones."""

    model_config = ConfigDict(extra="forbid")

    folder: Path | None = None
    pattern: str = "*"
    files: list[Path] = Field(default_factory=list, max_length=MAX_FILES)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.folder is None) == (not self.files):
            raise ValueError("give either folder or files")
        return self

    def paths(self) -> list[Path]:
        """Return the files in an order that every attempt shares."""
        if self.folder is None:
            return self.files
        if not self.folder.is_dir():
            raise NotADirectoryError(f"no folder {self.folder}")
        found = sorted(path for path in self.folder.rglob(self.pattern) if path.is_file())
        if len(found) > MAX_FILES:
            message = f"{self.folder} has {len(found)} files, more than {MAX_FILES}: use pattern"
            raise Fail(message, category=Category.VALIDATION)
        return found


class FileDigest(BaseModel):
    """One line of the table."""

    file: str
    sha256: str
    size: int
    lines: int
    blank: int
    longest: int


class DigestTable(BaseModel):
    """The result: a line per file, and the sums."""

    files: list[FileDigest]
    size: int
    lines: int


class Checkpoint(BaseModel):
    """What an attempt leaves for the next one: the lines it has finished."""

    done: list[FileDigest] = Field(default_factory=list)


@app.handler("files.digest", timeout=600)
def digest_files(job: JobContext, request: DigestRequest) -> DigestTable:
    """Digest the files one by one; those in the checkpoint are not read again."""
    paths = request.paths()
    saved = Checkpoint.model_validate(job.last_checkpoint or {})
    known = {row.file: row for row in saved.done}
    rows: list[FileDigest] = []
    for number, path in enumerate(paths, start=1):
        if job.cancelled:
            break
        rows.append(known.get(path.as_posix()) or digest(path))
        job.checkpoint(Checkpoint(done=rows))
        job.progress(100 * number / len(paths), path.name)
    return DigestTable(
        files=rows, size=sum(row.size for row in rows), lines=sum(row.lines for row in rows)
    )


def digest(path: Path) -> FileDigest:
    """Read one file line by line, so that its size does not matter."""
    checksum = hashlib.sha256()
    size = lines = blank = longest = 0
    with path.open("rb") as stream:
        for line in stream:
            checksum.update(line)
            size += len(line)
            lines += 1
            blank += not line.strip()
            longest = max(longest, len(line.rstrip(b"\r\n")))
    return FileDigest(
        file=path.as_posix(),
        sha256=checksum.hexdigest(),
        size=size,
        lines=lines,
        blank=blank,
        longest=longest,
    )
