"""What the doctor concludes from what it sees."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click import unstyle

from asyncjob.cli.doctor import (
    arrays,
    endpoints,
    installation,
    permissions,
    processes,
    stuck_jobs,
)
from asyncjob.cli.doctor.examination import examine_jobs, is_reachable
from asyncjob.cli.doctor.findings import (
    DoctorCode,
    Finding,
    Severity,
    finding_json,
    finding_lines,
    findings_exit_code,
    findings_summary,
    most_severe,
    ok,
    problem,
    warning,
)
from asyncjob.cli.doctor.installation import EnforcementFacts, ProbeResult, differences
from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.rest.resources import WorkerInfo
from asyncjob.rules.policies import POLICIES
from asyncjob.schema.crd import CUSTOM_RESOURCES, crd
from support.in_memory.fake_jobs import FakeJobs, a_job, a_queue, a_worker, an_array

NOW = datetime(2026, 11, 21, 20, 5, tzinfo=UTC)
OK, WARNING, PROBLEM = Severity


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("v1.36.3", OK), ("v1.32.0", OK), ("v1.31.9-gke.1", PROBLEM), ("v2.0.0", OK), ("", WARNING)],
)
def test_the_api_server_has_to_be_new_enough(version: str, verdict: Severity) -> None:
    assert (
        endpoints.check_api_server(
            endpoints.ApiServerFacts("https://x", version, None, NOW, NOW)
        ).severity
        is verdict
    )


@pytest.mark.parametrize(
    ("ahead", "took", "verdict", "said"),
    [
        (0.4, 0.1, OK, "within"),
        (-1.0, 3.0, OK, "within"),
        (8.0, 0.1, WARNING, "at least 7s ahead of"),
        (-8.0, 0.1, WARNING, "at least 7.9s behind"),
        (-900.0, 0.1, PROBLEM, "at least 14m59s behind"),
        (5.5, 10.0, OK, "within"),
    ],
)
def test_a_clock_is_judged_by_what_the_network_cannot_explain(
    ahead: float, took: float, verdict: Severity, said: str
) -> None:
    sent = NOW + timedelta(seconds=ahead)
    found = endpoints.check_clock(NOW, sent, sent + timedelta(seconds=took))
    assert (found.severity, said in found.message) == (verdict, True)


def test_a_server_that_does_not_say_the_time_is_a_warning() -> None:
    assert endpoints.check_clock(None, NOW, NOW).severity is WARNING


def test_what_the_api_server_adds_is_no_difference_but_what_it_lacks_is() -> None:
    ours: JsonObject = {"a": {"b": 1}, "l": [{"name": "x", "v": 1}]}
    theirs: JsonObject = {"a": {"b": 1, "c": 2}, "l": [{"name": "x", "v": 1, "w": 2}], "more": 1}
    assert list(differences(ours, theirs)) == []
    assert list(differences(ours, {"a": {}, "l": [{"name": "x", "v": 2}]})) == ["a.b", "l[x].v"]
    assert list(differences({"empty": {}}, {})) == ["empty"]
    assert list(differences(ours, {"a": 3, "l": []})) == ["a", "l (0 instead of 1)"]


def definitions() -> dict[str, Any]:
    return {one.plural: crd(one) for one in CUSTOM_RESOURCES}


def test_types_of_this_release_are_well_and_others_are_told() -> None:
    served = frozenset(one.plural for one in CUSTOM_RESOURCES)
    there = definitions()
    assert (
        installation.check_resource_types(installation.ResourceTypeFacts(served, there)).severity
        is OK
    )
    there["asyncjobs"]["spec"]["versions"][0]["subresources"] = {}
    found = installation.check_resource_types(installation.ResourceTypeFacts(served, there))
    assert (found.severity, "asyncjobs versions[v1alpha1].subresources" in found.message) == (
        WARNING,
        True,
    )
    assert (
        installation.check_resource_types(installation.ResourceTypeFacts(served, None)).severity
        is WARNING
    )
    assert (
        installation.check_resource_types(
            installation.ResourceTypeFacts(frozenset(), there)
        ).severity
        is PROBLEM
    )


def installed() -> tuple[dict[str, JsonObject], dict[str, JsonObject]]:
    made = {one.name: one.manifests() for one in POLICIES}
    return {n: p for n, (p, _) in made.items()}, {n: b for n, (_, b) in made.items()}


def policy_verdicts(
    those: Mapping[str, JsonObject], bindings: Mapping[str, JsonObject]
) -> list[Severity]:
    return [
        one.severity
        for one in installation.check_policies(installation.PolicyFacts(those, bindings))
    ]


def test_policies_have_to_be_there_and_bound_to_deny_everywhere() -> None:
    those, bindings = installed()
    name, spec = POLICIES[0].name, {"policyName": POLICIES[0].name}
    assert policy_verdicts(those, bindings) == [OK]
    assert policy_verdicts({}, bindings) == [PROBLEM]
    assert policy_verdicts(those, {}) == [PROBLEM]
    audit: JsonObject = {"spec": {**spec, "validationActions": ["Audit"]}}
    assert policy_verdicts(those, {**bindings, name: audit}) == [PROBLEM]
    narrow: JsonObject = {
        "spec": {
            **spec,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        }
    }
    assert policy_verdicts(those, {**bindings, name: narrow}) == [PROBLEM]
    everywhere: JsonObject = {
        "spec": {
            **spec,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {}, "objectSelector": {}},
        }
    }
    assert policy_verdicts(those, {**bindings, name: everywhere}) == [OK]


def test_policies_that_differ_or_have_mistakes_are_told() -> None:
    those, bindings = installed()
    name = POLICIES[0].name
    changed: JsonObject = {"spec": {**dict(those[name]["spec"]), "failurePolicy": "Ignore"}}  # type: ignore[arg-type]  # an object
    assert policy_verdicts({**those, name: changed}, bindings) == [WARNING]
    status: JsonObject = {"typeChecking": {"expressionWarnings": [{"warning": "x"}]}}
    assert policy_verdicts({**those, name: {**those[name], "status": status}}, bindings) == [
        PROBLEM
    ]
    assert [one.severity for one in installation.check_policies(None)] == [WARNING]


@pytest.mark.parametrize(
    ("dropped", "elects", "verdicts"),
    [(False, False, []), (True, True, [OK]), (True, False, [WARNING])],
)
def test_jobs_without_managed_fields_need_a_lease_that_stores_when_they_ended(
    *, dropped: bool, elects: bool, verdicts: list[Severity]
) -> None:
    found = installation.check_managed_fields(dropped=dropped, elects=elects)
    assert [one.severity for one in found] == verdicts


@pytest.mark.parametrize(
    ("creation", "change", "verdict"),
    [
        (ProbeResult.REFUSED, ProbeResult.NOT_TRIED, OK),
        (ProbeResult.REFUSED, ProbeResult.PASSED, PROBLEM),
        (ProbeResult.NOT_TRIED, ProbeResult.NOT_TRIED, WARNING),
    ],
)
def test_one_forbidden_write_that_passes_is_a_problem(
    creation: ProbeResult, change: ProbeResult, verdict: Severity
) -> None:
    assert installation.check_enforcement(EnforcementFacts(creation, change)).severity is verdict


def test_one_who_may_only_read_is_warned_and_one_who_may_not_has_a_problem() -> None:
    assert permissions.check_permissions([], "default").severity is OK
    found = permissions.check_permissions([permissions.OTHER_PERMISSIONS[1]], "default")
    assert (found.severity, "submit" in found.way_out) == (WARNING, True)
    assert (
        permissions.check_permissions(permissions.READ_PERMISSIONS, "default").severity is PROBLEM
    )


def test_an_operator_has_to_lead_and_not_be_silent() -> None:
    fresh = processes.OperatorLease("ops", "pod-1", "2026-11-21T20:04:55Z", 10)
    stale = replace(fresh, renew_time="2026-11-21T20:04:00Z")
    nobody = replace(fresh, holder="")

    def verdicts(*elections: processes.OperatorLease) -> list[Severity]:
        return [one.severity for one in processes.check_operator(elections, NOW)]

    assert verdicts(fresh) == [OK]
    assert verdicts(stale, nobody) == [PROBLEM, PROBLEM]
    assert verdicts() == [PROBLEM]
    assert [one.severity for one in processes.check_operator(None, NOW)] == [WARNING]


def test_queues_without_workers_and_types_without_handlers_are_problems() -> None:
    live = [a_worker(), a_worker("w", queue="mail", types=["SEND_EMAIL"], version="0.0.1")]
    queues = [
        a_queue(counts={"Queued": 2}),
        a_queue("lost", counts={"Queued": 1}),
        a_queue("mail", paused=True),
    ]
    waiting = [a_job("x", type="SEND_EMAIL"), a_job("y"), a_job("z", queue="lost")]
    found = processes.check_workers(live, queues, waiting)
    assert [(one.severity, one.check) for one in found] == [
        (OK, "Workers"),
        (PROBLEM, "Workers"),
        (WARNING, "Workers"),
        (WARNING, "Workers"),
        (PROBLEM, "Job types"),
    ]
    assert "queue lost has 1 queued jobs" in found[1].message
    assert "handler for SEND_EMAIL: x" in found[-1].message
    assert "queue mail has" in found[-1].way_out


def test_a_cluster_without_workers_is_a_warning_until_jobs_wait() -> None:
    assert [one.severity for one in processes.check_workers([], [], [])] == [WARNING]


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({"phase": "Running", "updated_at": "2026-11-21T19:00:00Z"}, PROBLEM),
        ({"phase": "Running", "updated_at": "2026-11-21T20:00:00Z"}, OK),
        ({"phase": "Retrying", "next_attempt_at": "2026-11-21T20:00:00Z"}, PROBLEM),
        ({"phase": "Retrying", "next_attempt_at": "2026-11-21T20:04:00Z"}, OK),
        ({"phase": "Pending", "deadline_at": "2026-11-21T20:00:00Z"}, PROBLEM),
        ({"phase": "Pending", "deadline_at": "2026-11-21T20:04:00Z"}, OK),
        ({"phase": "DeadLetter", "deadline_at": "2026-11-21T20:00:00Z"}, OK),
        ({"phase": "Running", "deadline_at": "2026-11-21T19:05:00Z"}, OK),
        ({"phase": "Running", "deadline_at": "2026-11-21T19:03:00Z"}, PROBLEM),
        ({"phase": "Queued", "cancelling": True, "updated_at": "2026-11-21T18:00:00Z"}, PROBLEM),
        ({"phase": "Queued"}, OK),
    ],
)
def test_jobs_that_stand_still_for_longer_than_anything_allows_are_problems(
    fields: dict[str, Any], verdict: Severity
) -> None:
    assert most_severe(stuck_jobs.check_stuck_jobs([a_job(**fields)], NOW)) is verdict


THUMB_WORKER = a_worker(types=["thumb", "thumb/items", "thumb/index"])


@pytest.mark.parametrize(
    ("array", "workers", "code"),
    [
        pytest.param({"open_chunks": 2}, [THUMB_WORKER], "", id="goes on"),
        pytest.param({}, [], "doctor.array-idle", id="no worker is another finding"),
        pytest.param(
            {"open_chunks": 2}, [a_worker(types=["thumb"])], "doctor.no-item-handler", id="plain"
        ),
        pytest.param({}, [a_worker(types=["thumb"])], "doctor.no-item-handler", id="said once"),
        pytest.param(
            {"open_chunks": 2, "queue": "other"}, [a_worker()], "", id="no worker in its queue"
        ),
        pytest.param({}, [THUMB_WORKER], "doctor.array-idle", id="no chunk for minutes"),
        pytest.param({"created_at": "2026-11-21T20:04:00Z"}, [THUMB_WORKER], "", id="no chunk yet"),
        pytest.param(
            {"started_at": "2026-11-21T20:04:00Z"}, [THUMB_WORKER], "", id="begun a minute ago"
        ),
        pytest.param({"suspended": True}, [a_worker(types=["thumb"])], "", id="suspended"),
        pytest.param(
            {"phase": "Pending", "reason": "NotBefore"}, [THUMB_WORKER], "", id="its time is ahead"
        ),
        pytest.param(
            {"phase": "Pending", "reason": "WaitingForDependency"},
            [THUMB_WORKER],
            "",
            id="waits for others",
        ),
        pytest.param(
            {"open_chunks": 2, "results": "s3://b/results/ns/u"},
            [THUMB_WORKER],
            "doctor.no-item-handler",
            id="its results need a newer worker",
        ),
        pytest.param(
            {"open_chunks": 2, "results": "s3://b/results/ns/u"},
            [a_worker(types=["thumb/items", "thumb/index", "thumb/store"])],
            "",
            id="its results are stored",
        ),
        pytest.param({"phase": "Succeeded"}, [a_worker(types=["thumb"])], "", id="has ended"),
        pytest.param({"phase": "Failed"}, [THUMB_WORKER], "doctor.arrays-failed", id="failed"),
        pytest.param(
            {"phase": "Failed", "redriving": True, "open_chunks": 1},
            [THUMB_WORKER],
            "",
            id="failed, and is redriven",
        ),
    ],
)
def test_an_array_that_does_not_go_on_is_found_and_why(
    array: dict[str, Any], workers: list[WorkerInfo], code: str
) -> None:
    (found,) = arrays.check_arrays([an_array(**array)], processes.types_by_queue(workers), NOW)
    assert (found.code, found.severity is OK) == (code, not code)
    assert not code or "thumbs" in found.message


def test_arrays_are_counted_and_none_is_nothing_to_speak_of() -> None:
    assert arrays.check_arrays([], {}, NOW) == []
    two = [an_array(open_chunks=1), an_array("b", "Succeeded")]
    (found,) = arrays.check_arrays(two, {}, NOW)
    assert found.message == "1 under way, none stands still and none has failed"
    (found,) = arrays.check_arrays(two, {}, NOW, complete=False)
    assert found.message == "1 of the newest 2 under way, none stands still and none has failed"
    failed = [an_array(name, "Failed", reason="ItemsFailed") for name in "abcd"]
    (found,) = arrays.check_arrays(failed, {}, NOW)
    assert found.message == (
        "4 have failed and wait for a person: "
        "a (ItemsFailed), b (ItemsFailed), c (ItemsFailed) and 1 more"
    )


def test_a_chunk_that_waits_is_its_arrays_concern_and_not_said_again() -> None:
    jobs = FakeJobs().add(a_job("thumbs-0", type="thumb/items"), a_job("x", type="thumb"))
    jobs.all_workers = [a_worker()]
    jobs.all_arrays["thumbs"] = an_array(open_chunks=1)
    found = [(one.check, one.code) for one in examine_jobs(jobs, NOW) if one.code]
    assert found == [("Job types", "doctor.no-handler"), ("Arrays", "doctor.no-item-handler")]


def test_dead_letters_are_a_warning() -> None:
    assert stuck_jobs.check_dead_letters(0, complete=True) == []
    [found] = stuck_jobs.check_dead_letters(1, complete=True)
    assert (found.severity, found.message) == (WARNING, "1 dead letter waits for a person")


def test_a_gateway_has_to_answer_and_speak_our_version() -> None:
    def verdict(**facts: Any) -> Severity:
        return endpoints.check_gateway(endpoints.GatewayFacts("http://g", **facts)).severity

    assert verdict(version="v1alpha1") is OK
    assert verdict(version="v9") is WARNING
    assert verdict(error="refused") is PROBLEM


def test_what_cannot_be_looked_at_is_noted_and_the_rest_looked_at() -> None:
    class Away(FakeJobs):
        def workers(self) -> Any:
            raise UnknownOutcomeError("no answer")

    found = examine_jobs(Away().add(a_job(phase="DeadLetter")), NOW)
    assert [(one.severity, one.check, one.code) for one in found] == [
        (WARNING, "Workers", "unavailable"),
        (WARNING, "Dead letters", "doctor.dead-letters"),
    ]


def test_nobody_is_asked_on_where_nothing_answers() -> None:
    assert is_reachable([ok("API server", "x"), problem("Policies", "policy-missing", "y")])
    assert not is_reachable([problem("API server", "unavailable", "x")])
    assert not is_reachable([problem("Gateway", DoctorCode.NO_GATEWAY, "x")])


FOUND = [
    ok("Clock", "fine"),
    warning("Workers", DoctorCode.NO_WORKER, "none", "start some"),
    problem("API", "unavailable", "a\nb"),
]


def test_a_report_has_a_line_for_each_finding_its_way_out_and_what_explains_it() -> None:
    assert list(finding_lines(FOUND, "asyncjob")) == [
        "ok        Clock     fine",
        "warning   Workers   none",
        "                    → start some (asyncjob explain doctor.no-worker)",
        "problem   API       a b",
        "                    → asyncjob explain unavailable",
    ]
    assert [unstyle(line) for line in finding_lines(FOUND, "asyncjob", colour=True)] == list(
        finding_lines(FOUND, "asyncjob")
    )
    assert findings_summary(FOUND) == "1 problem, 1 warning"
    assert findings_summary(FOUND[:1]) == "all is well"
    assert finding_json(FOUND[1]) == {
        "check": "Workers",
        "verdict": "warning",
        "code": "doctor.no-worker",
        "message": "none",
        "wayOut": "start some",
    }


@pytest.mark.parametrize(
    ("findings", "strict", "code"),
    [([], False, 0), (FOUND[:2], False, 0), (FOUND[:2], True, 1), (FOUND, False, 1)],
)
def test_the_exit_code_tells_whether_there_is_a_problem(
    findings: list[Finding], strict: bool, code: int
) -> None:
    assert findings_exit_code(findings, strict=strict) == code
