"""Submitting: lost answers, races and the bound on what was read, on a server in memory."""

import itertools
import weakref
from typing import Any

import pytest

from asyncjob.client.connection import Answer, Call
from asyncjob.client.errors import (
    DuplicateJobError,
    InvalidSubmissionError,
    JobExistsError,
    KeyReusedError,
    NotAllowedError,
    UnavailableError,
)
from asyncjob.errors import ForbiddenError, InvalidError
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.submission import Submission, Submitted
from asyncjob.submission import dedup_name_prefix, key_name, sequence_name
from support.in_memory.fake_api import NAMESPACE, FakeApi, Obj, Step, client_of, ended, run
from support.objects.builders import stored

IDS = (f"id-{number}" for number in itertools.count())
EMAIL = Submission(type="email", payload={"to": "a"})
KEYED = Submission(type="email", payload={"to": "a"}, idempotency_key="k")
SOLE = Submission(type="email", payload={"to": "a"}, deduplication_id="d")
FIRST, SECOND = (sequence_name(dedup_name_prefix(NAMESPACE, "d"), number) for number in (1, 2))


def submit(api: FakeApi, submission: Submission) -> Submitted:
    """Submit as a process of its own would."""
    return run(client_of(api, new_id=lambda: next(IDS)).submit(submission))


@pytest.mark.parametrize("submission", [EMAIL, KEYED, SOLE])
@pytest.mark.parametrize(("lose", "refuse"), [(1, 0), (0, 1), (2, 2)])
def test_lost_answers_make_no_second_job(submission: Submission, lose: int, refuse: int) -> None:
    api = FakeApi(lose=lose, refuse=refuse)
    assert submit(api, submission).created
    assert len(api.objects) == 1


def test_a_job_whose_answer_was_lost_and_that_has_finished_is_the_same_job() -> None:
    api = FakeApi(lose=1)

    def finish() -> None:
        for obj in list(api.objects.values()):
            ended(api, obj["metadata"]["name"])

    api.meanwhile = finish
    assert submit(api, SOLE) == Submitted(id=FIRST, created=True, phase="Succeeded")
    assert len(api.objects) == 1


def test_a_server_that_is_away_is_given_up_in_time() -> None:
    api = FakeApi(refuse=1000)
    with pytest.raises(UnavailableError):
        submit(api, EMAIL)
    assert 20 < api.now <= 30


def test_a_plain_submit_is_one_request() -> None:
    api = FakeApi()
    submit(api, KEYED)
    assert [call.method for call in api.calls] == ["POST"]


def test_the_same_key_finds_the_job_however_far_it_is() -> None:
    api = FakeApi()
    first = submit(api, KEYED)
    ended(api, first.id)
    assert submit(api, KEYED) == Submitted(id=first.id, created=False, phase="Succeeded")
    other = KEYED.model_copy(update={"payload": {"to": "b"}})
    with pytest.raises(KeyReusedError) as caught:
        submit(api, other)
    assert caught.value.job_id == first.id == key_name(NAMESPACE, "k")


def test_a_job_that_is_deleted_while_it_is_compared_is_created_again() -> None:
    api = FakeApi()
    first = submit(api, KEYED)
    original = api.do

    def do(step: Step) -> Answer:
        if getattr(step, "method", "") == "GET":
            api.objects.clear()
        return original(step)

    api.do = do  # type: ignore[method-assign]  # a stand-in for one test
    assert submit(api, KEYED) == Submitted(id=first.id, created=True, phase="Queued")


def test_a_name_that_another_job_has_is_refused() -> None:
    api = FakeApi()
    named = EMAIL.model_copy(update={"name": "mine"})
    submit(api, named)
    with pytest.raises(JobExistsError) as caught:
        submit(api, named.model_copy(update={"priority": 1}))
    assert caught.value.job_id == "mine"


def test_jobs_with_one_deduplication_id_are_numbered_backwards() -> None:
    api = FakeApi()
    assert submit(api, SOLE).id == FIRST
    ended(api, FIRST)
    assert submit(api, SOLE).id == SECOND
    assert SECOND < FIRST
    with pytest.raises(DuplicateJobError) as caught:
        submit(api, SOLE)
    assert caught.value.job_id == SECOND


@pytest.mark.parametrize("phase", sorted(set(Phase) - {"Succeeded", "DeadLetter", "Cancelled"}))
def test_a_deduplication_id_is_held_in_every_phase_but_the_last(phase: Phase) -> None:
    api = FakeApi()
    api.set(submit(api, SOLE).id, phase=phase.value)
    with pytest.raises(DuplicateJobError):
        submit(api, SOLE)


def test_a_job_that_is_being_deleted_holds_its_id_no_longer() -> None:
    api = FakeApi()
    going = api.job(submit(api, SOLE).id)
    api.put(
        {**going, "metadata": {**going["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )
    assert submit(api, SOLE).id == SECOND


def test_of_two_at_once_the_second_meets_the_first_by_name() -> None:
    api = FakeApi()

    def quicker() -> None:
        api.meanwhile = lambda: None
        submit(api, SOLE)

    api.meanwhile = quicker
    with pytest.raises(DuplicateJobError) as caught:
        submit(api, SOLE)
    assert caught.value.job_id == FIRST
    assert len(api.objects) == 1


def test_a_quicker_one_that_is_over_already_leaves_the_next_number() -> None:
    api = FakeApi()

    def quicker() -> None:
        api.meanwhile = lambda: None
        ended(api, submit(api, SOLE).id)

    api.meanwhile = quicker
    assert submit(api, SOLE).id == SECOND


def test_what_was_read_too_long_ago_is_read_again_before_anything_is_created() -> None:
    api = FakeApi(request_seconds=11)
    with pytest.raises(UnavailableError, match="takes too long"):
        submit(api, SOLE)
    assert api.writes == []
    api.request_seconds = 9
    assert submit(api, SOLE).created


def test_a_key_finds_its_job_in_a_row_though_the_row_has_gone_on() -> None:
    api = FakeApi()
    keyed = SOLE.model_copy(update={"idempotency_key": "k"})
    first = submit(api, keyed)
    ended(api, first.id)
    submit(api, SOLE)
    assert submit(api, keyed) == Submitted(id=first.id, created=False, phase="Succeeded")


def keyed(deduplication_id: str) -> Submission:
    return EMAIL.model_copy(
        update={"idempotency_key": "k", "deduplication_id": deduplication_id, "name": None}
    )


def quicker_with_the_same_key(api: FakeApi, lost: int) -> None:
    """Let somebody else submit under the key just before the next write; lose its answers."""

    def quicker() -> None:
        api.meanwhile = lambda: None
        submit(api, keyed("other"))
        api.lose = lost

    api.meanwhile = quicker


@pytest.mark.parametrize("lost", [0, 1])
def test_of_two_at_once_with_one_key_and_two_ids_the_second_is_taken_back(lost: int) -> None:
    api = FakeApi()
    quicker_with_the_same_key(api, lost)
    with pytest.raises(KeyReusedError) as caught:
        submit(api, keyed("mine"))
    first = caught.value.job_id
    second = next(one for one in api.objects.values() if one["metadata"]["name"] != first)
    assert second["spec"]["cancel"] is True
    assert "cancel" not in api.job(first)["spec"]
    assert submit(api, keyed("other")) == Submitted(id=first, created=False, phase="Queued")
    with pytest.raises(KeyReusedError) as again:
        submit(api, keyed("mine"))
    assert again.value.job_id == first


def test_whether_the_key_was_free_is_asked_as_of_the_creation() -> None:
    api = FakeApi()
    made = submit(api, keyed("mine"))
    asked = dict(api.calls[-1].params)
    version = api.job(made.id)["metadata"]["resourceVersion"]
    assert (asked["resourceVersion"], asked["resourceVersionMatch"]) == (version, "Exact")
    # Nobody else has the label: no job is read whole for that.
    assert [call.accept for call in api.calls[-1:]] == [METADATA_LIST_TYPE]


def test_who_gives_no_key_beside_the_id_is_asked_for_nothing_more() -> None:
    api = FakeApi()
    submit(api, SOLE)
    assert api.calls[-1].method == "POST"


def test_of_two_jobs_with_the_key_the_one_that_stays_is_waited_for() -> None:
    api = FakeApi()
    mine = submit(api, keyed("mine"))
    competitor = api.job(mine.id)
    spec = {**competitor["spec"], "deduplicationId": "other"}
    metadata = {**competitor["metadata"], "name": "a-competitor", "annotations": {}}
    api.put({**competitor, "metadata": metadata, "spec": spec})
    assert submit(api, keyed("mine")) == Submitted(id=mine.id, created=False, phase="Queued")
    assert api.now > 0


class ManyLargeJobs(FakeApi):
    """Has many jobs with one key and one id, of which it counts those that somebody still holds."""

    count = 200
    per_page = 10

    def __init__(self) -> None:
        super().__init__()
        self.handed_out: list[weakref.ref[HandedOut]] = []
        self.most_held = 0

    def _carry_out(self, call: Call) -> Obj:
        params = dict(call.params)
        is_list = call.method == "GET" and call.path.endswith("/asyncjobs")
        if not is_list or params.get("limit") == "1" or "resourceVersion" in params:
            return super()._carry_out(call)
        self.most_held = max(self.most_held, sum(one() is not None for one in self.handed_out))
        begin = int(params.get("continue", "0"))
        end = min(begin + self.per_page, self.count)
        page = [HandedOut(self._job(number, params)) for number in range(begin, end)]
        self.handed_out += map(weakref.ref, page)
        return {"metadata": {"continue": str(end) if end < self.count else ""}, "items": page}

    def _job(self, number: int, params: dict[str, str]) -> Obj:
        key = "other" if "labelSelector" in params else "k"
        return stored(f"j{number}", deduplicationId="d", idempotencyKey=key)


class HandedOut(dict[str, Any]):
    """An object that can be referred to weakly."""


@pytest.mark.parametrize("key", ["k", "other", "third"])
def test_of_many_jobs_with_one_key_or_id_hardly_more_than_a_page_is_held(key: str) -> None:
    api = ManyLargeJobs()
    with pytest.raises((KeyReusedError, DuplicateJobError)):
        submit(api, keyed("d").model_copy(update={"idempotency_key": key}))
    assert len(api.handed_out) >= api.count
    assert api.most_held <= 2 * api.per_page


def test_a_redrive_holds_no_job_of_the_many_with_its_id() -> None:
    api = ManyLargeJobs()
    api.put(stored("dead", deduplicationId="d"))
    api.set("dead", phase="DeadLetter")
    with pytest.raises(DuplicateJobError):
        run(client_of(api).redrive("dead"))
    assert len(api.handed_out) == api.count
    assert api.most_held <= 2 * api.per_page


def test_looking_for_the_newest_reads_one_object_without_its_payload() -> None:
    api = FakeApi()
    submit(api, SOLE)
    newest = next(call for call in api.calls if call.accept == METADATA_LIST_TYPE)
    assert dict(newest.params)["limit"] == "1"


def test_what_the_server_refuses_is_told_in_a_clients_words() -> None:
    forbidding = FakeApi(error=ForbiddenError("may not", status=403))
    with pytest.raises(NotAllowedError, match="may not"):
        submit(forbidding, EMAIL)
    assert (len(forbidding.calls), forbidding.now) == (1, 0.0)  # no second try, no wait
    with pytest.raises(InvalidSubmissionError, match=r"spec\.x"):
        submit(FakeApi(error=InvalidError("spec.x is wrong", status=422)), EMAIL)
