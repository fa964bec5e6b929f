"""Every error that a test meets has a code that the catalogue explains.

What is looked at: the code in each message of command line, worker, operator and gateway, the exit
code of each command, and the type of each problem that a gateway answers, in any process.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx
import pytest

from asyncjob import errors
from asyncjob.cli import entry
from asyncjob.errors import AsyncJobError
from asyncjob.explanations.catalog import catalog
from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE


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


@contextmanager
def all_errors_explained() -> Iterator[None]:
    """Check every error while inside."""
    code_of, report = errors.code_of, entry._report_error
    read, aread = httpx.Response.read, httpx.Response.aread

    def code_of_and_check(error: AsyncJobError) -> str:
        code = code_of(error)
        check_code(code)
        return code

    def report_and_check(error: BaseException, name: str) -> int:
        code = report(error, name)
        check_code(f"exit-{int(code)}")
        return code

    def read_and_check(response: httpx.Response) -> bytes:
        content = read(response)
        check_problem(response)
        return content

    async def aread_and_check(response: httpx.Response) -> bytes:
        content = await aread(response)
        check_problem(response)
        return content

    with pytest.MonkeyPatch.context() as patch:
        set_all: dict[tuple[Any, str], Any] = {
            (errors, "code_of"): code_of_and_check,
            (entry, "_report_error"): report_and_check,
            (httpx.Response, "read"): read_and_check,
            (httpx.Response, "aread"): aread_and_check,
        }
        for (where, name), value in set_all.items():
            patch.setattr(where, name, value)
        yield
