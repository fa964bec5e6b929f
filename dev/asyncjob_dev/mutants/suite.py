"""The tests that mutants are tried on: collected once, and which lines each of them reaches."""

import gc
import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, NoReturn

import coverage
import pytest
from hypothesis import Phase, settings

from asyncjob_dev.mutants.forks import Verdict
from asyncjob_dev.mutants.reach import IMPORT, Reach, file_of

PYTEST_OPTIONS: Final = (
    "-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--timeout=600",
    "-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
    "-W", "ignore::pytest.PytestUnraisableExceptionWarning",
)  # fmt: skip
_EXAMPLES: Final = 50
_STORE_SECONDS: Final = 15.0
"""Of processor time after which what has been measured is stored: a run may be cut off."""

_BASE_SECONDS: Final = 2.0
_FACTOR: Final = 5.0
"""How much longer than on the unchanged code a test may take."""

_SETTINGS: Final = "_hypothesis_internal_use_settings"


class Suite:
    """A pytest plugin that collects, and then does what it is told instead of running all tests."""

    def __init__(self, loop: Callable[["Suite"], None]) -> None:
        self._loop = loop
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._caches: list[Any] = []
        self._stop_at_failure = False
        self._failed: set[str] = set()
        self._seconds: dict[str, float] = {}
        self._running = ""
        self._on_failure: Callable[[str], object] = str

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Index what was collected, and hand over; if a file cannot be imported, pytest fails."""
        if session.testsfailed:
            return True
        self._items = {item.nodeid: item for item in session.items}
        for item in session.items:
            _without_chance(item)
        self._loop(self)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """End the child at its first failure, before pytest words it, which takes longest."""
        try:
            return (yield)
        except Exception:
            if self._stop_at_failure:
                self._end()
            raise

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what did not pass; end the child if it failed in another way or place."""
        if report.failed or report.skipped:
            self._failed.add(report.nodeid)
        if report.failed and self._stop_at_failure:
            self._end()

    def _end(self) -> NoReturn:
        self._on_failure(self._running)
        os._exit(Verdict.KILLED)

    def run(
        self, tests: Iterable[tuple[str, float]], on_failure: Callable[[str], object]
    ) -> Verdict:
        """Run tests, each with the seconds it takes, in this process; a failure ends it.

        A test that needs far more processor time is in a loop, and a signal ends the process.
        """
        self._stop_at_failure, self._on_failure = True, on_failure
        found = {item: seconds for test, seconds in tests for item in self._named(test)}
        items = list(found.items())
        for number, (item, seconds) in enumerate(items):
            signal.setitimer(signal.ITIMER_PROF, _BASE_SECONDS + _FACTOR * seconds)
            self._running = item.nodeid
            following = items[number + 1][0] if number + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return Verdict.SURVIVED

    def _named(self, test: str) -> list[pytest.Item]:
        """Return the test; if there is none, all others of its function.

        A number that is a parameter stands in the test's name, and a mutant may have changed it.
        """
        if test in self._items:
            return [self._items[test]]
        function = test.partition("[")[0]
        return [item for name, item in self._items.items() if name.partition("[")[0] == function]

    def measure(
        self,
        recorder: coverage.Coverage,
        root: Path,
        modules: Sequence[str],
    ) -> Iterator[tuple[Reach, set[str]]]:
        """Run every test in this process; give out, now and then, what has been reached so far.

        With it, the files whose tests have all been run.
        """
        stored = time.process_time()
        items = list(self._items.values())
        files: set[str] = set()
        for item, following in zip(items, [*items[1:], None], strict=True):
            recorder.switch_context(item.nodeid)
            began = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._seconds[item.nodeid] = time.process_time() - began
            if following is None or file_of(following.nodeid) != file_of(item.nodeid):
                files.add(file_of(item.nodeid))
                if following is None or time.process_time() > stored + _STORE_SECONDS:
                    recorder.stop()
                    yield self._reached(recorder, root, modules), files
                    recorder.start()
                    stored = time.process_time()

    def _reached(self, recorder: coverage.Coverage, root: Path, modules: Sequence[str]) -> Reach:
        passed = {test: s for test, s in self._seconds.items() if test not in self._failed}
        data, lines, imported = recorder.get_data(), {}, {}
        for module in modules:
            contexts = data.contexts_by_lineno(str(root / module))
            lines[module] = {
                line: [test for test in tests if test in passed] for line, tests in contexts.items()
            }
            imported[module] = sorted(line for line, by in contexts.items() if IMPORT in by)
        return Reach(passed, lines, imported)

    def index_functions(self, files: Sequence[str]) -> None:
        """Find every function of the files that is alive, wherever it is kept."""
        wanted = set(files)
        gc.unfreeze()  # what is frozen, as the tests have it done, is not among the objects
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename in wanted:
                self._functions.setdefault(_identity(thing.__code__), []).append(thing)
            elif type(thing).__name__ == "_lru_cache_wrapper" and _is_ours(thing.__wrapped__):
                self._caches.append(thing)
        gc.freeze()  # children share what they only read

    def take_over(self, module: CodeType, function: str) -> bool:
        """Give the functions of that name their code in the changed module; False if none live."""
        found = False
        for code in _codes(module):
            if code.co_qualname != function:
                continue
            for living in self._functions.get(_identity(code), ()):
                living.__code__ = code
                found = True
        for cache in self._caches:
            cache.cache_clear()
        return found


def _identity(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _is_ours(function: Any) -> bool:
    """Return whether it is no library's: to fill the caches of those again takes long."""
    code = getattr(function, "__code__", None)
    return code is not None and "/lib/python" not in code.co_filename


def _codes(code: CodeType) -> Iterable[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _without_chance(item: pytest.Item) -> None:
    """Have a property try the same examples each time, store none and not look for smaller ones."""
    function: Any = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    if not getattr(function, "is_hypothesis_test", False):
        return
    known = getattr(function, _SETTINGS, None) or settings()
    steady = settings(
        known,
        max_examples=min(known.max_examples, _EXAMPLES),
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        report_multiple_bugs=False,
    )
    setattr(function, _SETTINGS, steady)


def collect(folders: Sequence[str], suite: Suite) -> int:
    """Collect the tests of folders or files, and have the suite do what it was made for."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others take a second, and add nothing
    return int(pytest.main([*PYTEST_OPTIONS, *folders], plugins=[suite]))


def warm_up() -> float:
    """Import what tests need and no mutant changes; return how long it took."""
    began = time.monotonic()
    for name in (
        "aiohttp", "click", "fastapi", "hypothesis.stateful", "kopf", "opentelemetry.sdk.trace",
        "orjson", "pydantic", "pytest_asyncio.plugin", "rich.console", "structlog", "uvicorn",
        "xdist.scheduler", "yaml",
    ):  # fmt: skip
        __import__(name)
    return time.monotonic() - began
