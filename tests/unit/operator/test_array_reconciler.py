"""The reconciler of arrays on the API server in memory, under the operator's roles and all rules.

Its process ends at each of its writes, one by one: before the write, or after it and before the
answer. The next one begins with what is stored, and finishes the array.
"""

from typing import Any

import pytest

from asyncjob.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    ObjectNotFoundError,
    UnknownOutcomeError,
)
from asyncjob.lifecycle.arrays.chunks import ChunkReport
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.job_view import read_job
from asyncjob.names import (
    ARRAY_LABEL,
    JOBS,
    PARENT_LABEL,
    array_path,
    collection_path,
    job_path,
)
from asyncjob.shards import shard_label
from asyncjob_operator.cache.chunks import array_key
from asyncjob_operator.components import cache_updates
from asyncjob_operator.controllers.array_evaluator import ArrayEvaluator
from asyncjob_operator.controllers.array_reconciler import ArrayReconciler
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.preconditions import PreconditionChecker
from asyncjob_operator.controllers.workqueue import DelayingQueue, ItemBackoff
from asyncjob_operator.core.now import Now
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession, operator_cluster
from support.in_memory.memory import Clock
from support.objects.snapshots import raw
from support.parts.array_world import raw_array
from support.parts.evaluation import evaluation
from support.parts.vitals import quarantine

PATH = array_path("ns", "thumbs")
PARENT_PATH = job_path("ns", "p")
JOBS_PATH = collection_path("ns", JOBS)
KEY = "ns/uid-a"


class ProcessEnded(BaseException):
    """The operator's process is no more."""


class MortalSession(FakeSession):
    """The operator's session; its process ends at the write of this number."""

    def __init__(self, server: Any, *, ends_at: int | None, after: bool) -> None:
        super().__init__(server=server)
        self.ends_at, self.after, self.sent = ends_at, after, 0

    async def create(self, path: str, body: Any, params: Any = None) -> Any:
        self._end(before=True)
        answer = await super().create(path, body, params)
        self._end(before=False)
        return answer

    async def merge_patch(self, path: str, body: Any, params: Any = None, **more: Any) -> Any:
        self._end(before=True)
        answer = await super().merge_patch(path, body, params, **more)
        self._end(before=False)
        return answer

    async def delete(self, path: str, body: Any = None) -> Any:
        self._end(before=True)
        answer = await super().delete(path, body)
        self._end(before=False)
        return answer

    def _end(self, *, before: bool) -> None:
        if before:
            self.sent += 1
        if self.sent - 1 == self.ends_at and before is not self.after:
            raise ProcessEnded


class Process:
    """One operator process that looks after the array."""

    def __init__(self, session: FakeSession, clock: Clock, name: str) -> None:
        self.session, self.clock = session, clock
        self.metrics, self.queue = OperatorMetrics(), DelayingQueue()
        made = evaluation(self.now, evaluate_arrays_later=self.queue.add_all)
        self.caches = caches = made.caches
        self.job_evaluator, self.chunks = made.evaluator, caches.chunks
        self.jobs, self.child_arrays = caches.store, caches.child_arrays
        self.wanted: set[str] = set()
        self.evaluator = ArrayEvaluator(
            name,
            caches,
            self.now,
            self.wanted.add,
            delaying_queue=self.queue,
            quarantine=quarantine(),
        )
        self.events = EventRecorder(session, name, self.now, self.metrics, quarantine())
        updates = cache_updates(
            caches, made.evaluator, self.evaluator.on_update, self.evaluator.on_delete
        )
        self.reconciler = ArrayReconciler(
            session,
            self.evaluator,
            preconditions=PreconditionChecker(session, updates, lambda: self.clock.now),
            backoff=ItemBackoff(0.001, 0.002),
            events=self.events,
            metrics=self.metrics,
            leads=lambda: True,
            on_job=self.chunks.on_update,
            on_job_gone=self.chunks.on_delete,
            clock=lambda: self.clock.now,
        )

    def now(self) -> Now:
        return Now(self.clock.now, self.clock.now)

    def watch(self) -> None:
        """Take in what there is now."""
        there = jobs(self.session)
        for chunk in list(self.chunks.chunks_of(KEY).values()):
            if chunk.uid not in {job["metadata"]["uid"] for job in there}:
                self.chunks.on_delete(chunk.uid)
        for job in there:
            self.chunks.on_update(job)
        if PATH in self.session.objects:
            self.evaluator.on_update(self.session.objects[PATH])
        elif ("ns", "thumbs") in self.evaluator.names_in(None):
            self.evaluator.on_delete(("ns", "thumbs"))
        self.queue.pop_due(float("inf"), 10)
        self.evaluator.evaluate(KEY)

    async def work(self) -> None:
        """Do what is due."""
        self.watch()
        for key in list(self.wanted):
            self.wanted.discard(key)
            await self.reconciler.reconcile(key)


def jobs(session: FakeSession) -> list[Any]:
    """Return the chunks: all jobs but the one that has submitted the array."""
    return [
        obj
        for path, obj in session.objects.items()
        if path.startswith(JOBS_PATH) and path != PARENT_PATH
    ]


def end_chunks(session: FakeSession, failing: set[int]) -> None:
    """Let workers run every chunk that may run."""
    for job in jobs(session):
        if job["status"]["phase"] != "Queued" or job["spec"].get("suspend"):
            continue
        items = ItemRanges.parse(job["spec"]["payload"]["items"])
        failed = items & ItemRanges.of(failing)
        result = ChunkReport(items - failed, failed).result()
        phase = "Cancelled" if job["spec"].get("cancel") else "Succeeded"
        status = {"phase": phase, "result": result if phase == "Succeeded" else None}
        path = job_path("ns", job["metadata"]["name"])
        session.put(path, {**job, "status": status})


class Life:
    """An array on a server, its processes, and what is asked of it."""

    def __init__(self, *, ends_at: int | None = None, after: bool = False, **spec: Any) -> None:
        self.clock = Clock()
        self.server = operator_cluster(self.clock)
        self.session = MortalSession(self.server, ends_at=ends_at, after=after)
        defaults = {"items": {"count": 11}, "chunkSize": 3, "parallelism": 2}
        self.session.put(PATH, raw_array(**{**defaults, **spec}))
        self.process = Process(self.session, self.clock, "first")
        self.most_chunks = 0
        self.writes = 0

    @property
    def status(self) -> Any:
        return self.session.objects[PATH]["status"]

    def ask(self, **spec: Any) -> None:
        array = self.session.objects[PATH]
        self.session.put(PATH, {**array, "spec": {**array["spec"], **spec}})

    async def turn(self, failing: set[int]) -> None:
        try:
            await self.process.work()
        except ProcessEnded:
            self.writes += self.session.sent
            self.session = MortalSession(self.server, ends_at=None, after=False)
            self.process = Process(self.session, self.clock, "second")
        self.most_chunks = max(self.most_chunks, len(jobs(self.session)))
        end_chunks(self.session, failing)
        self.clock.now += 0.6

    async def until(self, phase: str, failing: set[int]) -> None:
        for _ in range(90):
            if self.status["phase"] == phase and not jobs(self.session):
                return
            await self.turn(failing)
        raise AssertionError(f"{self.status}, {jobs(self.session)}")


async def play(life: Life) -> None:
    """Let some items fail, run them again, and let it succeed."""
    await life.until("Failed", {2, 7})
    life.ask(redrive=1)
    await life.until("Succeeded", set())


def check(life: Life) -> None:
    status = life.status
    assert (status["succeeded"], status["failed"], status["next"]) == (11, 0, 11)
    assert life.most_chunks <= 4


async def test_an_array_is_run_under_all_rules() -> None:
    life = Life()
    await play(life)
    check(life)
    counted = {"namespace": "ns", "queue": "default", "outcome": "succeeded"}
    registry = life.process.metrics.registry
    assert registry.get_sample_value("asyncjob_array_items_total", counted) == 11


async def test_items_that_were_done_before_are_not_counted_as_run() -> None:
    life = Life(items={"count": 11, "skip": "0-3,8"})
    await life.until("Succeeded", set())
    assert (life.status["succeeded"], life.status["next"]) == (11, 11)
    counted = {"namespace": "ns", "queue": "default", "outcome": "succeeded"}
    registry = life.process.metrics.registry
    assert registry.get_sample_value("asyncjob_array_items_total", counted) == 6


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_whatever_write_is_the_last_of_a_process_the_next_one_finishes(after: bool) -> None:
    undisturbed = Life()
    await play(undisturbed)
    for number in range(undisturbed.session.sent):
        life = Life(ends_at=number, after=after)
        await play(life)
        check(life)


async def test_a_redrive_of_items_that_are_not_all_known_is_refused_and_the_array_goes_on() -> None:
    life = Life(items={"count": 2003}, ttlSecondsAfterFinished=30)
    life.session.put(PATH, failed_without_a_full_list(life))
    condition = life.status["conditions"]
    life.ask(redrive=1)
    await life.turn(set())
    assert (life.status["reason"], life.status.get("redrives", 0)) == ("RedriveRefused", 1)
    assert life.status["conditions"] == condition
    life.clock.now += 31
    await life.turn(set())
    assert PATH not in life.session.objects


def failed_without_a_full_list(life: Life) -> Any:
    """Return the array as it is once each second of its items has failed, one too many to list."""
    now = life.process.now().timestamp
    condition = {
        "type": "Failed",
        "status": "True",
        "reason": "TooScattered",
        "lastTransitionTime": now,
    }
    status = {
        "phase": "Failed",
        "reason": "TooScattered",
        "total": 2003,
        "next": 2003,
        "succeeded": 1002,
        "failed": 1001,
        "percent": 100,
        "openCount": 0,
        "failedItems": ",".join(str(item) for item in range(0, 2000, 2)),
        "failedUnlisted": 1,
        "generation": 3,
        "completionTime": now,
        "conditions": [condition],
    }
    return {**life.session.objects[PATH], "status": status}


async def test_each_chunk_has_the_label_of_its_shard() -> None:
    life = Life()
    await life.process.work()
    chunks = [chunk["metadata"] for chunk in jobs(life.session)]
    assert chunks
    for chunk in chunks:
        assert shard_label(chunk["name"]).items() <= chunk["labels"].items()


async def test_a_cancelled_array_cancels_chunks_that_wait() -> None:
    life = Life(parallelism=3)
    life.session.put(PATH, raw_array(items={"count": 11}, chunkSize=3, parallelism=3, suspend=True))
    await life.turn(set())
    assert life.status["reason"] == "Suspended"
    life.ask(suspend=False, cancel=True)
    await life.until("Cancelled", set())
    assert life.status["conditions"][0]["type"] == "Cancelled"


async def test_the_chunks_of_an_array_that_is_gone_are_cancelled_and_deleted() -> None:
    life = Life()
    await life.process.work()
    assert len(jobs(life.session)) == 2
    del life.session.objects[PATH]
    await life.process.work()
    assert {job["spec"].get("cancel") for job in jobs(life.session)} == {True}
    end_chunks(life.session, set())
    await life.process.work()
    assert jobs(life.session) == []


@pytest.mark.parametrize(
    "name",
    [
        "?watch=true",
        "../asyncjobs?watch=true",
        "../../../../../../api/v1/namespaces/home/pods/p",
        "no/slash",
        "Capital",
        "n" * 254,
        "line\n",
    ],
)
async def test_what_is_no_name_of_an_array_is_not_asked_for_whatever_a_job_says(name: str) -> None:
    life = Life()
    forged = {
        "metadata": {"name": "forged", "namespace": "ns", "labels": {ARRAY_LABEL: "uid-of-nobody"}},
        "spec": {"type": "thumb/items", "payload": {"array": {"name": name}, "items": "0-9"}},
        "status": {"phase": "Queued"},
    }
    life.process.chunks.on_update(life.session.put(job_path("ns", "forged"), forged))
    asked = len(life.session.requests)
    await life.process.reconciler.reconcile("ns/uid-of-nobody")
    assert life.session.requests[asked:] == []


async def test_a_job_that_names_another_array_shows_nothing_about_this_one() -> None:
    life = Life()
    await life.process.work()
    body = jobs(life.session)[0]
    payload = {**body["spec"]["payload"], "array": {"name": "nowhere", "uid": "uid-a"}}
    forged = {
        "metadata": {"name": "forged", "namespace": "ns", "labels": {ARRAY_LABEL: "uid-a"}},
        "spec": {**body["spec"], "payload": payload},
        "status": {"phase": "Queued"},
    }
    life.session.put(job_path("ns", "forged"), forged)
    life.process = Process(life.session, life.clock, "second")
    for job in jobs(life.session):
        life.process.chunks.on_update(job)
    await life.process.reconciler.reconcile(KEY)
    cancelled = {job["metadata"]["name"] for job in jobs(life.session) if job["spec"].get("cancel")}
    assert cancelled == {"forged"}
    await life.until("Succeeded", set())
    check(life)


async def test_a_job_that_only_bears_the_label_is_deleted_and_never_counted() -> None:
    life = Life()
    stranger = {
        "metadata": {"name": "stranger", "namespace": "ns", "labels": {ARRAY_LABEL: "uid-a"}},
        "spec": {"type": "thumb/items", "queue": "default", "priority": 0},
        "status": {"phase": "Succeeded", "result": {"done": "0-10"}},
    }
    life.session.put(job_path("ns", "stranger"), stranger)
    await life.until("Succeeded", set())
    assert life.status["succeeded"] == 11
    assert life.status["generation"] == 4


async def test_a_name_that_is_taken_costs_another_chunk_and_not_an_item() -> None:
    life = Life(parallelism=1, chunkSize=11)
    life.session.before_write = lambda path: take_name(life, path)
    for _ in range(20):
        await life.turn(set())
    assert (life.status["phase"], life.status["succeeded"]) == ("Succeeded", 11)
    assert life.status["generation"] == 2
    assert [job["spec"]["type"] for job in jobs(life.session)] == ["other"]


def take_name(life: Life, path: str) -> None:
    """Create a job of the name of the first reserved chunk, before its creation arrives."""
    if path != JOBS_PATH or life.status["generation"] > 1 or jobs(life.session):
        return
    name = life.status["open"][0]["name"]
    body = {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"type": "other", "queue": "default", "priority": 0},
        "status": {"phase": "Running"},
    }
    life.session.put(job_path("ns", name), body)


async def test_a_quota_below_parallelism_slows_an_array_and_does_not_stop_it() -> None:
    life = Life(parallelism=3)
    life.session.before_write = lambda path: refuse_beyond(life, path, quota=2)
    await life.until("Succeeded", set())
    check(life)
    assert life.most_chunks == 2
    # Three are cut at first, and one of them is refused; later ones find the room of those deleted.
    assert 4 < life.status["generation"] < 10


async def test_an_array_is_suspended_while_a_quota_has_no_room_for_its_chunks() -> None:
    life = Life(parallelism=3)
    life.session.before_write = lambda path: refuse_beyond(life, path, quota=0)
    await life.turn(set())
    assert len(life.status["open"]) == 3
    life.ask(suspend=True)
    await life.turn(set())
    assert (life.status["reason"], life.status.get("open", [])) == ("Suspended", [])
    assert life.status["requeued"] == "0-8"


def refuse_beyond(life: Life, path: str, *, quota: int) -> None:
    """Refuse the creation of a job where there are as many as the quota permits."""
    if path == JOBS_PATH and len(jobs(life.session)) >= quota:
        raise ForbiddenError("exceeded quota", status=403)


async def test_a_chunk_that_is_created_otherwise_than_asked_for_is_one_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = Life(parallelism=1, chunkSize=11)
    create = life.session.create

    async def create_changed(path: str, body: Any, params: Any = None) -> Any:
        """Change a field of what is created, as a webhook may."""
        return await create(path, {**body, "spec": {**body["spec"], "priority": 7}}, params)

    monkeypatch.setattr(life.session, "create", create_changed)
    await life.turn(set())
    assert {job["spec"]["priority"] for job in jobs(life.session)} == {7}
    await life.until("Succeeded", set())
    check(life)
    assert life.status["generation"] == 1


async def test_a_chunk_without_its_label_is_read_every_few_seconds_and_counted() -> None:
    life = Life(parallelism=1, chunkSize=11)
    await life.process.work()
    life.clock.now += 0.6
    await life.process.work()
    [job] = jobs(life.session)
    path = job_path("ns", job["metadata"]["name"])
    life.session.put(path, {**job, "metadata": {**job["metadata"], "labels": {}}})
    life.process.chunks.on_delete(job["metadata"]["uid"])
    life.clock.now += 0.6
    reads = life.session.requests.count(("GET", path, None))
    await life.process.reconciler.reconcile(KEY)
    assert life.session.requests.count(("GET", path, None)) == reads + 1
    assert life.process.queue.is_blocked(KEY, life.clock.now + 4)
    assert not life.process.queue.is_blocked(KEY, life.clock.now + 6)
    end_chunks(life.session, set())
    await life.process.reconciler.reconcile(KEY)
    assert (life.status["phase"], life.status["succeeded"]) == ("Succeeded", 11)


def child_of(life: Life, *, now: str = "Pending", **control: Any) -> None:
    """Have a job be the one that has submitted the array; `now` is its phase on the server."""
    obj = life.session.objects[PATH]
    labels = {PARENT_LABEL: "uid-p"}
    life.session.put(PATH, {**obj, "metadata": {**obj["metadata"], "labels": labels}})
    life.process.jobs.put(read_job(raw("p", spec=control, phase="Pending")))
    life.session.put(PARENT_PATH, raw("p", spec=control, phase=now))


async def test_an_array_is_not_cancelled_with_a_job_that_has_just_succeeded() -> None:
    life = Life(parallelism=3)
    child_of(life, now="Succeeded", cancel=True, cancelCascade=True)
    await play(life)
    assert "cancel" not in life.session.objects[PATH]["spec"]


async def test_an_array_that_may_not_be_cancelled_goes_on_meanwhile() -> None:
    life = Life(parallelism=3)
    child_of(life, cancel=True, cancelCascade=True)
    life.session.fail("PATCH", PATH, ForbiddenError("no", status=403, reason="Forbidden"))
    await life.until("Succeeded", set())
    assert "cancel" not in life.session.objects[PATH]["spec"]


async def test_an_array_is_cancelled_with_the_job_that_has_submitted_it() -> None:
    life = Life(parallelism=3)
    child_of(life)
    await life.turn(set())
    assert len(jobs(life.session)) == 3
    life.process.child_arrays.on_parent_cancelled("uid-p")
    await life.process.work()
    assert "cancel" not in life.session.objects[PATH]["spec"]  # its job is not cancelled
    child_of(life, cancel=True, cancelCascade=True)
    life.process.child_arrays.on_parent_cancelled("uid-p")
    await life.until("Cancelled", set())
    assert life.session.objects[PATH]["spec"]["cancel"] is True


@pytest.mark.parametrize(
    "error",
    [
        UnknownOutcomeError("away", status=503, reason="ServiceUnavailable"),
        ForbiddenError("no", status=403, reason="Forbidden"),
    ],
)
@pytest.mark.parametrize("request_", [("GET", PARENT_PATH), ("PATCH", PATH)])
async def test_an_array_is_cancelled_with_its_job_once_that_is_possible(
    error: ApiError, request_: tuple[str, str]
) -> None:
    life = Life(parallelism=3, suspend=True)
    child_of(life, cancel=True, cancelCascade=True)
    life.session.fail(*request_, error)
    await life.turn(set())
    life.process.queue.forget(KEY)
    life.process.watch()
    decision = life.process.evaluator.decide(life.process.evaluator.locate(KEY), {}, "")  # type: ignore[arg-type]
    assert decision.effect or decision.requeue_at, "nothing else would have it looked at again"
    life.session.failures.clear()
    life.clock.now += 20
    await life.until("Cancelled", set())


async def test_a_chunk_that_is_gone_does_not_make_its_array_gone() -> None:
    life = Life(parallelism=3)
    await life.turn(set())
    life.ask(suspend=True)
    life.process.watch()
    [chunk, *_] = jobs(life.session)
    path = job_path("ns", chunk["metadata"]["name"])
    life.session.fail("PATCH", path, ConflictError("changed", status=409, reason="Conflict"))
    gone = ObjectNotFoundError("gone", status=404, reason="NotFound")
    life.session.fail("GET", path, gone)
    await life.process.work()
    uid = life.session.objects[PATH]["metadata"]["uid"]
    assert life.process.child_arrays.has_ended(uid) is False
    assert life.process.evaluator.locate(KEY)


async def test_another_array_of_its_name_is_looked_after_though_nobody_saw_the_first_one_go() -> (
    None
):
    life = Life(parallelism=3)
    await life.process.work()
    first = life.session.objects[PATH]
    second = {**first, "metadata": {**first["metadata"], "uid": "uid-b"}, "status": {}}
    del life.session.objects[PATH]
    stored = life.session.put(PATH, second)
    life.process.evaluator.on_update(stored)
    arrays, evaluator = life.process.child_arrays, life.process.evaluator
    assert arrays.has_ended("uid-a") is True
    assert arrays.has_ended("uid-b") is False
    assert evaluator.locate(array_key("ns", "uid-a")) is None
    assert evaluator.locate(array_key("ns", "uid-b"))
    evaluator.on_update(first)  # late news of the first
    evaluator.on_delete(("ns", "thumbs"), first["metadata"]["resourceVersion"])
    assert arrays.has_ended("uid-b") is False
    assert evaluator.locate(array_key("ns", "uid-b"))


async def test_late_news_of_an_array_that_was_never_seen_do_not_hide_the_one_of_its_name() -> None:
    life = Life(parallelism=3)
    first = life.session.objects[PATH]
    second = {**first, "metadata": {**first["metadata"], "uid": "uid-b"}}
    del life.session.objects[PATH]
    life.process.evaluator.on_update(life.session.put(PATH, second))
    life.process.evaluator.on_update(first)
    assert life.process.evaluator.locate(array_key("ns", "uid-b"))
    assert life.process.child_arrays.has_ended("uid-a") is None
    assert life.process.child_arrays.has_ended("uid-b") is False


async def test_that_an_array_is_there_that_it_ends_and_that_it_goes_is_told_once_each() -> None:
    life, told = Life(), list[str]()
    arrays = life.process.child_arrays
    arrays.add_news_listener(lambda uid, _name: told.append(uid))
    uid = life.session.objects[PATH]["metadata"]["uid"]
    assert arrays.has_ended(uid) is None
    await life.turn(set())
    assert arrays.has_ended(uid) is False
    assert told == [uid]
    await play(life)
    old = life.session.objects[PATH]
    assert arrays.has_ended(uid) is True
    assert told == [uid] * 4  # it has failed, was redriven, and has ended
    life.process.evaluator.on_delete(("ns", "thumbs"))
    life.process.evaluator.on_update(old)
    assert life.process.evaluator.locate(array_key("ns", uid)) is None
    assert arrays.has_ended(uid) is True
    assert told == [uid] * 5
