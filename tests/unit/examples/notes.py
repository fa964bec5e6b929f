"""What stands in for the worker: it takes notes of what a handler reports."""

from collections.abc import Callable
from pathlib import Path

from asyncjob.app import JobContext
from asyncjob.json_types import Json

ROOT = Path(__file__).resolve().parents[3]

StartJob = Callable[..., JobContext]


class Notes:
    """What a handler has reported, in order."""

    def __init__(self) -> None:
        self.percents: list[int] = []
        self.checkpoints: list[Json] = []
        self.after_checkpoint: Callable[[int], None] = lambda _count: None

    def progress(self, percent: int, _message: str | None) -> None:
        self.percents.append(percent)

    def checkpoint(self, value: Json) -> None:
        self.checkpoints.append(value)
        self.after_checkpoint(len(self.checkpoints))
