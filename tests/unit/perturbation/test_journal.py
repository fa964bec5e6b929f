"""A run that is done in pieces: what has ended well is not run again, and the sum is told."""

import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case import Outcome
from asyncjob_perturbation.cpu_time import cpu_seconds, machine_seconds, share_of_others
from asyncjob_perturbation.end_state import Difference
from asyncjob_perturbation.journal import ROOT, RUN, Journal, content_of
from asyncjob_perturbation.plan import Case, Part, When, all_cases
from asyncjob_perturbation.proxy import Recording
from asyncjob_perturbation.report import by_kind, summary
from asyncjob_perturbation.scenarios import SCENARIOS

PAIR = ("retry", Part.WORKER)
CALL = Call("PATCH asyncjobs/a/status Running", 2)
EVENT = Call("EVENT asyncjobs/a ADDED", 1)


def outcome(**more: object) -> Outcome:
    recording = Recording([CALL], [EVENT])
    made = Outcome(SCENARIOS["retry"], Part.WORKER, {"asyncjobs/a": {"attempt": 1}}, recording, 2.0)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def case(when: When) -> Case:
    return Case(*PAIR, 1, CALL, when)


def test_a_journal_that_is_opened_again_knows_what_was_run_and_what_it_is_compared_with(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    journal = Journal.open(path)
    journal.add_undisturbed(PAIR, outcome())
    journal.add_case(case(When.BEFORE), outcome())
    journal.add_case(case(When.AFTER), outcome(differences=[Difference("a", 1, 2)]))
    journal.add_case(case(When.LOST), outcome(reached=False))
    again = Journal.open(path)
    assert again.undisturbed[PAIR].state == outcome().state
    assert again.undisturbed[PAIR].recording == outcome().recording
    assert [again.ended_well(case(when)) for when in (When.BEFORE, When.AFTER, When.LOST)] == [
        True,
        False,
        True,
    ]
    again.add_case(case(When.AFTER), outcome())
    assert Journal.open(path).ended_well(case(When.AFTER))


def test_what_was_run_of_another_product_is_run_again_and_still_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal = Journal.open(path)
    journal.add_undisturbed(PAIR, outcome())
    journal.add_case(case(When.BEFORE), outcome())
    monkeypatch.setattr("asyncjob_perturbation.journal.content_of", lambda _: "another")
    again = Journal.open(path)
    assert not again.undisturbed
    assert not again.ended_well(case(When.BEFORE))
    again.add_case(case(When.AFTER), outcome())
    everything = Journal.open(path, whatever_was_run=True)
    assert everything.table().total().cases == 2
    assert sorted(everything.contents.values()) == [1, 1]
    assert any(what.startswith("another, ") for what in everything.contents)


def test_the_content_is_another_when_the_product_changes_and_not_when_the_docs_do(
    tmp_path: Path,
) -> None:
    for path in (*RUN, "docs/page.md"):
        file = tmp_path / path if path.endswith((".py", ".md")) else tmp_path / path / "file"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    first = content_of(tmp_path)
    (tmp_path / "docs/page.md").write_text("2")
    assert content_of(tmp_path) == first
    for path in RUN:
        file = tmp_path / path if path.endswith(".py") else tmp_path / path / "file"
        file.write_text("2")
        assert content_of(tmp_path) != first
        file.write_text("1")
    (tmp_path / "crds/file").rename(tmp_path / "crds/other")
    assert content_of(tmp_path) != first


def test_all_that_is_run_is_there() -> None:
    assert [path for path in RUN if not (ROOT / path).exists()] == []


def test_what_has_not_been_run_is_told_by_what_is_done_and_where() -> None:
    journal = Journal()
    journal.add_undisturbed(PAIR, outcome())
    journal.add_case(case(When.BEFORE), outcome(reached=False))
    journal.add_case(case(When.LOST), outcome(differences=[Difference("a", 1, 2)]))
    assert by_kind(journal.table())[2:] == [
        "| `before` | writes | 1 | 0 | 0 | 1 |",
        "| `after` | writes | 0 | 1 | 0 | 0 |",
        "| `lost` | writes | 1 | 0 | 1 | 0 |",
        "| `merged` | events | 0 | 1 | 0 | 0 |",
        "| `gap` | events | 0 | 1 | 0 | 0 |",
        "| `late` | events | 0 | 1 | 0 | 0 |",
        "| `stale` | writes | 0 | 1 | 0 | 0 |",
        "| `stale-start` | writes | 0 | 1 | 0 | 0 |",
    ]


def test_pieces_are_judged_as_a_whole_once_every_case_of_every_scenario_and_part_was_run(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    Journal.open(path).add_case(case(When.BEFORE), outcome())
    journal = Journal.open(path)
    for scenario, part in product(SCENARIOS, Part):
        assert journal.whole(chosen=False) is None
        journal.add_undisturbed((scenario, part), outcome(recording=Recording([CALL])))
        for one in all_cases(scenario, part, [CALL]):
            assert journal.whole(chosen=False) is None
            journal.add_case(one, outcome(reached=False))
    whole = journal.whole(chosen=True)
    assert whole is not None
    assert whole.total().missed == 5 * len(SCENARIOS) * len(Part)


def test_a_first_run_is_a_sample_of_all_cases_unless_some_were_chosen(tmp_path: Path) -> None:
    for journal in (Journal(), Journal.open(tmp_path / "journal")):
        journal.add_undisturbed(PAIR, outcome())
        journal.add_case(case(When.BEFORE), outcome(reached=False))
        assert journal.whole(chosen=True) is None
        sample = journal.whole(chosen=False)
        assert sample is not None
        assert sample.total().missed == 1


def test_the_summary_has_a_line_for_each_scenario_and_shares_the_time_by_cases() -> None:
    journal = Journal()
    for when in (When.BEFORE, When.LOST):
        journal.add_case(case(when), outcome(reached=when is When.BEFORE))
    journal.add_undisturbed(PAIR, outcome())
    crash = Case("crash", Part.OPERATOR, 1, CALL, When.AFTER)
    journal.add_case(crash, outcome(broken=["a rule"]))
    journal.add_spent(30.0, 12.0, {"retry": 2, "crash": 1})
    assert summary(journal.table(), journal.spent)[2:] == [
        "| `crash` | 0 | 0 | 1 | 0 | 1 | 0 | 10 s | 4 s |",
        "| `retry` | 1 | 1 | 2 | 6 | 0 | 1 | 20 s | 8 s |",
        "| all | 1 | 1 | 3 | 6 | 1 | 1 | 30 s | 12 s |",
    ]


def test_the_cpu_time_of_children_counts_while_they_live_and_when_they_have_ended() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    before, own = cpu_seconds(), time.process_time()
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        assert child.stdin
        child.stdout.readline()
        living = cpu_seconds() - before
        os.write(child.stdin.fileno(), b"\n")
    ended = cpu_seconds() - before
    assert 0.25 <= living <= ended <= 1.0 + time.process_time() - own


def test_the_machine_counts_what_we_take_and_what_others_take() -> None:
    machine, own = machine_seconds(), time.process_time()
    until = own + 0.3
    while time.process_time() < until:
        pass
    assert machine_seconds() - machine >= 0.25
    cores = os.cpu_count() or 1
    assert share_of_others(machine=15.0 * cores, own=5.0 * cores, wall=20.0) == 0.5
    assert share_of_others(machine=1.0, own=2.0, wall=20.0) == 0.0
