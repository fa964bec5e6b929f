"""What administrators do to an API server: starve it, take its rules away, change its types."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import yaml

from asyncjob.names import ARRAYS, GROUP, JOBS, QUEUES
from asyncjob_chaos.faults.fault import Fault, at_once
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.target import FaultTarget
from asyncjob_dev.environment.components import MANIFESTS, WORKER_ACCOUNT
from asyncjob_dev.environment.readiness import await_enforcement

FLOW: Final = "flowcontrol.apiserver.k8s.io"
CHANGES: Final = 4
BINDINGS: Final = "validatingadmissionpolicybindings"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
SEEN_SECONDS: Final = 30.0


@contextmanager
def _starve(target: FaultTarget) -> Iterator[None]:
    name = f"chaos-{target.namespace}"
    level: dict[str, Any] = {
        "apiVersion": f"{FLOW}/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 0,
                "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Reject"},
            },
        },
    }
    accounts = {"kind": "Group", "group": {"name": f"system:serviceaccounts:{target.namespace}"}}
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    schema: dict[str, Any] = {
        "apiVersion": f"{FLOW}/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": name},
            "matchingPrecedence": 2,
            "rules": [
                {
                    "subjects": [accounts],
                    "resourceRules": [{**rule, "clusterScope": True}],
                }
            ],
        },
    }
    root = f"/apis/{FLOW}/v1"
    target.api.create(f"{root}/prioritylevelconfigurations", level)
    target.api.create(f"{root}/flowschemas", schema)
    rejected = "apiserver_flowcontrol_rejected_requests_total"
    target.until(lambda: target.metric(rejected, flow_schema=name) > 0, "a 429", SEEN_SECONDS)
    yield
    target.signs[Sign.THROTTLED] += int(target.metric(rejected, flow_schema=name))
    target.api.delete(f"{root}/flowschemas/{name}")
    target.api.delete(f"{root}/prioritylevelconfigurations/{name}")


@contextmanager
def _delete_bindings(target: FaultTarget) -> Iterator[None]:
    path = f"{ADMISSION}/{BINDINGS}"
    ours = [
        one["metadata"]["name"]
        for one in target.api.get(path)["items"]
        if "asyncjob" in one["metadata"]["name"]
    ]
    for name in ours:
        target.api.delete(f"{path}/{name}")
    await_enforcement(target.api, WORKER_ACCOUNT, target.namespace, enforced=False)
    target.signs[Sign.RULES_AWAY] += 1
    yield
    target.plane.kubectl("apply", "-f", str(MANIFESTS[0]))
    await_enforcement(target.api, WORKER_ACCOUNT, target.namespace)


def _change_types(target: FaultTarget) -> None:
    for number in range(CHANGES):
        for plural in (JOBS, QUEUES, ARRAYS):
            _apply_changed(target, plural, number)
        time.sleep(1.0)
    target.plane.kubectl("apply", "-f", str(MANIFESTS[0]))


def _apply_changed(target: FaultTarget, plural: str, number: int) -> None:
    file = MANIFESTS[0] / f"{plural}.yaml"
    crd = yaml.safe_load(file.read_text(encoding="utf-8"))
    for version in crd["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        schema["description"] = f"{schema.get('description', '')} (change {number})"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{GROUP}"
    before = target.api.get(path)["metadata"]["generation"]
    target.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(crd))
    target.signs[Sign.TYPE_CHANGED] += target.api.get(path)["metadata"]["generation"] > before


FAULTS: Final = (
    Fault(
        name="starvation",
        does="the API server's priority and fairness answers every request of operators, gateway "
        "and workers with 429",
        shows=(Sign.THROTTLED,),
        act=_starve,
        hold=9.0,
    ),
    Fault(
        name="policies-deleted",
        does="all bindings of our admission policies are deleted, and restored",
        shows=(Sign.RULES_AWAY,),
        act=_delete_bindings,
        hold=6.0,
    ),
    Fault(
        name="crd-applied",
        does="the CRDs are applied again, each time a little different",
        shows=(Sign.TYPE_CHANGED,),
        act=at_once(_change_types),
        hold=2.0,
    ),
)
