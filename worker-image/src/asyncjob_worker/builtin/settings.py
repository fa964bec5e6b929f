"""What the environment allows the built-in handlers. Nothing is allowed that is not listed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from asyncjob.errors import ConfigError
from asyncjob_worker.builtin.programs.allowed import Programs
from asyncjob_worker.builtin.web.hosts import VARIABLE as HTTP_ALLOW
from asyncjob_worker.builtin.web.hosts import Hosts, parse_host

EXEC_ALLOW = "ASYNCJOB_EXEC_ALLOW"
EXEC_PASS_ENV = "ASYNCJOB_EXEC_PASS_ENV"  # noqa: S105  # the name of a variable
EXEC_JOB_ENV = "ASYNCJOB_EXEC_JOB_ENV"
PASSED_BY_DEFAULT = "PATH LANG LC_ALL TZ"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class BuiltInSettings:
    """Where `http` may call, and what `exec` may run."""

    hosts: Hosts
    programs: Programs


def read_settings(environ: Mapping[str, str]) -> BuiltInSettings:
    """Read the variables, lists by commas or white space; raises ConfigError naming the bad one."""
    passed = _names(environ, EXEC_PASS_ENV, PASSED_BY_DEFAULT)
    programs = Programs(
        paths=frozenset(_path(entry) for entry in _entries(environ, EXEC_ALLOW)),
        inherited={name: environ[name] for name in passed if name in environ},
        settable=frozenset(_names(environ, EXEC_JOB_ENV)),
    )
    return BuiltInSettings(_hosts(environ), programs)


def _hosts(environ: Mapping[str, str]) -> Hosts:
    try:
        return Hosts(tuple(parse_host(entry) for entry in _entries(environ, HTTP_ALLOW)))
    except ValueError as error:
        raise ConfigError(f"{HTTP_ALLOW}: {error}") from error


def _path(entry: str) -> str:
    if not entry.startswith("/") or entry != str(PurePosixPath(entry)) or ".." in entry.split("/"):
        raise ConfigError(f"{EXEC_ALLOW}: {entry!r} is no absolute path of a program")
    return entry


def _names(environ: Mapping[str, str], variable: str, default: str = "") -> list[str]:
    names = _entries(environ, variable, default)
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{variable}: {name!r} is no name of an environment variable")
    return names


def _entries(environ: Mapping[str, str], variable: str, default: str = "") -> list[str]:
    return environ.get(variable, default).replace(",", " ").split()
