"""Which parts run when, and what becomes of those that cannot."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from asyncjob_bench.errors import LeftOutError, WrongOutcomeError
from asyncjob_bench.harness.site import Site
from asyncjob_bench.parts.part import (
    SMALL,
    Measure,
    Numbers,
    Part,
    PartContext,
    with_brought,
)
from asyncjob_bench.parts.runner import PARTS, Runner


class FakeSite:
    """Counts how often it was let come to rest."""

    def __init__(self) -> None:
        self.rests = 0

    def settle(self) -> None:
        self.rests += 1


class SiteOpener:
    """Opens control planes, and notes which parts ran on which."""

    def __init__(self) -> None:
        self.opened: list[FakeSite] = []
        self.ran: list[tuple[str, int]] = []

    @contextmanager
    def __call__(self) -> Iterator[Site]:
        self.opened.append(FakeSite())
        yield cast("Site", self.opened[-1])

    def part(self, name: str, *found: Numbers | Exception, compared: bool = True) -> Part:
        answers = iter(found)

        def measure(context: PartContext) -> Numbers:
            self.ran.append((name, self.opened.index(cast("FakeSite", context.site))))
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return Part(name, cast("Measure", measure), compared=compared)

    def run(self, *parts: Part) -> Runner:
        self.said: list[str] = []
        runner = Runner(SMALL, self.said.append, self)
        runner.run(parts)
        return runner


def test_compared_parts_are_interleaved_on_one_control_plane_and_others_follow_once() -> None:
    sites = SiteOpener()
    runner = sites.run(
        sites.part("a", {"raw_ceiling_jobs_s": 200.0}, {"raw_ceiling_jobs_s": 100.0}),
        sites.part("b", {"end_to_end_jobs_s": 160.0}, {"end_to_end_jobs_s": 70.0}),
        sites.part("c", {"orphans_requeued_s": 3.0}, compared=False),
    )
    assert sites.ran == [("a", 0), ("b", 0), ("b", 0), ("a", 0), ("c", 0)]
    assert sites.opened[0].rests == 4
    assert runner.results.spreads["end_to_end_ratio"].values == (0.8, 0.7)
    assert runner.results.medians["orphans_requeued_s"] == 3.0


def test_a_part_with_a_control_plane_of_its_own_runs_there() -> None:
    sites = SiteOpener()
    own = Part("own", sites.part("own", {"writes_per_job": 3.0}).measure, site=sites)
    sites.run(sites.part("a", {}, {}), own)
    assert sites.ran == [("a", 0), ("a", 0), ("own", 1)]


def test_without_shared_parts_no_common_control_plane_is_opened() -> None:
    sites = SiteOpener()
    sites.run(Part("own", sites.part("own", {}).measure, site=sites))
    assert len(sites.opened) == 1


def test_a_part_that_cannot_run_here_is_left_out_with_its_reason() -> None:
    sites = SiteOpener()
    runner = sites.run(
        sites.part("a", {"x": 1.0}, {"x": 1.0}), sites.part("peer", LeftOutError("no database"))
    )
    assert runner.results.left_out == {"peer": "no database"}
    assert [name for name, _ in sites.ran] == ["a", "peer", "a"]


def test_a_part_that_fails_costs_the_others_nothing() -> None:
    sites = SiteOpener()
    runner = sites.run(
        sites.part("a", {"x": 1.0}, {"x": 3.0}),
        sites.part("b", WrongOutcomeError("7 of 8 jobs")),
    )
    assert runner.results.failed == {"b": "7 of 8 jobs"}
    assert runner.results.medians == {"x": 2.0}
    assert "b: FAILED: 7 of 8 jobs" in sites.said


def test_what_a_part_is_compared_with_comes_with_it_in_the_order_of_all() -> None:
    parts = [part for part in PARTS if part.name in {"end-to-end", "peer", "arrays", "pickup"}]
    assert with_brought(["pickup"], parts) == [part for part in parts if part.name == "pickup"]
    assert with_brought(["arrays"], parts) == parts


def test_every_part_that_another_brings_is_there() -> None:
    names = {part.name for part in PARTS}
    assert {name for part in PARTS for name in part.brings} <= names


def test_a_run_of_arrays_has_all_that_their_bars_need() -> None:
    found = {part.name for part in with_brought(["arrays"], PARTS)}
    assert found >= {"end-to-end", "peer", "pickup", "array-pickup", "array-kills"}
    assert found >= {"array-memory", "array-writes"}
