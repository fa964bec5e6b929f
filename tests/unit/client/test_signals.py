"""Sending signals, by both kinds of client: once, in one's own name, and what is refused before."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from asyncjob.client import errors as e
from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient
from asyncjob.client.kubernetes.signals import MAX_TRIES
from asyncjob.client.options import check_signal
from asyncjob.errors import ForbiddenError, InvalidError
from asyncjob.lifecycle.signals import MAX_SIGNAL_BYTES, MAX_SIGNALS
from asyncjob.rest.job_reading import job_of
from asyncjob_simulation.apiserver import Request
from support.in_memory.fake_api import FakeApi, client_of, run
from support.objects.builders import stored
from unit.client.test_rest import LOST, Gateway, ok, problem

ADMIN = "system:admin"
TOO_LARGE = "x" * MAX_SIGNAL_BYTES


def jobs(api: FakeApi) -> AsyncKubernetesJobsClient:
    return client_of(api, patience=5.0)


def fake_api(phase: str = "Queued", spec: dict[str, Any] | None = None, **status: Any) -> FakeApi:
    """Return a server with one job, `j`."""
    api = FakeApi()
    api.put(stored("j", {"phase": phase, **status}, **(spec or {})))
    return api


def signals(api: FakeApi) -> Any:
    return api.job("j")["spec"].get("signals")


def sent(payload: Any, by: str = ADMIN) -> dict[str, Any]:
    return {"payload": payload, "sentBy": by}


def patches(api: FakeApi) -> int:
    return sum(call.method == "PATCH" for call in api.calls)


def test_a_signal_is_sent_in_ones_own_name_and_read_back() -> None:
    api = fake_api()
    [signal] = run(jobs(api).signal("j", "approval", {"ok": True, "none": None})).signals
    assert (signal.name, signal.payload) == ("approval", {"ok": True, "none": None})
    assert signal.sent_by == run(jobs(api).signal("j", "more")).signals[1].sent_by
    assert signals(api)["approval"]["sentBy"] == signal.sent_by
    assert signals(api)["approval"]["sentAt"] == "2026-01-01T00:00:00.000Z"
    assert signals(api)["more"].get("payload") is None


def test_repeating_a_signal_changes_nothing() -> None:
    api = fake_api()
    for _ in range(3):
        run(jobs(api).signal("j", "approval", [1, {"a": 2.0}]))
    assert patches(api) == 1


@pytest.mark.parametrize("payload", [1, {"ok": 1}, [True], [True, True], "true", None])
def test_another_payload_of_the_same_name_is_refused_and_says_who_was_first(payload: Any) -> None:
    api = fake_api()
    run(jobs(api).signal("j", "approval", True))
    before = signals(api)
    with pytest.raises(e.JobStateError, match=r"job j has been sent approval by .*never changed"):
        run(jobs(api).signal("j", "approval", payload))
    assert signals(api) == before


@pytest.mark.parametrize(
    ("one", "other"), [({"ok": True}, {"ok": 1}), ([1], [True]), ({"a": 1}, {"b": 1})]
)
def test_what_python_takes_for_equal_is_another_payload(one: Any, other: Any) -> None:
    api = fake_api()
    run(jobs(api).signal("j", "approval", one))
    with pytest.raises(e.JobStateError, match="approval"):
        run(jobs(api).signal("j", "approval", other))


@pytest.mark.parametrize("lost", [1, 2])
def test_a_signal_whose_answer_is_lost_is_sent_once(lost: int) -> None:
    api = fake_api()
    api.lose = lost
    run(jobs(api).signal("j", "approval", {"ok": True}))
    assert signals(api)["approval"]["payload"] == {"ok": True}


def test_another_signal_that_comes_in_between_stays() -> None:
    api = fake_api()

    def meanwhile() -> None:
        api.meanwhile = lambda: None
        obj = api.job("j")
        obj["spec"]["signals"] = {"other": sent(1, "bob")}
        api.put(obj)

    api.meanwhile = meanwhile
    run(jobs(api).signal("j", "approval", 2))
    assert {name: one["payload"] for name, one in signals(api).items()} == {
        "other": 1,
        "approval": 2,
    }


def deleted_and_created_again(api: FakeApi) -> None:
    """Let another job take the name between the client's read and its write."""

    def meanwhile() -> None:
        if api.calls[-1].method == "PATCH":
            obj = stored("j", {"phase": "Queued"})
            obj["metadata"]["uid"] = "another"
            api.put(obj)

    api.meanwhile = meanwhile


def test_a_job_that_has_taken_the_name_meanwhile_is_sent_nothing() -> None:
    api = fake_api()
    deleted_and_created_again(api)
    with pytest.raises(e.JobStateError, match="job j is another job now"):
        run(jobs(api).signal("j", "approval", True))
    assert (signals(api), patches(api)) == (None, 1)


def test_a_signal_for_the_job_that_was_seen_is_not_for_another_of_its_name() -> None:
    api = fake_api()
    uid = api.job("j")["metadata"]["uid"]
    run(jobs(api).signal_for("ada", "j", "approval", True, uid=uid))
    with pytest.raises(e.JobStateError, match="job j is another job now: the one with UID other"):
        run(jobs(api).signal_for("ada", "j", "approval", True, uid="other"))
    with pytest.raises(e.JobStateError, match="job j is another job now"):
        run(jobs(api).signal_for("ada", "j", "more", True, uid="other"))
    assert signals(api).keys() == {"approval"}


def test_a_crd_that_does_not_know_signals_is_told_by_what_it_drops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = fake_api()
    whole = api.server.handle

    def pruned(request: Request) -> Any:
        if request.method == "PATCH":
            operations = orjson.loads(request.body)
            kept = [one for one in operations if not one["path"].startswith("/spec/signals")]
            request = replace(request, body=orjson.dumps(kept))
        return whole(request)

    monkeypatch.setattr(api.server, "handle", pruned)
    said = r"does not know spec\.signals: apply the CRDs and policies of this release"
    with pytest.raises(e.JobStateError, match=said):
        run(jobs(api).signal("j", "approval", True))
    assert (signals(api), patches(api)) == (None, 1)


@pytest.mark.parametrize(
    ("name", "payload", "said"),
    [
        ("no name", 1, r"signal: 'no name' is not the name of a signal"),
        ("", 1, "signal: '' is not the name"),
        ("-x", 1, "signal: '-x' is not"),
        ("x\n", 1, "signal: "),
        ("x" * 64, 1, "63 at most"),
        ("approval", TOO_LARGE, r"payload: .*16386 bytes, the limit is 16384"),
        ("approval", object(), "payload: .*"),
        ("approval", float("nan"), "payload: .*"),
    ],
)
def test_what_no_signal_can_be_is_refused_before_anybody_is_asked(
    name: str, payload: Any, said: str
) -> None:
    api, gateway = fake_api(), Gateway(ok({}))
    with pytest.raises(e.InvalidRequestError, match=said):
        run(jobs(api).signal("j", name, payload))
    with pytest.raises(e.InvalidRequestError, match=said), gateway.client() as client:
        client.signal("j", name, payload)
    assert (api.calls, gateway.requests) == ([], [])


def test_a_payload_that_just_fits_is_taken() -> None:
    assert check_signal("a" * 63, TOO_LARGE[:-2]) == TOO_LARGE[:-2]


def test_an_unknown_job_is_named() -> None:
    with pytest.raises(e.JobNotFoundError, match="no job gone"):
        run(jobs(fake_api()).signal("gone", "approval"))


@pytest.mark.parametrize("phase", ["Succeeded", "DeadLetter", "Cancelled"])
def test_a_finished_job_takes_none(phase: str) -> None:
    api = fake_api(phase)
    with pytest.raises(e.JobStateError, match=f"job j is {phase}: it takes no signals"):
        run(jobs(api).signal("j", "approval"))
    assert patches(api) == 0


def test_one_that_comes_too_late_is_refused_and_others_are_not() -> None:
    over = {"kind": "Signal", "until": "2026-01-01T00:00:00Z", "over": True}
    slept = {"kind": "Sleep", "until": "2026-01-01T00:00:00Z", "over": True}
    api = fake_api(waits={"approval": over, "nap": slept})
    with pytest.raises(e.JobStateError, match="no longer waits for approval: it came too late"):
        run(jobs(api).signal("j", "approval"))
    run(jobs(api).signal("j", "nap"))


def test_a_job_takes_so_many_and_no_more() -> None:
    api = fake_api(spec={"signals": {f"s{n}": sent(n) for n in range(MAX_SIGNALS)}})
    with pytest.raises(e.JobStateError, match=f"job j has {MAX_SIGNALS} signals"):
        run(jobs(api).signal("j", "approval"))
    assert patches(api) == 0


def test_what_the_server_refuses_again_and_again_is_told_in_its_words() -> None:
    api = fake_api()

    def refuse() -> None:
        if api.calls[-1].method == "PATCH":
            raise InvalidError("no: (signal.unfinished)", status=422)

    api.meanwhile = refuse
    with pytest.raises(e.JobStateError, match=r"signal\.unfinished"):
        run(jobs(api).signal("j", "approval"))
    assert patches(api) == MAX_TRIES


def test_who_has_no_right_is_told_which() -> None:
    api = fake_api()

    def refuse() -> None:
        if api.calls[-1].method == "PATCH":
            raise ForbiddenError("bob may not signal job j (signal.right)", status=403)

    api.meanwhile = refuse
    with pytest.raises(e.NotAllowedError, match=r"bob may not signal job j"):
        run(jobs(api).signal("j", "approval"))


def test_the_gateway_is_asked_by_name_and_again_after_a_lost_answer() -> None:
    told = job_of(stored("j", {"phase": "Pending"}, signals={"approval": sent(True)}))
    gateway = Gateway(LOST, ok(told.model_dump(mode="json", by_alias=True)))
    with gateway.client() as client:
        assert client.signal("j", "approval", True).signals[0].sent_by == ADMIN
    assert [request.url.path for request in gateway.requests] == [
        "/api/v1/jobs/j/signals/approval"
    ] * 2
    assert gateway.bodies == [{"payload": True}] * 2


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (404, "no-job", e.JobNotFoundError),
        (409, "conflict", e.JobStateError),
        (403, "forbidden", e.NotAllowedError),
        (422, "invalid", e.InvalidRequestError),
    ],
)
def test_what_the_gateway_refuses_is_the_error_of_its_kind(
    status: int, kind: str, error: type[Exception]
) -> None:
    gateway = Gateway(problem(status, kind))
    with pytest.raises(error, match="why"), gateway.client() as client:
        client.signal("j", "approval")
    assert len(gateway.requests) == 1
