"""Two operators act on jobs with one deduplication id, with views as old as can be, in any order.

Each of their requests may be held up for as long as is wanted, so that one decides before and
writes after whatever the other does.
"""

import asyncio
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from asyncjob.lifecycle.deduplication import is_live
from asyncjob.lifecycle.job_view import read_job
from asyncjob.names import job_path
from asyncjob_operator.core.admission.reservations import is_active
from asyncjob_operator.core.snapshot import never_started
from support.in_memory.fake_session import FakeSession
from support.objects.snapshots import raw, stamp
from support.parts.operator_harness import OperatorHarness

NAMES: Final = "abc"
SPEC: Final = {"deduplicationId": "one"}
BEGINNINGS: Final[dict[str, dict[str, Any]]] = {
    "new": {},
    "held": {"phase": "Pending", "reason": "Suspended"},
    "dead": {"phase": "DeadLetter", "completionTime": stamp(0), "attempt": 1},
}

OPERATOR = st.integers(0, 1)
FIRST = st.tuples(st.just("create"), st.sampled_from(NAMES), st.sampled_from(sorted(BEGINNINGS)))
STEPS = st.one_of(  # the methods of Pair
    FIRST,
    st.tuples(st.just("show"), OPERATOR, st.sampled_from(NAMES)),
    st.tuples(st.just("begin"), OPERATOR, st.sampled_from(NAMES)),
    st.tuples(st.just("go_on"), OPERATOR),
    st.tuples(st.just("finish"), OPERATOR),
    st.tuples(st.just("end"), st.sampled_from(NAMES), st.sampled_from(["Succeeded", "DeadLetter"])),
    st.tuples(st.just("redrive"), st.sampled_from(NAMES)),
)


class HeldSession(FakeSession):
    """A session whose requests wait until they are let through, one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.holds, self.held = False, dict[asyncio.Task[None], asyncio.Future[None]]()

    async def _wait(self) -> None:
        task = asyncio.current_task()
        if self.holds and task:
            self.held[task] = asyncio.get_running_loop().create_future()
            await self.held[task]

    async def get(self, path: str, params: Any = None) -> Any:
        await self._wait()
        return await super().get(path, params)

    async def merge_patch(self, path: str, body: Any, params: Any = None, **more: Any) -> Any:
        await self._wait()
        return await super().merge_patch(path, body, params, **more)

    async def pages(self, path: str, params: Any = None, *, accept: str = "") -> Any:
        await self._wait()
        async for page in super().pages(path, params, accept=accept):
            yield page


class Pair:
    """Two operators that see and do only what they are told to."""

    def __init__(self) -> None:
        self.session = HeldSession()
        self.harnesses = [OperatorHarness(session=self.session) for _ in range(2)]
        self.tasks: list[asyncio.Task[None] | None] = [None, None]
        for harness in self.harnesses:
            harness.blind = True
        self.session.holds = True

    def objects(self) -> dict[str, Any]:
        """Return the jobs that there are, by name."""
        return {obj["metadata"]["name"]: obj for obj in self.session.objects.values()}

    async def create(self, name: str, beginning: str) -> None:
        """Create a job, unless it is there."""
        if name not in self.objects():
            self.session.put(job_path("ns", name), raw(name, spec=SPEC, **BEGINNINGS[beginning]))

    async def show(self, number: int, name: str) -> None:
        """Let an operator see a job as it is now."""
        if name in self.objects():
            self.harnesses[number].observer.on_update(self.objects()[name], just_changed=True)

    async def begin(self, number: int, name: str) -> None:
        """Let an operator see a job, and act on it up to its first request."""
        if not self.tasks[number]:
            await self.show(number, name)
            self.tasks[number] = asyncio.create_task(self.harnesses[number].act(f"uid-{name}"))
            await self._until_held(number)

    async def go_on(self, number: int) -> None:
        """Let a request of an operator through, which acts up to the next."""
        task = self.tasks[number]
        if task:
            self.session.held.pop(task).set_result(None)
            await self._until_held(number)

    async def finish(self, number: int) -> None:
        """Let an operator do all that it has begun."""
        while self.tasks[number]:
            await self.go_on(number)

    async def end(self, name: str, phase: str) -> None:
        """Have a worker run a job, if it may."""
        if name in self.harnesses[0].claimable():
            self.harnesses[0].end(name, phase)

    async def redrive(self, name: str) -> None:
        """Ask for another redrive of a job."""
        if name in self.objects():
            done = self.objects()[name]["status"].get("redrives", 0)
            self.harnesses[0].change_spec(name, redrive=done + 1)

    async def _until_held(self, number: int) -> None:
        task = self.tasks[number]
        assert task
        while task not in self.session.held and not task.done():  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0)
        if task.done():
            task.result()
            self.tasks[number] = None

    def holders(self) -> list[str]:
        """Return the live jobs that run, may be claimed, or have run and go on."""
        jobs = {name: read_job(obj) for name, obj in self.objects().items()}
        return [
            name
            for name, job in jobs.items()
            if is_live(job) and (is_active(job) or not never_started(job))
        ]


@settings(max_examples=200)
@given(st.lists(FIRST, min_size=2, max_size=4), st.lists(STEPS, min_size=8, max_size=40))
def test_of_the_jobs_with_one_id_at_most_one_is_let_through(
    first: list[Any], steps: list[Any]
) -> None:
    async def run() -> None:
        pair = Pair()
        for step in (*first, *steps):
            await getattr(pair, step[0])(*step[1:])
            assert len(pair.holders()) <= 1, pair.holders()
        for number in range(2):
            await pair.finish(number)
            assert len(pair.holders()) <= 1, pair.holders()

    asyncio.run(run())
