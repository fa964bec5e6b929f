"""The app with the built-in handlers, its settings, and the handlers `echo` and `sleep`.

`echo` shows that queue, worker and result work; `sleep` is for trying out priorities, cancels,
drains and recovery. Environment variables list the hosts and programs that `http` and `exec` may
use; all others are refused.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pydantic import Field, JsonValue

from asyncjob import JobContext, WorkerApp
from asyncjob.errors import ConfigError
from asyncjob_worker.builtin.errors import BuiltInError
from asyncjob_worker.builtin.exec_handler import ProgramAllowList, exec_handler
from asyncjob_worker.builtin.http_allowlist import ALLOW_VARIABLE as HTTP_ALLOW
from asyncjob_worker.builtin.http_allowlist import HostAllowList, parse_host
from asyncjob_worker.builtin.http_handler import http_handler
from asyncjob_worker.builtin.model import BuiltInModel

STEPS = 100
"""Greatest number of steps, of one percent each; short sleeps have fewer."""

MIN_STEP_SECONDS = 1.0
"""Reports are stored at most once a second by default."""

MAX_SLEEP_SECONDS = 7 * 24 * 3600

EXEC_ALLOW = "ASYNCJOB_EXEC_ALLOW"
EXEC_PASS_ENV = "ASYNCJOB_EXEC_PASS_ENV"  # noqa: S105  # the name of a variable
EXEC_JOB_ENV = "ASYNCJOB_EXEC_JOB_ENV"
PASSED_BY_DEFAULT = "PATH LANG LC_ALL TZ"

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def build_app(environ: Mapping[str, str]) -> WorkerApp:
    """Return the app with the handlers that the environment allows.

    `exec` is only added where programs are allowed: elsewhere jobs of that type are left to workers
    that may run them, instead of being claimed and refused. Raises ConfigError, which names the
    variable that is wrong.
    """
    settings = read_settings(environ)
    app = WorkerApp()
    app.handler("echo")(echo)
    app.handler("sleep")(sleep)
    app.handler("http")(http_handler(settings.hosts))
    if settings.programs.paths:
        app.handler("exec")(exec_handler(settings.programs))
    for error_type in BuiltInError.__subclasses__():
        app.categorize(error_type, error_type.category)
    return app


@dataclass(frozen=True, slots=True)
class BuiltInSettings:
    """Where `http` may call, and what `exec` may run."""

    hosts: HostAllowList
    programs: ProgramAllowList


def read_settings(environ: Mapping[str, str]) -> BuiltInSettings:
    """Read the variables, which are lists separated by commas or white space.

    Raises ConfigError, which names the variable that is wrong.
    """
    passed = _read_names(environ, EXEC_PASS_ENV, PASSED_BY_DEFAULT)
    programs = ProgramAllowList(
        paths=frozenset(_check_path(entry) for entry in _read_list(environ, EXEC_ALLOW)),
        inherited={name: environ[name] for name in passed if name in environ},
        settable=frozenset(_read_names(environ, EXEC_JOB_ENV)),
    )
    return BuiltInSettings(_read_hosts(environ), programs)


def _read_hosts(environ: Mapping[str, str]) -> HostAllowList:
    try:
        return HostAllowList(tuple(parse_host(entry) for entry in _read_list(environ, HTTP_ALLOW)))
    except ValueError as error:
        raise ConfigError(f"{HTTP_ALLOW}: {error}") from error


def _check_path(entry: str) -> str:
    if not entry.startswith("/") or entry != str(PurePosixPath(entry)) or ".." in entry.split("/"):
        raise ConfigError(f"{EXEC_ALLOW}: {entry!r} is not an absolute path of a program")
    return entry


def _read_names(environ: Mapping[str, str], variable: str, default: str = "") -> list[str]:
    names = _read_list(environ, variable, default)
    for name in names:
        if not _VARIABLE_NAME.fullmatch(name):
            raise ConfigError(f"{variable}: {name!r} is not the name of an environment variable")
    return names


def _read_list(environ: Mapping[str, str], variable: str, default: str = "") -> list[str]:
    return environ.get(variable, default).replace(",", " ").split()


async def echo(job: JobContext, payload: JsonValue = None) -> JsonValue:  # noqa: ARG001  # a handler
    """Return the payload as it is."""
    return payload


class Sleep(BuiltInModel):
    """Payload."""

    seconds: float = Field(ge=0, le=MAX_SLEEP_SECONDS, allow_inf_nan=False)


class Slept(BuiltInModel):
    """Result, and checkpoint: seconds slept in all attempts so far."""

    slept: float = Field(default=0.0, ge=0)


async def sleep(job: JobContext, payload: Sleep) -> Slept:
    """Sleep for the seconds that earlier attempts have left.

    By the event loop's clock, so that a test can make time pass at once.
    """
    return await sleep_in_steps(
        job, payload.seconds, asyncio.get_running_loop().time, asyncio.sleep
    )


async def sleep_in_steps(
    job: JobContext,
    seconds: float,
    clock: Callable[[], float],
    pause: Callable[[float], Awaitable[object]],
) -> Slept:
    """Sleep in steps, with progress and a checkpoint after each; `clock` and `pause` in seconds."""
    started = clock() - Slept.model_validate(job.last_checkpoint or {}).slept
    step = max(MIN_STEP_SECONDS, seconds / STEPS)
    while (left := started + seconds - clock()) > 0:
        await pause(min(step, left))
        slept = min(clock() - started, seconds)
        await job.checkpoint(Slept(slept=slept))
        await job.progress(100 * slept / seconds, f"slept {slept:.0f} of {seconds:g} s")
    return Slept(slept=seconds)
