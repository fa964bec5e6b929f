"""How rules in CEL are read here, and that ours need no more than that."""

import re
from typing import Any

import pytest

from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.apiserver.admission import inlined
from asyncjob_simulation.apiserver.cel import Activation, EvaluationError, canonical_time, compiled
from asyncjob_simulation.apiserver.errors import PolicyError, StatusError
from asyncjob_simulation.apiserver.installation import ROOT, manifests
from asyncjob_simulation.apiserver.schema import Findings, Schema
from support.in_memory.memory import memory_admin, memory_server
from support.objects.builders import at

QUEUES = "/apis/asyncjob.dev/v1alpha1/namespaces/default/asyncqueues"

TIMES = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000000001Z",
    "2026-01-01T00:00:00.1Z",
    "2026-01-01T00:00:00.25+00:00",
    "2025-12-31T23:30:00-01:00",
    "2026-01-01T03:00:00+02:00",
]
"""In their order, in several zones and with several digits."""


def test_times_compare_as_text_as_they_do_as_times() -> None:
    texts = [canonical_time(time) for time in TIMES]
    assert texts == sorted(texts)
    assert len(set(texts)) == len(TIMES)
    assert canonical_time("2026-01-01T02:00:00+02:00") == canonical_time(TIMES[0])
    assert canonical_time(at(0)) != at(0)


def test_no_rule_of_ours_does_more_with_times_than_compare_them() -> None:
    beyond = re.compile(r"timestamp\(|duration\(|\.get(Full|Month|Date|Day|Hours|Minutes|Seconds)")
    texts = [file.read_text() for file in sorted((ROOT / "crds").glob("*.yaml"))]
    assert len(texts) > 3
    assert [text for text in texts if beyond.search(text)] == []


def test_variables_are_replaced_in_code_and_not_in_texts() -> None:
    code = "variables.a == 'variables.a' + variables.b"
    assert inlined(code, {"a": "(1)", "b": "(2)"}) == "(1) == 'variables.a' + (2)"


def test_what_is_absent_has_no_value_and_does_not_count_as_false() -> None:
    activation = Activation({"object": {"a": 1}})
    assert activation.evaluate(compiled("object.a == 1 || object.b == 1")) is True
    with pytest.raises(EvaluationError):
        activation.evaluate(compiled("object.b == 1"))


def test_what_is_not_known_here_is_an_error_and_not_a_pass() -> None:
    with pytest.raises(PolicyError):
        compiled("object.a.unheardOf()")
    with pytest.raises(PolicyError):
        Schema({"oneOf": []})
    with pytest.raises(PolicyError):
        Schema({"x-kubernetes-validations": [{"rule": "self.unheardOf()"}]})


def test_a_part_that_is_as_it_was_is_not_validated_again_but_its_rules_are() -> None:
    rule = {"rule": "self.a != oldSelf.a", "message": "it stays"}
    spec = {
        "type": "object",
        "properties": {"a": {"type": "integer", "maximum": 1}},
        "x-kubernetes-validations": [rule],
    }
    schema = Schema({"type": "object", "properties": {"spec": spec}})
    old = {"spec": {"a": 5}}
    found = Findings()
    schema.check({"spec": old["spec"]}, old, found)
    assert found.errors == ["spec: Invalid value: it stays"]


def test_the_charts_policies_are_those_that_are_tested() -> None:
    chart = ROOT / "charts/asyncjob/files/crds"
    assert list(manifests(chart)) == list(manifests(ROOT / "crds"))


def forbid(server: ApiServer, **which: Any) -> None:
    """Install a policy that refuses every write of queues and cron jobs that it is about."""
    group = "/apis/admissionregistration.k8s.io/v1"
    policies, bindings = (f"{group}/validatingadmissionpolic{end}" for end in ("ies", "ybindings"))
    policy = server.get(f"{policies}/settings.asyncjob.dev")
    spec = {**policy["spec"], "validations": [{"expression": "false", "message": "never"}]}
    server.create(policies, {"metadata": {"name": "never"}, "spec": spec})
    binding = {"policyName": "never", "matchResources": which}
    server.create(bindings, {"metadata": {"name": "never"}, "spec": binding})


def test_a_policy_that_is_changed_is_in_force_at_once(server: ApiServer) -> None:
    server.create(QUEUES, {"metadata": {"name": "a"}, "spec": {}})
    forbid(server)
    with pytest.raises(StatusError, match="never"):
        server.create(QUEUES, {"metadata": {"name": "b"}, "spec": {}})


def test_a_policy_is_about_objects_with_its_labels_before_or_after_the_write(
    server: ApiServer,
) -> None:
    forbid(server, objectSelector={"matchLabels": {"frozen": "yes"}})
    admin = memory_admin(server)
    frozen, free = ({"labels": {"frozen": word}} for word in ("yes", "no"))
    admin.create(QUEUES, {"metadata": {"name": "a", **free}, "spec": {}}).object()
    made = admin.create(QUEUES, {"metadata": {"name": "b", **frozen}, "spec": {}})
    assert "never" in made.message
    assert "never" in admin.merge(f"{QUEUES}/a", {"metadata": frozen}).message
    assert admin.merge(f"{QUEUES}/a", {"spec": {"concurrency": 1}}).accepted


@pytest.fixture
def server() -> ApiServer:
    return memory_server()
