"""Payload and result of `exec`. Pure."""

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from asyncjob_worker.builtin.bounded import Head, fit_json
from asyncjob_worker.builtin.model import BuiltInModel


def _no_null(text: str) -> str:
    if "\0" in text:
        raise ValueError("a null character cannot be passed to a program")
    return text


Argument = Annotated[str, Field(max_length=32_768), AfterValidator(_no_null)]


class ExecCall(BuiltInModel):
    """What to run."""

    argv: list[Argument] = Field(min_length=1, max_length=256)
    """The program by its absolute path, then its arguments. No shell reads them."""

    stdin: str = Field(default="", max_length=262_144)
    env: dict[Argument, Argument] = Field(default_factory=dict, max_length=64)
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """None leaves it to the job's execution timeout."""

    max_output_bytes: int = Field(default=32 * 1024, ge=0, le=96 * 1024)
    """How much of stdout, and how much of stderr, to keep, counted as JSON."""

    @field_validator("argv")
    @classmethod
    def _check_program(cls, argv: list[str]) -> list[str]:
        if not argv[0].startswith("/"):
            raise ValueError(f"{argv[0]!r} is no absolute path: programs are not searched for")
        return argv


class Output(BuiltInModel):
    """The beginning of what a program wrote."""

    text: str
    truncated: bool
    size: int
    """Bytes in all, kept or not."""


class ExecResult(BuiltInModel):
    """How the program ended."""

    exit_code: int
    stdout: Output
    stderr: Output
    seconds: float


def output_of(head: Head, limit: int) -> Output:
    """Return the kept beginning as text; what is no UTF-8 is replaced."""
    text = head.data.decode("utf-8", "replace")
    kept = fit_json(text, limit + 2)
    return Output(text=kept, truncated=head.is_truncated or len(kept) < len(text), size=head.size)
