"""Every error that a test meets has a code that the catalogue explains.

What is looked at: each error of ours that is made, shown or not; the code in each message of
command line, development server, worker, operator and gateway; the reason of each Event; how each
of these programs ends, here or as a process; and the type of each problem that a gateway answers,
in any process.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from subprocess import Popen
from typing import Any

import httpx
import pytest

from asyncjob import errors
from asyncjob.cli import entry
from asyncjob.cli.doctor import findings
from asyncjob.cli.doctor.findings import Finding
from asyncjob.errors import AsyncJobError
from asyncjob.explanations.catalog import catalog
from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE
from asyncjob_dev.errors import DevError
from asyncjob_operator.core.events import KubernetesEvent

PACKAGES = ("asyncjob", "asyncjob_worker", "asyncjob_operator", "asyncjob_gateway", "asyncjob_dev")
MAX_WORDS_BEFORE = 2
"""An interpreter may stand before the program."""


@cache
def known_codes() -> frozenset[str]:
    """Return all codes of the catalogue."""
    return frozenset(one.code for one in catalog())


def check_code(code: str) -> None:
    """Fail where the catalogue does not know the code."""
    assert code in known_codes(), f"asyncjob explain does not know {code!r}"


def check_problem(response: httpx.Response) -> None:
    """Fail where a problem is of a type that the catalogue does not know."""
    if response.headers.get("content-type", "").startswith(PROBLEM_CONTENT_TYPE):
        kind = json.loads(response.content).get("type", "about:blank")
        check_code(kind.rpartition("/")[2])


PROGRAMS: Mapping[str, str] = {
    "asyncjob": "",
    "asyncjob-worker": "worker-",
    "asyncjob-operator": "operator-",
    "asyncjob-gateway": "gateway-",
}
"""Programs, and how their exit codes begin in the catalogue."""


def is_ours(kind: type) -> bool:
    """Return whether users may meet the error: it is not one of a test."""
    return kind.__module__.partition(".")[0] in PACKAGES


def check_end(arguments: object, code: int) -> None:
    """Fail where one of our programs ends with a code that nobody explains; a signal is none."""
    words = list(arguments) if isinstance(arguments, list | tuple) else []
    for word in map(str, words[:MAX_WORDS_BEFORE]):
        if (name := word.rpartition("/")[2]) in PROGRAMS and code >= 0:
            check_code(f"{PROGRAMS[name]}exit-{code}")


def then(function: Callable[..., Any], check: Callable[..., None]) -> Callable[..., Any]:
    """Return the function, with a look at what it returns and takes."""

    def both(*given: Any, **named: Any) -> Any:
        result = function(*given, **named)
        check(result, *given)
        return result

    return both


def check_error(_: None, error: AsyncJobError | DevError, *__: object) -> None:
    """Fail where an error that users may meet has a code that the catalogue does not know."""
    if is_ours(type(error)):
        check_code(error.code)


CHECKS: tuple[tuple[Any, str, Callable[..., None]], ...] = (
    (AsyncJobError, "__init__", check_error),
    (DevError, "__init__", check_error),
    (errors, "code_of", lambda code, _: check_code(code)),
    (errors, "explain_command", lambda _, code, *__: check_code(code)),
    (findings, "explain_command", lambda _, code, *__: check_code(code)),
    (Finding, "__init__", lambda _, finding, *__: check_code(finding.code or "exit-0")),
    (entry, "_report_error", lambda code, *_: check_code(f"exit-{int(code)}")),
    (KubernetesEvent, "__init__", lambda _, event, *__: check_code(event.reason)),
    (Popen, "wait", lambda code, process, *_: check_end(process.args, code)),
    (httpx.Response, "read", lambda _, response: check_problem(response)),
)
"""What is looked at: where it is, its name, and what is asked of its result and arguments."""


@contextmanager
def all_errors_explained() -> Iterator[None]:
    """Check every error while inside."""
    aread = httpx.Response.aread

    async def aread_and_check(response: httpx.Response) -> bytes:
        content = await aread(response)
        check_problem(response)
        return content

    with pytest.MonkeyPatch.context() as patch:
        for where, name, check in CHECKS:
            patch.setattr(where, name, then(getattr(where, name), check))
        patch.setattr(httpx.Response, "aread", aread_and_check)
        yield
