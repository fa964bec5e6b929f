"""Whatever depends on whatever, and however jobs end: nobody starts early and nobody hangs."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from asyncjob_operator.core.dependencies import find_cycle
from asyncjob_operator.core.options import DecisionOptions
from support.parts.operator_harness import OperatorHarness

SIZE = 7
TIMEOUT = 100.0
ENDS = ("Succeeded", "Succeeded", "DeadLetter", "Cancelled")

names = st.integers(0, SIZE - 1).map("j{}".format)
needs: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": names},
    optional={"outcome": st.sampled_from(["Succeeded", "Any"]), "children": st.booleans()},
)


@dataclass
class Plan:
    """What each job depends on, whose child it is, how it ends, and in which order they come."""

    needs: dict[str, list[dict[str, Any]]]
    parents: dict[str, str]
    ends: dict[str, str]
    order: list[str]
    cancelled: dict[str, bool] = field(default_factory=dict)
    """Jobs that are cancelled on the way, and whether that cascades."""


@st.composite
def plans(draw: st.DrawFn, *, acyclic: bool) -> Plan:
    plan = Plan({}, {}, {}, [])
    for number in range(draw(st.integers(1, SIZE))):
        name = f"j{number}"
        wanted = draw(st.lists(needs, max_size=3, unique_by=lambda one: one["name"]))
        plan.needs[name] = [
            one
            for one in wanted
            if one["name"] != name and (not acyclic or int(one["name"][1:]) < number)
        ]
        if number and draw(st.booleans()):
            plan.parents[name] = f"j{draw(st.integers(0, number - 1))}"
        plan.ends[name] = draw(st.sampled_from(ENDS))
        if draw(st.integers(0, 9)) == 0:
            plan.cancelled[name] = draw(st.booleans())
    plan.order = draw(st.permutations(list(plan.needs)))
    return plan


class Run:
    """A plan carried out, one job or one end at a time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.harness = OperatorHarness(DecisionOptions(missing_dependency_timeout=TIMEOUT))
        self.late: set[str] = set()
        """Children created after their parent had ended: a dependent may have started before."""

    async def play(self, restart_at: int) -> None:
        """Create and end jobs until nothing can be done any more, and restart once on the way."""
        for number, name in enumerate(self.plan.order):
            spec = {"cancel": True} if name in self.plan.cancelled else {}
            spec |= {"cancelCascade": True} if self.plan.cancelled.get(name) else {}
            parent = self.plan.parents.get(name, "")
            if parent in self.plan.order[:number] and self.harness.is_finished(parent):
                self.late.add(name)
            self.harness.create(name, *self.plan.needs[name], parent=parent, **spec)
            if number % 2:
                await self.harness.settle()
        await self.harness.settle()
        for step in range(3 * SIZE):
            for ready in self.harness.claimable()[:1]:
                self.check(ready)
                self.harness.end(ready, self.plan.ends[ready])
            if step == restart_at:
                self.harness.restart()
            await self.harness.settle()
            if not self.harness.claimable():
                await self.harness.pass_time(TIMEOUT)

    def check(self, name: str) -> None:
        """Check that the job may start: all it depends on has finished, and rightly."""
        for one in self.plan.needs[name]:
            self.check_end(one["name"], one)
            if one.get("children"):
                for child, parent in self.plan.parents.items():
                    if parent == one["name"] and child not in self.late:
                        self.check_end(child, one)

    def check_end(self, name: str, need: dict[str, Any]) -> None:
        """Check that the job has ended as is needed."""
        assert self.harness.is_finished(name)
        if need.get("outcome") != "Any":
            assert self.harness.status(name)["phase"] == "Succeeded"


@settings(max_examples=150, deadline=None)
@given(plans(acyclic=True), st.integers(0, 20))
def test_no_job_starts_before_its_dependencies_have_finished_and_all_end(
    plan: Plan, restart_at: int
) -> None:
    run = Run(plan)
    asyncio.run(run.play(restart_at))
    unfinished = [name for name in plan.order if not run.harness.is_finished(name)]
    assert [run.harness.state(name) for name in unfinished] == []


@settings(max_examples=150, deadline=None)
@given(plans(acyclic=False), st.integers(0, 20))
def test_where_jobs_wait_for_one_another_all_end_as_well(plan: Plan, restart_at: int) -> None:
    run = Run(plan)
    asyncio.run(run.play(restart_at))
    unfinished = [name for name in plan.order if not run.harness.is_finished(name)]
    assert [run.harness.state(name) for name in unfinished] == []


graphs = st.dictionaries(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=4), max_size=9)


@given(graphs, st.integers(0, 8))
def test_a_cycle_is_found_exactly_where_a_job_is_reachable_from_itself(
    graph: dict[int, list[int]], start: int
) -> None:
    edges = {str(one): [str(other) for other in others] for one, others in graph.items()}
    cycle = find_cycle(str(start), lambda uid: edges.get(uid, ()))
    reached = set(edges.get(str(start), ()))
    for _ in range(len(edges)):
        reached |= {there for here in reached for there in edges.get(here, ())}
    assert bool(cycle) is (str(start) in reached)
    for here, there in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert there in edges[here]
    assert len(set(cycle)) == len(cycle)
