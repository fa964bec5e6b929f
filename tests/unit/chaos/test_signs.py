"""What the API server's audit log and the ends of attempts tell of what has happened."""

from collections import Counter
from typing import Any

from asyncjob_chaos.judging.signs import (
    Sign,
    signs_of_arrays,
    signs_of_ends,
    signs_of_requests,
)


def claim(token: str, code: int, **status: Any) -> dict[str, Any]:
    return {
        "stage": "ResponseComplete",
        "verb": "patch",
        "objectRef": {"resource": "asyncjobs", "subresource": "status", "name": "job"},
        "requestObject": {"status": {"phase": "Running", "claim": token, **status}},
        "responseStatus": {"code": code},
    }


def test_a_claim_that_meets_a_conflict_was_contested() -> None:
    assert signs_of_requests([claim("a", 200), claim("b", 409)]) == {Sign.CLAIM_CONTESTED: 1}


def test_a_claim_that_was_stored_and_comes_again_is_one_whose_answer_was_lost() -> None:
    assert signs_of_requests([claim("a", 200), claim("a", 409)]) == {Sign.ANSWER_ADOPTED: 1}


def test_the_order_in_which_two_requests_were_logged_does_not_count() -> None:
    assert signs_of_requests([claim("a", 409), claim("a", 200)]) == {Sign.ANSWER_ADOPTED: 1}


def test_a_heartbeat_is_no_claim() -> None:
    heartbeat = claim("", 409, lease={"renewals": 1})
    assert not signs_of_requests([heartbeat, {"stage": "RequestReceived"}])


def test_ends_of_attempts_are_signs() -> None:
    ends = Counter({"LeaseExpired": 2, "Succeeded": 9, "WorkerCrashed": 1})
    assert signs_of_ends(ends) == {Sign.LEASE_EXPIRED: 2, Sign.WORKER_CRASHED: 1}


def array_write(pod: str, name: str = "array-1", code: int = 200) -> dict[str, Any]:
    return {
        "objectRef": {"resource": "asyncarrays", "subresource": "status", "name": name},
        "user": {"extra": {"authentication.kubernetes.io/pod-name": [pod]}},
        "responseStatus": {"code": code},
    }


def test_an_array_whose_status_is_written_by_two_operators_was_taken_over() -> None:
    writes = [array_write("one"), array_write("one"), array_write("two"), array_write("two")]
    assert signs_of_arrays(writes) == {Sign.ARRAY_TAKEN_OVER: 1}


def test_an_array_of_another_operator_and_a_refused_write_are_no_takeover() -> None:
    writes = [array_write("one"), array_write("two", code=409), array_write("two", "array-2")]
    assert not signs_of_arrays([*writes, claim("a", 200)])
