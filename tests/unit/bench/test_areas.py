"""Profiles of Python programs, told in shares."""

import cProfile
import json
import pstats
from pathlib import Path

from asyncjob_bench.stats.breakdown import AREAS, OTHER_AREA, Callers, Times, area_shares

OURS = ("/here/src/asyncjob_worker/claimer.py", 3, "claim")
READ = ("~", 0, "<method 'read' of '_ssl._SSLSocket' objects>")
LENGTH = ("~", 0, "<built-in method builtins.len>")
OTHER = ("/lib/heapq.py", 1, "merge")


def told(own: float, **callers: float) -> tuple[int, int, float, float, Callers]:
    known = {"ours": OURS, "other": OTHER}
    by_caller = {known[name]: (1, 1, seconds, seconds) for name, seconds in callers.items()}
    return 1, 1, own, own, by_caller


def test_a_builtin_counts_for_its_caller_unless_it_is_known_itself() -> None:
    times: Times = {
        OURS: told(1.0),
        READ: told(4.0, ours=4.0),
        LENGTH: told(3.0, ours=2.0, other=1.0),
        OTHER: told(2.0),
    }
    found = {row["what"]: row["worker %"] for row in area_shares({"worker": times})}
    assert found["sends and receives, TLS included"] == 40.0
    assert found["what asyncjob does"] == 30.0
    assert found[OTHER_AREA] == 30.0
    assert len(found) == len(AREAS) + 1


def test_a_real_profile_is_told_whole(tmp_path: Path) -> None:
    profile = cProfile.Profile()
    profile.runcall(lambda: [json.dumps([number] * 100) for number in range(500)])
    profile.dump_stats(tmp_path / "one.pstats")
    rows = area_shares({"it": pstats.Stats(str(tmp_path / "one.pstats")).stats})  # type: ignore[attr-defined]
    shares = {str(row["what"]): float(row["it %"]) for row in rows}
    assert shares["codes JSON"] > 50
    assert abs(sum(shares.values()) - 100) < 1
