"""Small changes of code: found, made, tried in a child, and compared with the list of survivors."""

import gc
import importlib.util
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from asyncjob_dev.errors import DevError
from asyncjob_dev.mutants.__main__ import ROOT, all_mutants
from asyncjob_dev.mutants.forks import Trial, Verdict, run_forked
from asyncjob_dev.mutants.mutations import Mutant, compile_mutant, mutants
from asyncjob_dev.mutants.reach import NOTHING, Reach, digests, load_reach, store_reach
from asyncjob_dev.mutants.record import Outcome, Record
from asyncjob_dev.mutants.suite import Suite
from asyncjob_dev.mutants.survivors import (
    LIST,
    entry_for,
    outdated,
    read_survivors,
    read_tested_from_afar,
)
from asyncjob_dev.mutants.trials import Killers, check_passes

SOURCE = '''\
"""A module."""

from functools import lru_cache

LIMIT = 3


class Box:
    def __init__(self, size: int = 1) -> None:
        self.size = size

    @property
    def is_large(self) -> bool:
        """Return it."""
        return self.size > LIMIT and not self.size == 7


@lru_cache
def word(box: Box) -> str:
    assert box
    if box.is_large:
        return "large"
    return f"a small {box.size + 1}"
'''


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    file = tmp_path / "boxes.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("boxes", file)
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def found(tmp_path: Path, change: str, function: str = "") -> Mutant:
    (one,) = [
        mutant
        for mutant in mutants(tmp_path, "boxes.py")
        if (mutant.change, mutant.function) == (change, function)
    ]
    return one


def test_each_place_is_changed_once_and_texts_for_people_never(
    tmp_path: Path,
) -> None:
    (tmp_path / "boxes.py").write_text(SOURCE)
    changes = [(mutant.function, mutant.change) for mutant in mutants(tmp_path, "boxes.py")]
    assert sorted(changes) == [
        ("", "1 → 2"),
        ("", "3 → 4"),
        ("Box.__init__", "statement left out"),
        ("Box.is_large", "7 → 8"),
        ("Box.is_large", "Eq → NotEq"),
        ("Box.is_large", "Gt → GtE"),
        ("Box.is_large", "and/or"),
        ("Box.is_large", "operator left out"),
        ("word", '"large" → "XXlarge"'),
        ("word", "None returned"),
        ("word", "condition negated"),
    ]


def test_a_function_takes_over_its_changed_code_wherever_it_is_kept(
    module: ModuleType, tmp_path: Path
) -> None:
    box = module.Box(3)
    assert module.word(box) == "a small 4"
    suite = Suite(lambda _: None)
    gc.freeze()  # as tests/conftest.py does with what has been collected
    suite.index_functions([str(tmp_path / "boxes.py")])
    change = found(tmp_path, "Gt → GtE", "Box.is_large")
    assert suite.take_over(compile_mutant(tmp_path, change), change.function)
    assert box.is_large
    assert module.word(box) == "large"


def test_a_change_outside_of_functions_is_in_the_code_of_the_module(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(SOURCE)
    names: dict[str, object] = {}
    exec(compile_mutant(tmp_path, found(tmp_path, "3 → 4")), names)
    assert names["LIMIT"] == 4


def busy() -> Verdict:
    while True:
        pass


def asleep() -> Verdict:
    time.sleep(600)
    return Verdict.SURVIVED


def broken() -> Verdict:
    raise SystemExit(0)


def greedy() -> Verdict:
    return Verdict(len(bytearray(8 << 30)) and Verdict.SURVIVED)


def test_only_a_child_that_says_so_has_survived() -> None:
    trials = [
        Trial("good", lambda: Verdict.SURVIVED, 5),
        Trial("failed", lambda: os._exit(Verdict.KILLED), 5),
        Trial("busy", busy, 1),
        Trial("asleep", asleep, 5),
        Trial("broken", broken, 5),
        Trial("greedy", greedy, 5),
    ]
    verdicts = dict(run_forked(trials, jobs=2, idle_seconds=1))
    assert [name for name, verdict in verdicts.items() if verdict is Verdict.SURVIVED] == ["good"]
    assert len(verdicts) == len(trials)


def test_a_child_that_waits_for_a_processor_is_not_idle() -> None:
    processor = {min(os.sched_getaffinity(0))}

    def hog() -> Verdict:
        os.sched_setaffinity(0, processor)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            pass
        return Verdict.SURVIVED

    def starving() -> Verdict:
        os.sched_setaffinity(0, processor)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while time.process_time() < 0.2:
            pass
        return Verdict.SURVIVED

    trials = [Trial("hog", hog, 60), Trial("starving", starving, 60)]
    verdicts = dict(run_forked(trials, jobs=2, idle_seconds=1))
    assert verdicts == {"hog": Verdict.SURVIVED, "starving": Verdict.SURVIVED}


@dataclass(frozen=True, eq=False)
class Item:
    """A test as pytest has collected it, as far as it matters here."""

    nodeid: str
    config: SimpleNamespace


def noticed(name: str, *, collected: str) -> Verdict:
    """Return whether a mutant is noticed by the test of that name, where that one is collected."""

    def fail(*, item: Item, nextitem: None) -> None:
        os._exit(Verdict.KILLED)

    config = SimpleNamespace(hook=SimpleNamespace(pytest_runtest_protocol=fail))
    item, verdicts = Item(collected, config), list[Verdict]()
    suite = Suite(lambda suite: verdicts.append(suite.run([(name, 0.1)], str)))
    session: Any = SimpleNamespace(testsfailed=0, items=[item])

    def run() -> Verdict:
        suite.pytest_runtestloop(session)
        return verdicts[0]

    return dict(run_forked([Trial("one", run, 5)], jobs=1))["one"]


def test_a_test_is_tried_though_the_number_in_its_name_is_the_one_that_is_changed() -> None:
    assert noticed("test_a.py::x[3]", collected="test_a.py::x[3]") is Verdict.KILLED
    assert noticed("test_a.py::x[3]", collected="test_a.py::x[4]") is Verdict.KILLED
    assert noticed("test_a.py::x[3]", collected="test_a.py::y[4]") is Verdict.SURVIVED


def test_tests_are_chosen_by_what_they_reach_and_measured_again_where_they_change(
    tmp_path: Path,
) -> None:
    for name in ("boxes.py", "test_a.py", "test_b.py"):
        (tmp_path / name).write_text("")
    reach = Reach(
        {"test_a.py::x": 2.0, "test_b.py::y": 1.0},
        {"boxes.py": {13: ["test_a.py::x", "test_b.py::y"], 14: ["test_a.py::x"]}},
        {"boxes.py": [3, 13]},
    )
    assert reach.tests("boxes.py", 13, 15) == ["test_b.py::y", "test_a.py::x"]
    assert reach.at_import("boxes.py", 12, 13)
    assert not reach.at_import("boxes.py", 14, 15)
    names = ["boxes.py", "test_a.py", "test_b.py"]
    store_reach(reach, tmp_path / "reach.json", digests(tmp_path, names))
    assert known_after(tmp_path, names) == (reach, [])
    (tmp_path / "test_a.py").write_text("# other")
    known, changed = known_after(tmp_path, names)
    assert (known.seconds, changed) == ({"test_b.py::y": 1.0}, ["test_a.py"])
    (tmp_path / "boxes.py").write_text("# other")
    assert known_after(tmp_path, names) == (NOTHING, names)


def test_a_changed_module_has_only_the_tests_measured_that_reach_it(tmp_path: Path) -> None:
    names = ["boxes.py", "bags.py", "test_a.py", "test_b.py"]
    for name in names:
        (tmp_path / name).write_text("")
    lines = {"boxes.py": {13: ["test_a.py::x"]}, "bags.py": {3: ["test_b.py::y"]}}
    reach = Reach({"test_a.py::x": 2.0, "test_b.py::y": 1.0}, lines, {"boxes.py": [1]})
    store_reach(reach, tmp_path / "reach.json", digests(tmp_path, names))
    (tmp_path / "boxes.py").write_text("# other")
    state = digests(tmp_path, names)
    known, changed = load_reach(tmp_path / "reach.json", state, ["boxes.py", "bags.py"])
    assert known == Reach({"test_b.py::y": 1.0}, {"bags.py": {3: ["test_b.py::y"]}}, {})
    assert changed == ["boxes.py", "test_a.py"]


def test_of_the_tests_those_are_tried_that_begin_in_time() -> None:
    reach = Reach({"a": 2.0, "b": 3.0, "c": 1.0}, {}, {})
    assert reach.within(["a", "b", "c"], 4.0) == [("a", 2.0), ("b", 3.0)]


def test_the_nearest_tests_are_tried_as_well_as_the_quickest() -> None:
    lines = {
        "boxes.py": {1: ["whole", "quick", "slow"]},
        "bags.py": {1: ["whole", "quick"], 2: ["quick"]},
    }
    reach = Reach({"quick": 1.0, "whole": 2.0, "slow": 3.0}, lines, {})
    tests, breadths = reach.tests("boxes.py", 1, 1), reach.breadths()
    assert breadths == {"quick": 2, "whole": 2, "slow": 1}
    assert reach.near_or_quick(tests, breadths, 1.0) == ["quick", "slow"]
    assert reach.near_or_quick(tests, breadths, 1.5) == ["quick", "whole", "slow"]


def test_what_became_of_a_mutant_is_known_until_its_module_changes(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(SOURCE)
    known = mutants(tmp_path, "boxes.py")
    record = Record(tmp_path, known)
    record.note(known[0], Outcome(Verdict.SURVIVED))
    record.note(known[1], Outcome(Verdict.SURVIVED))
    record.note(known[0], Outcome(Verdict.KILLED, "test_a.py::x"))
    assert Record(tmp_path, known).outcomes == {
        known[0]: Outcome(Verdict.KILLED, "test_a.py::x"),
        known[1]: Outcome(Verdict.SURVIVED),
    }
    (tmp_path / "boxes.py").write_text(SOURCE + "# other")
    assert Record(tmp_path, known).outcomes == {}


def test_a_test_that_noticed_a_mutant_is_the_first_for_others_of_the_function(
    tmp_path: Path,
) -> None:
    (tmp_path / "boxes.py").write_text(SOURCE)
    known = [one for one in mutants(tmp_path, "boxes.py") if one.function == "word"]
    killers = Killers(["a", "b", "c"], known)
    assert killers.first(1, ["a", "c"]) == ["a", "c"]
    killers.note(0, "c")
    assert killers.learn(0) == "c"
    assert killers.first(1, ["a", "c"]) == ["c", "a"]
    assert killers.first(1, ["a", "b"]) == ["a", "b"]


def test_a_test_that_fails_on_the_unchanged_code_says_nothing_about_a_mutant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tests, suite = [("test_a.py::x", 0.1)], Suite(lambda _: None)
    monkeypatch.setattr(suite, "run", lambda *_: Verdict.SURVIVED)
    check_passes(suite, tests)
    monkeypatch.setattr(suite, "run", lambda *_: Verdict.KILLED)
    with pytest.raises(DevError, match=r"on the unchanged code, too, fails: test_a\.py::x"):
        check_passes(suite, tests)


def known_after(folder: Path, names: list[str]) -> tuple[Reach, list[str]]:
    return load_reach(folder / "reach.json", digests(folder, names), ["boxes.py"])


def test_what_is_to_be_written_about_a_survivor_names_its_mutant(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(SOURCE)
    known = mutants(tmp_path, "boxes.py")
    file = tmp_path / "list.toml"
    file.write_text("\n\n".join(entry_for(mutant) for mutant in known))
    listed = read_survivors(file)
    assert [entry.key for entry in listed] == [mutant.key for mutant in known]
    assert outdated(listed, known[1:]) == listed[:1]


def test_every_listed_survivor_is_there_and_has_a_reason() -> None:
    listed = read_survivors(ROOT / LIST)
    assert outdated(listed, all_mutants(ROOT)) == []
    assert [entry for entry in listed if len(entry.reason.split()) < 4] == []
    assert len({entry.key for entry in listed}) == len(listed)


def test_a_mutant_is_named_alike_wherever_its_function_moves(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(SOURCE)
    before = [mutant.key for mutant in mutants(tmp_path, "boxes.py")]
    (tmp_path / "boxes.py").write_text(SOURCE.replace("LIMIT = 3\n", "\n\nLIMIT = 3\n\n"))
    assert [mutant.key for mutant in mutants(tmp_path, "boxes.py")] == before
    assert "boxes" not in sys.modules


def test_modules_that_are_tested_from_afar_are_there() -> None:
    assert read_tested_from_afar(ROOT / LIST) <= {mutant.module for mutant in all_mutants(ROOT)}
