"""What jobs are told while they run or wait: signals."""

from typing import Any

from asyncjob.lifecycle.signals import MAX_SIGNAL_BYTES, MAX_SIGNALS
from contract.cluster import Cluster, Obj
from contract.scenarios.base import phase, refusal, scenario, why

PEOPLE = "ada"
"""Who sends signals; the fake cluster believes it, and so does the real one of an administrator."""


def told(payload: Any) -> Obj:
    return {"payload": payload, "sentBy": PEOPLE}


@scenario
async def a_job_waits_for_a_signal_without_a_slot(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "release")
    waiting = await cluster.until("job", lambda status: "waiting" in status)
    assert why(waiting) == ("Pending", "WaitingForSignal")
    schema = {
        "description": "What `release` is told.",
        "properties": {
            "ok": {"title": "Ok", "type": "boolean"},
            "note": {"default": "none", "title": "Note", "type": "string"},
        },
        "required": ["ok"],
        "title": "Approval",
        "type": "object",
    }
    assert waiting["status"]["waiting"] == [
        {"kind": "Signal", "key": "approval", "payloadSchema": schema}
    ]
    await cluster.change("job", signals={"approval": told({"ok": True, "note": "checked"})})
    job = await cluster.until("job", phase("Succeeded"))
    assert job["status"]["result"] == {"built": "built", "note": "checked", "by": PEOPLE}
    assert (job["status"]["attempt"], job["status"].get("parks", 0)) == (2, 1)
    return [waiting, job]


@scenario
async def a_signal_that_comes_early_is_taken_at_once(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "release", 60.0, suspend=True)
    await cluster.until("job", phase("Pending"))
    await cluster.change("job", signals={"approval": told({"ok": True})}, suspend=False)
    job = await cluster.until("job", phase("Succeeded"))
    assert (job["status"]["attempt"], job["status"].get("parks", 0)) == (1, 0)
    return [job]


@scenario
async def a_signal_does_not_come_in_time(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "release", 3.0)
    job = await cluster.until("job", phase("DeadLetter"))
    assert why(job) == ("DeadLetter", "NotRetryable")
    assert job["status"]["error"]["type"] == "SignalTimeout"
    assert job["status"]["waits"]["approval"]["over"] is True
    late = {"approval": told({"ok": True})}
    return [job, await refusal(cluster.change("job", signals=late))]


@scenario
async def a_signal_is_waited_for_again_after_a_redrive(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "release", 3.0)
    await cluster.until("job", phase("DeadLetter"))
    await cluster.change("job", redrive=1)
    await cluster.until("job", lambda status: status.get("redrives", 0) == 1)
    await cluster.change("job", signals={"approval": told({"ok": True})})
    job = await cluster.until("job", phase("Succeeded"))
    assert job["status"]["result"]["by"] == PEOPLE
    # Whether it had parked by then is a matter of time.
    same = ("phase", "result", "redrives", "steps", "retries")
    return [{**job, "status": {name: job["status"][name] for name in same}}]


@scenario
async def a_signal_that_does_not_fit_leaves_another_to_wait_for(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "release-sync", 3.0, suspend=True)
    await cluster.until("job", phase("Pending"))
    await cluster.change("job", signals={"first": told({"ok": "perhaps"})}, suspend=False)
    job = await cluster.until("job", phase("Succeeded"))
    assert job["status"]["result"] == "late"
    return [job]


@scenario
async def a_job_that_waits_for_a_signal_is_cancelled(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "release")
    await cluster.until("job", lambda status: "waiting" in status)
    await cluster.change("job", cancel=True)
    job = await cluster.until("job", phase("Cancelled"))
    assert "waiting" not in job["status"]
    late = {"approval": told({"ok": True})}
    return [job, await refusal(cluster.change("job", signals=late))]


@scenario
async def a_signal_is_neither_changed_nor_removed(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "nobody-knows-it")
    await cluster.change("job", signals={"approval": told([0])})
    again = {"approval": told({"ok": False})}
    refused = await refusal(cluster.change("job", signals=again))
    return [await cluster.get("job"), refused]


@scenario
async def a_signal_is_sent_once_by_clients_and_a_job_takes_so_many(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "nobody-knows-it")
    taken = [
        await cluster.tell("job", "first", {"ok": True, "row": 1}),
        await cluster.tell("job", "first", {"row": 1.0, "ok": True}),
        await cluster.tell("job", "first", {"ok": 1, "row": 1}),
        *[await cluster.tell("job", f"signal-{n}", n) for n in range(1, MAX_SIGNALS)],
        await cluster.tell("job", "one-more", 1),
        await cluster.tell("job", "signal-1", 1),
    ]
    assert taken == [True, True, False, *[True] * (MAX_SIGNALS - 1), False, True]
    job = await cluster.get("job")
    sent = {name: one["payload"] for name, one in job["spec"]["signals"].items()}
    assert sent == {"first": {"ok": True, "row": 1}, **{f"signal-{n}": n for n in range(1, 16)}}
    return [{**job, "spec": {**job["spec"], "signals": sent}}]


@scenario
async def signals_of_which_there_are_none(cluster: Cluster) -> list[Any]:
    await cluster.create("job", "nobody-knows-it")
    many = {f"signal-{number}": told(number) for number in range(MAX_SIGNALS + 1)}
    born = cluster.create("other", "nobody-knows-it", signals={"approval": told(True)})
    return [
        await refusal(cluster.change("job", signals={"not a name": told(True)})),
        await refusal(cluster.change("job", signals={"": told(True)})),
        await refusal(cluster.change("job", signals={"approval": {"payload": True}})),
        await refusal(cluster.change("job", signals=many)),
        await refusal(born),
    ]


@scenario
async def a_payload_too_large_is_told_the_handler(cluster: Cluster) -> list[Any]:
    # The API server does not measure it; clients and gateway refuse to send it.
    await cluster.create("job", "release", 60.0, suspend=True)
    await cluster.until("job", phase("Pending"))
    large = {"ok": True, "note": "x" * MAX_SIGNAL_BYTES}
    await cluster.change("job", signals={"approval": told(large)}, suspend=False)
    job = await cluster.until("job", phase("DeadLetter"))
    assert job["status"]["error"]["type"] == "SignalInvalid"
    return [job]
