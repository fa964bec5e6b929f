"""The table of a run, and the words about what went wrong."""

import json
from collections import Counter

from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.judging.table import complaints, markdown, signs_seen, to_json
from asyncjob_chaos.judging.verdict import Verdict

GOOD = Verdict("stop-long/plain", jobs=200, repeated=4, recovered=8.13, pickup_p99=0.217)
BAD = Verdict("poison/long", jobs=90, lost=["job-1 is Running and does not end"])
ABSENT = Verdict("clocks/plain", left_out="there is no C compiler (cc)")


def test_each_cell_is_a_row() -> None:
    head, rule, *rows = markdown([GOOD, BAD, ABSENT]).splitlines()
    assert head.count("|") == rule.count("|") == 10
    assert rows[0] == "| `stop-long/plain` | 200 | 0 | 0 | 0 | 4 | 8.1 s | 0.22 s | yes |"
    assert rows[1] == "| `poison/long` | 90 | 1 | 0 | 0 | 0 | - | - | **no** |"
    assert rows[2].endswith("| not run: there is no C compiler (cc) |")


def test_a_good_run_gives_no_complaint_and_a_cell_that_cannot_be_run_is_none() -> None:
    assert complaints([GOOD, ABSENT], []) == []


def test_complaints_name_the_cell_and_what_never_happened() -> None:
    bad = Verdict("stop-long/long", missing=[Sign.LEASE_EXPIRED])
    assert complaints([BAD, bad], [Sign.ANSWER_ADOPTED]) == [
        "poison/long: job-1 is Running and does not end",
        "stop-long/long: never happened: a lease expired",
        "in no cell: a claim whose answer was lost was adopted",
    ]


def test_signs_are_summed_and_stored() -> None:
    seen = Verdict("a/b", signs=Counter({Sign.CUT: 3, Sign.BURST: 1}))
    assert signs_seen([seen, seen]) == [
        "      6  a connection was cut",
        "      2  many jobs were accepted at once",
    ]
    stored = to_json([seen], [Sign.LEASE_EXPIRED], seed=7)
    assert stored["seed"] == 7
    assert stored["cells"][0]["signs"] == {"a connection was cut": 3, Sign.BURST: 1}
    assert stored["neverHappened"] == ["a lease expired"]


def test_a_stored_verdict_is_the_same_when_it_is_read_again() -> None:
    seen = Verdict("a/b", signs=Counter({Sign.CUT: 3}), missing=[Sign.BURST], recovered=1.5)
    assert Verdict.from_json(json.loads(json.dumps(seen.to_json()))) == seen
