"""What every pod has in common, and what is peculiar to workers."""

from typing import Any

import pytest
import yaml

from support.cluster.charts import SCENARIOS, Helm, Object, Rendered, container, scenario

NAMES = [path.stem for path in SCENARIOS]
PARTS = {
    "operator.pod": "asyncjob-operator",
    "gateway.pod": "asyncjob-gateway",
    "workerDefaults.pod": "asyncjob-worker-default",
    "workers.default.pod": "asyncjob-worker-default",
    "preflight.pod": "asyncjob-preflight",
    "test.pod": "asyncjob-test",
}
OF_THE_POD = {
    "nodeSelector": "nodeSelector",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "topologySpreadConstraints": "topologySpreadConstraints",
    "priorityClassName": "priorityClassName",
    "runtimeClassName": "runtimeClassName",
    "initContainers": "initContainers",
}
OF_THE_CONTAINER = ("resources", "envFrom")
APIS = {"api_versions": ("asyncjob.dev/v1alpha1/AsyncQueue",)}


def everything_about_pods() -> dict[str, Any]:
    """Return the `podDefaults` of the scenario `everything`, which differ from all defaults."""
    values: dict[str, Any] = yaml.safe_load(scenario("everything").read_text())["podDefaults"]
    spread = [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]
    return {**values, "topologySpreadConstraints": spread}


@pytest.mark.parametrize("at", PARTS)
def test_each_part_takes_anything_of_the_pod_defaults_for_itself(helm: Helm, at: str) -> None:
    wanted = everything_about_pods()

    pod = helm.render(values={at: wanted}).pods()[PARTS[at]]
    spec, main = pod["spec"], pod["spec"]["containers"][0]

    assert {name: spec[key] for name, key in OF_THE_POD.items()} == {
        name: wanted[name] for name in OF_THE_POD
    }
    assert wanted["labels"].items() <= pod["metadata"]["labels"].items()
    assert wanted["annotations"].items() <= pod["metadata"]["annotations"].items()
    assert {name: main[name] for name in OF_THE_CONTAINER} == {
        "resources": wanted["resources"],
        "envFrom": wanted["envFrom"],
    }
    assert wanted["env"][0] in main["env"]
    assert wanted["volumes"][0] in spec["volumes"]
    assert wanted["volumeMounts"][0] in main["volumeMounts"]
    assert spec["containers"][1:] == wanted["extraContainers"]
    assert spec["securityContext"]["fsGroup"] == 65533
    assert main["securityContext"]["privileged"] is False
    assert spec["volumes"][0] == {"name": "tmp", "emptyDir": {"sizeLimit": "128Mi"}}


def test_what_one_part_takes_for_itself_changes_no_other(helm: Helm) -> None:
    plain = helm.render().pods()
    changed = helm.render(values={"gateway.pod": everything_about_pods()}).pods()

    assert {name for name in plain if plain[name] != changed[name]} == {"asyncjob-gateway"}


@pytest.mark.parametrize("name", NAMES)
def test_no_pod_is_root_or_writes_anywhere_but_to_tmp(
    rendered: dict[str, Rendered], name: str
) -> None:
    pods = rendered[name].pods()

    assert len(pods) >= 2
    for pod in pods.values():
        spec, main = pod["spec"], pod["spec"]["containers"][0]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert main["securityContext"]["readOnlyRootFilesystem"] is True
        assert main["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"name": "tmp", "mountPath": "/tmp"} in main["volumeMounts"]


@pytest.mark.parametrize(
    ("options", "own", "seconds"),
    [
        ({}, None, 60),
        ({"grace": 120}, None, 150),
        ({"grace": 0, "stopWait": 0}, None, 15),
        ({"grace": 1.5, "stopWait": 10}, None, 47),
        ({"grace": 600}, 100, 100),
    ],
)
def test_a_worker_has_the_time_that_its_drain_takes(
    helm: Helm, options: dict[str, float], own: int | None, seconds: int
) -> None:
    """More than grace, three times stop-wait and 13 s in sum, as the worker's reference says."""
    values = {"options": options, "terminationGracePeriodSeconds": own}
    pod = helm.render(values={"workers.default": values}).pods()["asyncjob-worker-default"]

    assert pod["spec"]["terminationGracePeriodSeconds"] == seconds


def test_a_worker_is_told_who_it_is_and_found_by_what_it_is(helm: Helm) -> None:
    values = {"workers.post": {"queue": "mail", "app": "mail:app", "options": {"concurrency": 8}}}
    pod = helm.render(values=values).pods()["asyncjob-worker-post"]
    main = container(pod, "worker")
    fields = {
        item["name"]: item["valueFrom"]["fieldRef"]["fieldPath"]
        for item in main["env"]
        if "valueFrom" in item
    }

    assert pod["metadata"]["labels"]["asyncjob.dev/component"] == "worker"
    assert pod["metadata"]["labels"]["asyncjob.dev/queue"] == "mail"
    assert pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == "worker"
    assert fields == {
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_UID": "metadata.uid",
    }
    assert main["command"] == ["asyncjob-worker"]
    assert main["args"][:2] == ["run", "mail:app"]
    assert {"--queue=mail", "--concurrency=8"} < {*main["args"]}


def test_operator_and_gateway_are_labelled_as_what_they_are(helm: Helm) -> None:
    pods = helm.render().pods()

    for part in ("operator", "gateway"):
        labels = pods[f"asyncjob-{part}"]["metadata"]["labels"]
        assert labels["asyncjob.dev/component"] == part


def test_workers_are_apart_and_one_of_them_can_be_taken_out(helm: Helm) -> None:
    values = {"workers.default": None, "workers.mail": {}, "workers.reports": {"enabled": False}}
    found = helm.render(values=values).of("Deployment")
    workers = [item["metadata"]["name"] for item in found if "worker" in item["metadata"]["name"]]

    assert workers == ["asyncjob-worker-mail"]


def test_false_and_nothing_override_defaults_that_are_true_and_something(helm: Helm) -> None:
    values = {
        "workerDefaults.children": True,
        "workerDefaults.extraArgs": ["--reload"],
        "workers.default": {"children": False, "extraArgs": []},
    }
    found = helm.render(values=values)
    args = container(found.pods()["asyncjob-worker-default"], "worker")["args"]

    assert "--reload" not in args
    (role,) = [r for r in found.of("Role") if r["metadata"]["name"] == "asyncjob-worker-default"]
    assert all(
        rule["resources"] != ["asyncjobs"] or "create" not in rule["verbs"]
        for rule in role["rules"]
    )


def test_null_takes_a_default_away(helm: Helm) -> None:
    """A limit that is null would be one of nothing to the API server."""
    own = {"resources": {"limits": {"memory": None}}, "securityContext": {"runAsUser": None}}
    spec = helm.render(values={"workers.default.pod": own}).pods()["asyncjob-worker-default"][
        "spec"
    ]

    assert spec["containers"][0]["resources"] == {
        "limits": {},
        "requests": {"cpu": "50m", "memory": "128Mi"},
    }
    assert "runAsUser" not in spec["securityContext"]


def test_a_new_version_of_the_chart_alone_restarts_no_pod(other_chart: Helm, helm: Helm) -> None:
    """Images have their tags from appVersion; whoever pins them rolls nothing out by an upgrade."""
    meta = other_chart.chart / "Chart.yaml"
    meta.write_text(meta.read_text().replace("\nversion: 0.1.0", "\nversion: 0.1.1"))
    before, after = helm.render().pods(), other_chart.render().pods()
    del before["asyncjob-test"], after["asyncjob-test"]  # a pod of its own for each test

    assert before == after


def test_selectors_select_the_pods_of_their_own_part_only(rendered: dict[str, Rendered]) -> None:
    found = rendered["everything"]
    pods = found.pods()

    def selected(selector: Object) -> set[str]:
        return {
            name
            for name, pod in pods.items()
            if selector.items() <= pod["metadata"]["labels"].items()
        }

    for item in found.of("Deployment"):
        assert selected(item["spec"]["selector"]["matchLabels"]) == {item["metadata"]["name"]}
    for item in (*found.of("PodDisruptionBudget"), *found.of("PodMonitor")):
        assert selected(item["spec"]["selector"]["matchLabels"]) == {item["metadata"]["name"]}
    for item in found.of("NetworkPolicy"):
        assert selected(item["spec"]["podSelector"]["matchLabels"]) == {item["metadata"]["name"]}
    for item in found.of("Service"):
        owner = item["metadata"]["name"].removesuffix("-metrics")
        assert selected(item["spec"]["selector"]) == {owner}


def test_queues_are_hooks_only_while_the_cluster_lacks_their_kind(helm: Helm) -> None:
    """Else they are objects of the release, with what lets Helm take over those of the hook."""
    values = {"queues.mail": {"spec": {"maxConcurrency": 3}}}
    first = helm.render(values=values).one("AsyncQueue", "mail")["metadata"]["annotations"]
    later = helm.render(values=values, **APIS).one("AsyncQueue", "mail")["metadata"]
    owner = {
        "meta.helm.sh/release-name": "asyncjob",
        "meta.helm.sh/release-namespace": "jobs",
        "helm.sh/resource-policy": "keep",
    }

    assert first["helm.sh/hook"] == "post-install,post-upgrade"
    assert later["annotations"] == owner
    assert owner.items() <= first.items()
    assert later["labels"]["app.kubernetes.io/managed-by"] == "Helm"
