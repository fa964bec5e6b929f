"""Handlers are run without a worker: a context that takes notes, and a folder of one's own."""

import sys
from pathlib import Path

import pytest

from asyncjob.app import JobContext, JobInfo
from asyncjob.json_types import Json
from unit.examples.notes import ROOT, Notes, StartJob

# As a worker does it, which is started in the folder that its app lies in.
sys.path.append(str(ROOT))


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def start(notes: Notes) -> StartJob:
    def build(*, attempt: int = 1, checkpoint: Json = None) -> JobContext:
        info = JobInfo(
            namespace="default",
            name="job",
            uid="uid",
            type="type",
            queue="default",
            attempt=attempt,
            last_checkpoint=checkpoint,
        )
        return JobContext(info, notes, remaining=lambda: 60.0)

    return build


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
