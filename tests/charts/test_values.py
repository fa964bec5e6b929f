"""Every value is documented, in the schema, and used; a mistake is refused with the way out."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncjob_dev.reference.installation import commented_keys, keys_in_schema, lookup, resolved
from support.cluster.charts import CHART, MUTATING, Helm, RenderError, scenario

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = (CHART / "values.yaml").read_text()
KEYS = keys_in_schema(VALUES, SCHEMA)
Path_ = tuple[str, ...]

WHOLE = {"pod", "startup", "readiness", "liveness", "authenticationRef"}
"""Their keys are documented in another place, or Kubernetes'."""

# What `everything` cannot set besides the rest, with the values under which it matters.
APART: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "scope.clusterWide": (True, {}),
    "crds.install": (False, {}),
    "crds.keep": (False, {}),
    "crds.annotations": ({"contact": "platform"}, {}),
    "policies.install": (False, {}),
    "policies.mutating": (True, {}),
    "policies.keep": (False, {}),
    "policies.annotations": ({"contact": "platform"}, {}),
    "rbac.create": (False, {}),
    "rbac.installChecks": (False, {}),
    "userRoles.create": (False, {}),
    "operator.enabled": (False, {}),
    "operator.image.digest": (f"sha256:{'0' * 64}", {}),
    "operator.options.leaderElect": (False, {"operator.replicas": 1}),
    "operator.serviceAccount.create": (False, {}),
    "operator.podDisruptionBudget.enabled": (False, {}),
    "gateway.enabled": (False, {}),
    "gateway.image.registry": ("registry.example", {}),
    "gateway.image.digest": (f"sha256:{'0' * 64}", {}),
    "gateway.replicas": (3, {}),
    "gateway.serviceAccount.create": (False, {}),
    "gateway.podDisruptionBudget.enabled": (False, {}),
    "workerDefaults.enabled": (False, {}),
    "workerDefaults.image.digest": (f"sha256:{'0' * 64}", {}),
    "workerDefaults.terminationGracePeriodSeconds": (99, {}),
    "workerDefaults.options.park": ("never", {}),
    "workerDefaults.options.operatorNamespace": ("elections", {}),
    "workerDefaults.options.operatorLease": ("other-operator", {}),
    "workerDefaults.serviceAccount.create": (False, {}),
    "workerDefaults.serviceAccount.name": ("asyncjob-worker", {}),
    "workerDefaults.autoscaling.engine": (
        "keda",
        {"workerDefaults.autoscaling.keda.serverAddress": "http://p"},
    ),
    "workerDefaults.podDisruptionBudget.enabled": (False, {}),
    "podDefaults.topologySpread.enabled": (False, {}),
    "podDefaults.topologySpreadConstraints": (
        [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
        {},
    ),
    "preflight.enabled": (False, {}),
    "networkPolicy.enabled": (False, {}),
    "test.enabled": (False, {}),
}


def properties(node: Mapping[str, Any], at: Path_ = ()) -> Iterator[Path_]:
    """Return the path of every value that has a name of its own in the schema."""
    node = resolved(node, SCHEMA)
    for name, inner in node.get("properties", {}).items():
        found = resolved(inner, SCHEMA)
        if found.get("properties") and name not in WHOLE:
            yield from properties(found, (*at, name))
        else:
            yield (*at, name)


LEAVES = sorted(".".join(path) for path in properties(SCHEMA) if path != ("global",))


def there(values: Any, path: Path_) -> bool:
    for key in path:
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[key]
    return True


def without(values: dict[str, Any], path: Path_) -> dict[str, Any]:
    """Return a copy without one value."""
    copy: dict[str, Any] = json.loads(json.dumps(values))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return copy


def lighter(helm: Helm) -> Helm:
    """Return it with a chart that is quicker to render; what it lacks, `APART` tries."""
    for path in (helm.chart / "files/crds").rglob("*.yaml"):
        path.unlink()
    (helm.chart / "files/alerts.yaml").write_text("groups: []\n")
    (helm.chart / "files/dashboard.json").write_text("{}\n")
    return helm


def text_or_complaint(helm: Helm, file: Path) -> str:
    try:
        return helm.render(file).text
    except RenderError as error:
        return str(error)


def test_every_value_has_a_comment_and_a_schema() -> None:
    """Mappings whose keys are documented themselves need no comment of their own."""
    outer = {key.path[:-1] for key in KEYS}
    undocumented = [key.path for key in KEYS if not key.comment and key.path not in outer]
    for key in commented_keys(VALUES):
        lookup(SCHEMA, key.path)  # raises where there is none

    assert len(KEYS) > 250
    assert undocumented == []


def test_every_value_of_the_schema_is_in_values_yaml() -> None:
    listed = {".".join(key.path) for key in KEYS}

    assert [leaf for leaf in LEAVES if leaf not in listed] == []


def test_the_schema_refuses_what_it_does_not_know() -> None:
    def objects(node: Any) -> Iterator[Mapping[str, Any]]:
        if isinstance(node, dict):
            if "properties" in node and node.get("type") == "object":
                yield node
            for inner in node.values():
                yield from objects(inner)

    found = list(objects(SCHEMA))

    assert len(found) > 40
    assert all(node.get("additionalProperties") is False for node in found)


@pytest.mark.timeout(300)
def test_every_value_is_used(helm: Helm, other_chart: Helm, tmp_path: Path) -> None:
    """Taken away from `everything`, or set besides it, each changes what is rendered."""
    everything = yaml.safe_load(scenario("everything").read_text())
    lean = lighter(other_chart)
    whole = lean.render(scenario("everything")).text

    def is_used(leaf: str) -> bool:
        path = tuple(leaf.split("."))
        if leaf in APART:
            value, besides = APART[leaf]
            return of_1_36({**besides, leaf: value}) != base(leaf)
        if not there(everything, path):
            return False
        file = tmp_path / f"{leaf}.yaml"
        file.write_text(json.dumps(without(everything, path)))
        return text_or_complaint(lean, file) != whole

    def of_1_36(values: Mapping[str, Any]) -> str:
        return helm.render(values=values, api_versions=[MUTATING]).text

    plain = of_1_36({})

    def base(leaf: str) -> str:
        besides = APART[leaf][1]
        return of_1_36(besides) if besides else plain

    with ThreadPoolExecutor(2) as pool:
        used = dict(zip(LEAVES, pool.map(is_used, LEAVES), strict=True))

    assert len(used) > 230
    assert not (unused := [leaf for leaf, is_so in used.items() if not is_so]), unused


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"operater": {}}, "additional properties 'operater' not allowed"),
        ({"operator.options.retentionMaxAge": "7d"}, "/operator/options/retentionMaxAge"),
        ({"workers.default.options.graze": 1}, "additional properties 'graze' not allowed"),
        ({"workers.Mail": {}}, "workers.Mail: a name has at most 30 characters"),
        ({f"workers.{'a' * 31}": {}}, f"workers.{'a' * 31}: a name has at most 30 characters"),
        ({"queues.a_b": {}}, "queues.a_b: a name has at most 63 characters"),
        ({"scope.clusterWide": True, "scope.namespaces": ["a"]}, "scope.namespaces: leave it"),
        (
            {"workers.default.serviceAccount": {"create": False, "name": "mailer"}},
            "workers.default.serviceAccount.name: mailer has to be asyncjob-worker or begin with",
        ),
        (
            {"operator.serviceAccount": {"create": False, "name": "asyncjob-worker-op"}},
            "operator.serviceAccount.name: asyncjob-worker-op must neither be asyncjob-worker nor",
        ),
        ({"workers.default.namespace": "team-a"}, "team-a is not among scope.namespaces"),
        ({"operator.options.leaderElect": False}, "operator.options.leaderElect: false is only"),
        ({"workers.default.autoscaling.engine": "keda"}, "KEDA has to know where Prometheus is"),
        (
            {"workers.default.autoscaling": {"engine": "hpa", "minReplicas": 0}},
            "0 is only possible with engine: keda",
        ),
        ({"gateway.ingress.enabled": True}, "gateway.ingress.hosts: an Ingress needs"),
        (
            {"userRoles.create": False, "tenants": [{"namespace": "a"}]},
            "tenants: they are bound to the roles of userRoles.create",
        ),
    ],
    ids=lambda item: next(iter(item)) if isinstance(item, dict) else "",
)
def test_a_mistake_is_refused_with_its_name(
    helm: Helm, values: Mapping[str, Any], complaint: str
) -> None:
    with pytest.raises(RenderError) as refused:
        helm.render(values=values)

    assert complaint in str(refused.value)
