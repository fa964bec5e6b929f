"""How mutants are tried: in forks of one collected suite, or by importing everything again."""

import importlib.machinery
import mmap
import os
import struct
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import takewhile
from pathlib import Path
from types import CodeType
from typing import Final, TextIO

import coverage

from asyncjob_dev.errors import DevError
from asyncjob_dev.mutants.forks import Trial, Verdict, run_forked
from asyncjob_dev.mutants.mutations import Mutant, ParsedModule, compile_mutant
from asyncjob_dev.mutants.reach import (
    IMPORT,
    NOTHING,
    Reach,
    digests,
    file_of,
    load_reach,
    store_reach,
)
from asyncjob_dev.mutants.record import Outcome
from asyncjob_dev.mutants.suite import Suite, collect

TESTS: Final = (
    "tests/unit/lifecycle", "tests/unit/operator", "tests/unit/testing", "tests/unit/worker",
    "tests/properties/lifecycle", "tests/properties/operator", "tests/properties/testing",
    "tests/properties/worker",
)  # fmt: skip
_GENERATED: Final = "tests/unit/schema/test_generated.py"
"""Compares what is generated with what is committed: it holds every name of the API.

Its tests are slow, and have as much time as all others of a mutant together."""

REACH: Final = Path(".mutants/reach.json")
REACH_OF_OWN_TESTS: Final = Path(".mutants/reach-of-own-tests.json")
_OUTPUT: Final = Path(".mutants/pytest.log")
_BASE_SECONDS: Final = 10
_FACTOR: Final = 4
_MOST_SECONDS: Final = 2.0
"""Of the tests of a mutant that are quickest, and once more of those that are nearest to it.

What only others notice needs a test that is near.
"""

_NEAR_FILES: Final = 4
_OPERATOR: Final = "operator/"
_BELOW_THE_OPERATOR: Final = ("asyncjob.models", "asyncjob.testing", "asyncjob_worker.components")
_NUMBER: Final = struct.Struct("i")


def all_tests(root: Path) -> list[str]:
    """Return the files of the tests that mutants are tried on."""
    folders = (sorted((root / folder).rglob("test_*.py")) for folder in TESTS)
    return [_GENERATED, *(str(file.relative_to(root)) for files in folders for file in files)]


@lru_cache
def own_tests(root: Path, module: str) -> list[str]:
    """Return the files of the tests that import from a module themselves."""
    name = module.partition("/src/")[2].removesuffix(".py").replace("/", ".")
    words = f"from {name.removesuffix('.__init__')} import "
    return [file for file in all_tests(root) if words in (root / file).read_text()]


def measure_reach(
    root: Path, modules: Sequence[str], tests: Sequence[str], kept_in: Path = REACH
) -> Reach:
    """Return which tests reach what; only files that have changed since last time are run."""
    state = digests(root, [*modules, *tests])
    known, changed = load_reach(root / kept_in, state, modules)
    to_run = [file for file in tests if file in set(changed)]

    def measure(_: TextIO) -> None:
        files = [str(root / module) for module in modules]
        recorder = coverage.Coverage(data_file=None, include=files, config_file=False)
        recorder.start()
        recorder.switch_context(IMPORT)

        def loop(suite: Suite) -> None:
            found = NOTHING
            for found, done in suite.measure(recorder, root, modules):
                left = set(to_run) - done
                so_far = {name: digest for name, digest in state.items() if name not in left}
                store_reach(known.joined(found), root / kept_in, so_far)
            store_reach(known.joined(found), root / kept_in, state)

        _check(collect(to_run, Suite(loop)))

    if to_run:
        list(_in_child(measure))
    reach, changed = load_reach(root / kept_in, state, modules)
    if set(changed) & set(tests):
        raise DevError(f"the tests that mutants are tried on cannot be collected: see {_OUTPUT}")
    return reach


class Killers:
    """Which test noticed a mutant: children write it into memory that they share."""

    def __init__(self, tests: Iterable[str], mutants: Sequence[Mutant]) -> None:
        self._tests = list(tests)
        self._mutants = mutants
        self._shared = mmap.mmap(-1, _NUMBER.size * len(mutants))
        self._near: defaultdict[str, list[str]] = defaultdict(list)

    def note(self, mutant: int, test: str) -> None:
        """Write down, in a child, that the test failed."""
        _NUMBER.pack_into(self._shared, _NUMBER.size * mutant, self._tests.index(test) + 1)

    def learn(self, mutant: int) -> str:
        """Return which test noticed the mutant, if one did, to try it first on those near it."""
        (number,) = _NUMBER.unpack_from(self._shared, _NUMBER.size * mutant)
        killer = self._tests[number - 1] if number else ""
        near = self._near[self._mutants[mutant].function]
        if killer and killer not in near:
            near.append(killer)
        return killer

    def first(self, mutant: int, tests: Sequence[str]) -> list[str]:
        """Return the tests, with those first that noticed other mutants of the function."""
        near = self._near[self._mutants[mutant].function]
        return [*(test for test in near if test in tests), *(t for t in tests if t not in near)]


def try_in_functions(
    root: Path,
    mutants: Sequence[Mutant],
    reach: Reach,
    jobs: int,
    go_on: Callable[[], bool],
    *,
    tests: Sequence[str] = (*TESTS, _GENERATED),
) -> Iterator[tuple[Mutant, Outcome]]:
    """Try mutants in functions, each in a fork of a process that has collected the tests."""

    def session(results: TextIO) -> None:
        def loop(suite: Suite) -> None:
            parsed = {name: ParsedModule(root, name) for name in {m.module for m in mutants}}
            suite.index_functions([str(root / module) for module in parsed])
            killers = Killers(reach.seconds, mutants)
            trials = _function_trials(parsed, mutants, reach, suite, killers)
            in_time = takewhile(lambda _: go_on(), trials)
            trusted: set[str] = set()
            for number, verdict in run_forked(in_time, jobs):
                killer = killers.learn(number)
                if killer and killer not in trusted:
                    check_passes(suite, reach.timed([killer]))
                    trusted.add(killer)
                results.write(f"{number} {int(verdict)} {killer}\n")

        _check(collect(tests, Suite(loop)))

    if mutants:
        for line in _in_child(session):
            number, verdict, killer = line.rstrip("\n").split(" ", 2)
            yield mutants[int(number)], Outcome(Verdict(int(verdict)), killer)


def check_passes(suite: Suite, tests: Sequence[tuple[str, float]]) -> None:
    """Raise if the tests fail on the unchanged code as well, as after a change elsewhere."""
    trial = Trial(tests[0][0], partial(suite.run, tests, str), _seconds(tests))
    for test, verdict in run_forked([trial], jobs=1):
        _demand_success(test, verdict)


def _demand_success(tests: str, verdict: Verdict) -> None:
    if verdict is Verdict.KILLED:
        raise DevError(f"on the unchanged code, too, fails: {tests}. Mend that first")


def _function_trials(
    parsed: Mapping[str, ParsedModule],
    mutants: Sequence[Mutant],
    reach: Reach,
    suite: Suite,
    killers: Killers,
) -> Iterator[Trial[int]]:
    breadths = reach.breadths()
    for number, mutant in enumerate(mutants):
        reached = reach.tests(mutant.module, mutant.first_line, mutant.last_line)
        chosen = reach.near_or_quick(reached, breadths, _MOST_SECONDS)
        tests = reach.timed(killers.first(number, chosen))
        note = partial(killers.note, number)
        run = partial(_run_taken_over, suite, parsed[mutant.module], mutant, tests, note)
        yield Trial(number, run, _seconds(tests))


def _run_taken_over(
    suite: Suite,
    module: ParsedModule,
    mutant: Mutant,
    tests: Sequence[tuple[str, float]],
    on_failure: Callable[[str], object],
) -> Verdict:
    suite.take_over(module.compile_changed(mutant), mutant.function)
    return suite.run(tests, on_failure)


def try_by_import(
    root: Path, mutants: Sequence[Mutant], reach: Reach, jobs: int, go_on: Callable[[], bool]
) -> Iterator[tuple[Mutant, Outcome]]:
    """Try mutants that an import runs: each in a process that imports the changed module.

    The tests of the files that reach most of the module come first, in a process of their own. What
    the operator changes nothing of is imported before its turn. Each module is tried as it is, too:
    tests that fail then say nothing about its mutants.
    """
    operators = [mutant for mutant in mutants if mutant.module.startswith(_OPERATOR)]
    for group in ([mutant for mutant in mutants if mutant not in operators], operators):
        if group is operators:
            for name in _BELOW_THE_OPERATOR:
                __import__(name)
        remaining: list[Mutant] = []
        for near in (True, False):
            tried = group if near else remaining
            trials = _import_trials(root, tried, reach, go_on, near=near)
            for mutant, verdict in run_forked(trials, jobs):
                if isinstance(mutant, str):
                    _demand_success(f"tests of {mutant}", verdict)
                elif near and verdict is Verdict.SURVIVED:
                    remaining.append(mutant)
                else:
                    yield mutant, Outcome(verdict)


def _import_trials(
    root: Path, mutants: Sequence[Mutant], reach: Reach, go_on: Callable[[], bool], *, near: bool
) -> Iterator[Trial[Mutant | str]]:
    tried: set[str] = set()
    for mutant in mutants:
        if near and not go_on():
            return
        own = own_tests(root, mutant.module)
        tests = _tests_of_import(mutant, reach, own)
        files = Counter(file_of(test) for test in tests)
        nearest = {_GENERATED, *own, *(file for file, _ in files.most_common(_NEAR_FILES))}
        wanted = [test for test in tests if (file_of(test) in nearest) == near]
        others = [test for test in wanted if file_of(test) != _GENERATED]
        generated = [test for test in wanted if file_of(test) == _GENERATED]
        chosen = reach.within(others, _MOST_SECONDS) + reach.within(generated, _MOST_SECONDS)
        if mutant.module not in tried:
            tried.add(mutant.module)
            unchanged = partial(_run_imported, root, None, chosen)
            yield Trial(mutant.module, unchanged, _seconds(chosen))
        run = partial(_run_imported, root, mutant, chosen)
        yield Trial(mutant, run, _seconds(chosen))


def _tests_of_import(mutant: Mutant, reach: Reach, own: Sequence[str]) -> list[str]:
    """Return the tests that may notice: all, where a module has nothing that a test could reach.

    Who imports a constant may look at it without running a line of its module.
    """
    reached = reach.tests_of_module(mutant.module)
    if not reached:
        return reach.by_time(reach.seconds)
    files = {_GENERATED, *own}
    return reach.by_time({*reached, *(test for test in reach.seconds if file_of(test) in files)})


def _run_imported(root: Path, mutant: Mutant | None, tests: Sequence[tuple[str, float]]) -> Verdict:
    if not tests:
        return Verdict.SURVIVED
    if mutant:
        _import_as(str(root / mutant.module), compile_mutant(root, mutant))
    verdicts: list[Verdict] = []
    suite = Suite(lambda suite: verdicts.append(suite.run(tests, str)))
    collect(sorted({file_of(test) for test, _ in tests}), suite)
    return verdicts[0] if verdicts else Verdict.KILLED


def _import_as(path: str, code: CodeType) -> None:
    """Have the file imported as if it held that code."""
    as_it_is = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
        return code if loader.path == path else as_it_is(loader, fullname)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]


def _seconds(tests: Sequence[tuple[str, float]]) -> int:
    return round(_BASE_SECONDS + _FACTOR * sum(seconds for _, seconds in tests))


def _check(status: int) -> None:
    if status:
        raise DevError(f"pytest ended with {status}")


def _in_child(work: Callable[[TextIO], None]) -> Iterator[str]:
    """Run in a fork: collecting imports what mutants change. Give out the lines it writes."""
    _OUTPUT.parent.mkdir(exist_ok=True)
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        status = 1
        try:
            os.close(read)
            os.dup2(os.open(_OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
            with os.fdopen(write, "w", buffering=1) as lines:
                work(lines)
            status = 0
        except BaseException:  # noqa: BLE001 - it is told, and the process ends
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as lines:
        yield from lines
    _, status = os.waitpid(pid, 0)
    if status:
        raise DevError(f"the tests that mutants are tried on could not be run: see {_OUTPUT}")
