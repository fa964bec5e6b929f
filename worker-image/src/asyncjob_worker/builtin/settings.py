"""What the environment allows the built-in handlers. Nothing is allowed that is not listed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from asyncjob.errors import ConfigError
from asyncjob_worker.builtin.programs.allowed import ProgramAllowList
from asyncjob_worker.builtin.web.hosts import ALLOW_VARIABLE as HTTP_ALLOW
from asyncjob_worker.builtin.web.hosts import HostAllowList, parse_host

EXEC_ALLOW = "ASYNCJOB_EXEC_ALLOW"
EXEC_PASS_ENV = "ASYNCJOB_EXEC_PASS_ENV"  # noqa: S105  # the name of a variable
EXEC_JOB_ENV = "ASYNCJOB_EXEC_JOB_ENV"
PASSED_BY_DEFAULT = "PATH LANG LC_ALL TZ"

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class BuiltInSettings:
    """Where `http` may call, and what `exec` may run."""

    hosts: HostAllowList
    programs: ProgramAllowList


def read_settings(environ: Mapping[str, str]) -> BuiltInSettings:
    """Read the variables, lists by commas or white space; raises ConfigError naming the bad one."""
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
        raise ConfigError(f"{EXEC_ALLOW}: {entry!r} is no absolute path of a program")
    return entry


def _read_names(environ: Mapping[str, str], variable: str, default: str = "") -> list[str]:
    names = _read_list(environ, variable, default)
    for name in names:
        if not _VARIABLE_NAME.fullmatch(name):
            raise ConfigError(f"{variable}: {name!r} is no name of an environment variable")
    return names


def _read_list(environ: Mapping[str, str], variable: str, default: str = "") -> list[str]:
    return environ.get(variable, default).replace(",", " ").split()
