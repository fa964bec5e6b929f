"""Arrays on Kubernetes: lost answers, changes that others make, waiting; on a server in memory."""

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from asyncjob.client.errors import (
    ArrayExistsError,
    ArrayGoneError,
    InvalidSubmissionError,
    UnavailableError,
    WaitTimeoutError,
)
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.names import array_path
from asyncjob.rest.arrays import (
    ArrayInfo,
    ArraySubmission,
    array_of,
    items_per_second,
    seconds_left,
)
from support.in_memory.fake_api import NAMESPACE, FakeApi, Obj, Pause, Step, client_of, iterate, run
from support.objects import builders

IDS = (f"id-{number}" for number in itertools.count())
NOW = datetime(2026, 1, 1, 0, 1, 40, tzinfo=UTC)
STARTED = "2026-01-01T00:00:00Z"


def wanted(**fields: Any) -> ArraySubmission:
    return ArraySubmission.model_validate({"type": "thumb", "items": {"count": 10}, **fields})


def put(api: FakeApi, name: str = "thumbs", uid: str = "u1", **status: Any) -> Obj:
    """Store an array past all rules."""
    obj = builders.array(name)
    obj["metadata"] |= {
        "namespace": NAMESPACE,
        "uid": uid,
        "creationTimestamp": STARTED,
        "resourceVersion": "1",
    }
    obj["status"] = {"phase": "Running", "total": 10, **status}
    return api.objects.put(array_path(NAMESPACE, name), obj)


@pytest.mark.parametrize(("lose", "refuse"), [(1, 0), (0, 1), (2, 2)])
@pytest.mark.parametrize("name", [None, "thumbs"])
def test_lost_answers_make_no_second_array(name: str | None, lose: int, refuse: int) -> None:
    api = FakeApi(lose=lose, refuse=refuse)
    done = run(client_of(api, new_id=lambda: next(IDS)).submit_array(wanted(name=name)))
    assert done.created
    assert len(api.objects) == 1


def test_an_array_that_somebody_else_made_under_the_name_is_not_taken_for_ones_own() -> None:
    api = FakeApi()
    put(api)
    with pytest.raises(ArrayExistsError):
        run(client_of(api).submit_array(wanted(name="thumbs")))


def test_a_submission_without_a_chunk_size_is_that_of_an_older_client_which_adds_it() -> None:
    api = FakeApi()
    client = client_of(api)
    run(client.submit_array(wanted(name="a", chunkSize=500)))
    assert not run(client.submit_array(wanted(name="a"))).created
    with pytest.raises(ArrayExistsError):
        run(client.submit_array(wanted(name="a", chunkSize=501)))


def test_labels_and_items_tell_one_array_from_another() -> None:
    api = FakeApi()
    client = client_of(api)
    run(client.submit_array(wanted(name="a", labels={"team": "mail"})))
    again = run(client.submit_array(wanted(name="a", labels={"team": "mail"}, suspend=False)))
    assert not again.created
    others: tuple[dict[str, Any], ...] = ({"labels": {"team": "x"}}, {"items": {"count": 11}})
    for other in others:
        with pytest.raises(ArrayExistsError):
            run(client.submit_array(wanted(name="a", **other)))


def test_items_of_a_file_are_named_and_not_sent() -> None:
    api = FakeApi()
    source = {"uri": "s3://bucket/payloads/a.csv", "format": "CSV"}
    run(client_of(api).submit_array(wanted(name="a", items={"from": source})))
    (stored,) = api.objects.values()
    assert stored["spec"]["items"] == {"from": source}
    with pytest.raises(InvalidSubmissionError, match="exactly one of count, inline and from"):
        run(client_of(api).submit_array(wanted(name="b", items={"from": source, "count": 1})))


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ({"count": 10, "skip": "3,8-10"}, "there is no item 10: the last one is 9"),
        ({"inline": ["a"], "skip": "1"}, "there is no item 1: the last one is 0"),
        ({"count": 10, "skip": "5-3"}, "the range 5-3 ends before it begins"),
    ],
)
def test_items_to_skip_that_there_are_not_are_named(items: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSubmissionError, match=f"items.skip: {said}"):
        run(client_of(FakeApi()).submit_array(wanted(items=items)))


def test_items_to_skip_are_sent() -> None:
    api = FakeApi()
    file = {"uri": "s3://bucket/a.csv", "version": "etag=1"}
    given: list[dict[str, Any]] = [
        {"count": 10, "skip": "3,8-9"},
        {"inline": ["a", None], "skip": "0"},
        {"from": file, "skip": "3,8-9"},
    ]
    for number, items in enumerate(given):
        run(client_of(api).submit_array(wanted(name=f"a-{number}", items=items)))
    assert [one["spec"]["items"] for one in api.objects.values()] == given


def test_an_array_deleted_between_two_requests_is_worth_another_try() -> None:
    class Vanishing(FakeApi):
        def do(self, step: Step) -> Any:
            if getattr(step, "method", "") == "GET":
                self.objects.pop(array_path(NAMESPACE, "thumbs"), None)
            return super().do(step)

    api = Vanishing()
    put(api)
    with pytest.raises(UnavailableError, match="try again"):
        run(client_of(api).submit_array(wanted(name="thumbs")))


def test_several_wrong_fields_are_told_at_once() -> None:
    submission = wanted(
        items={"count": 1, "inline": [1]}, payload="x" * 70_000, maxFailed=1, maxFailedPercent=1
    )
    with pytest.raises(InvalidSubmissionError) as caught:
        run(client_of(FakeApi()).submit_array(submission))
    found = {one.field: one.detail for one in caught.value.errors}
    assert set(found) == {"items", "payload", "maxFailedPercent"}
    assert "let the items say where the rest is" in found["payload"]


def test_items_that_are_too_large_are_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidSubmissionError, match=r"items\.inline: .*items\.from"):
        run(client_of(FakeApi()).submit_array(wanted(items={"inline": ["x" * 300_000]})))


def test_a_redrive_after_a_lost_answer_is_asked_for_once() -> None:
    api = FakeApi(lose=1)
    put(api, phase="Failed", failed=1, redrives=0)
    array = run(client_of(api).redrive_array("thumbs"))
    assert (array.redriving, array.finished) == (True, False)
    assert api.objects[array_path(NAMESPACE, "thumbs")]["spec"]["redrive"] == 1
    run(client_of(api).redrive_array("thumbs"))
    assert api.objects[array_path(NAMESPACE, "thumbs")]["spec"]["redrive"] == 1


class Living(FakeApi):
    """A server whose array goes on with each pause."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.coming: list[Any] = []

    def do(self, step: Step) -> Any:
        if isinstance(step, Pause) and self.coming:
            self.coming.pop(0)()
        return super().do(step)


def test_a_wait_yields_changes_only_and_ends_with_the_array() -> None:
    api = Living()
    put(api)
    api.coming = [
        lambda: None,
        lambda: put(api, succeeded=5, percent=50),
        lambda: setattr(api, "refuse", 2),
        lambda: None,
        lambda: None,
        lambda: put(api, phase="Failed", succeeded=9, failed=1, percent=100),
    ]
    seen = list(iterate(client_of(api).follow_array("thumbs", None, 2.0)))
    assert [one.percent for one in seen] == [0, 50, 100]
    assert seen[-1].phase is ArrayPhase.FAILED
    assert api.coming == []


def test_a_wait_ends_in_time_whatever_the_array_does() -> None:
    api = Living()
    put(api)
    with pytest.raises(WaitTimeoutError, match="it is Running"):
        run(client_of(api).wait_for_array("thumbs", 5.0))
    assert api.now == pytest.approx(5.0)
    api.refuse = 1000
    with pytest.raises(WaitTimeoutError, match="could not be read"):
        run(client_of(api).wait_for_array("thumbs", 5.0))


def test_another_array_of_the_name_is_not_the_one_that_is_waited_for() -> None:
    api = Living()
    put(api)
    api.coming = [lambda: put(api, uid="u2", phase="Succeeded")]
    with pytest.raises(ArrayGoneError, match="another has its name"):
        run(client_of(api).wait_for_array("thumbs", 5.0))


def info(**status: Any) -> ArrayInfo:
    return array_of(put(FakeApi(), startTime=STARTED, **status))


def test_the_rate_is_that_of_all_items_since_the_first_chunk() -> None:
    array = info(succeeded=4, failed=1)
    assert items_per_second(array, NOW) == pytest.approx(0.05)
    assert seconds_left(array, NOW) == pytest.approx(100.0)


def test_while_it_goes_on_the_rate_and_the_end_are_those_that_the_operator_has_measured() -> None:
    end = "2026-01-01T00:02:10Z"
    array = info(succeeded=4, failed=1, itemsPerMinute=30, expectedEndTime=end)
    assert items_per_second(array, NOW) == pytest.approx(0.5)
    assert seconds_left(array, NOW) == pytest.approx(30.0)
    late = info(succeeded=4, itemsPerMinute=30, expectedEndTime="2026-01-01T00:00:00Z")
    assert (items_per_second(late, NOW), seconds_left(late, NOW)) == (0.5, None)


def test_items_that_were_done_before_say_nothing_about_the_rate() -> None:
    obj = put(FakeApi(), startTime=STARTED, next=7, succeeded=4, failed=1)
    obj["spec"] |= {"items": {"count": 10, "skip": "0-1,9"}}
    array = array_of(obj)
    assert (array.skipped, array.done) == (2, 5)
    assert items_per_second(array, NOW) == pytest.approx(0.03)
    assert seconds_left(array_of(obj, detailed=True), NOW) == pytest.approx(4 / 0.03)
    obj["status"] |= {"succeeded": 2, "failed": 0, "next": 2}
    assert items_per_second(array_of(obj), NOW) is None


def test_nobody_can_tell_how_long_an_array_takes_that_does_not_go_on() -> None:
    assert items_per_second(info(), NOW) is None
    ended = info(succeeded=10, phase="Succeeded", completionTime="2026-01-01T00:00:10Z")
    assert items_per_second(ended, NOW) == pytest.approx(1.0)
    assert seconds_left(ended, NOW) is None


def test_items_and_payload_are_hidden_from_who_may_not_read_them() -> None:
    obj = put(FakeApi())
    obj["spec"] |= {"payload": "secret", "items": {"inline": ["secret"]}}
    whole = array_of(obj, detailed=True)
    assert "secret" in whole.model_dump_json()
    assert "secret" not in whole.without_payload().model_dump_json()
    assert array_of(obj).without_payload() == array_of(obj)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"dependsOn": [{"array": "thumbs"}]}, "array thumbs cannot depend on itself"),
        ({"dependsOn": [{"array": "a"}, {"array": "a"}]}, "array a is named twice"),
        ({"notBefore": "2026-02-30T00:00:00Z"}, "notBefore: not a valid time"),
    ],
)
def test_what_an_array_cannot_wait_for_is_refused_before_it_is_sent(
    fields: dict[str, Any], said: str
) -> None:
    api = FakeApi()
    with pytest.raises(InvalidSubmissionError, match=said):
        run(client_of(api).submit_array(wanted(name="thumbs", **fields)))
    assert not len(api.objects)
