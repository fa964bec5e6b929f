"""Objects of kinds that others define: nobody here can ask their API server, so their shape."""

from typing import Any

import pytest

from support.cluster.charts import Helm, Object, scenario

FOREIGN = {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ScaledObject"}
RULES = "groups:\n- name: jobs\n  rules:\n  - alert: A\n    expr: '{{ $value }} > 1'\n"


@pytest.fixture
def with_files(other_chart: Helm) -> Helm:
    """Return a chart with an alert and a dashboard of the test's own."""
    (other_chart.chart / "files/alerts.yaml").write_text(RULES)
    (other_chart.chart / "files/dashboard.json").write_text('{"title": "{{ jobs }}"}\n')
    return other_chart


def monitoring(**parts: Any) -> dict[str, Any]:
    return {f"monitoring.{name}": value for name, value in parts.items()}


def test_nothing_of_others_is_installed_unasked(helm: Helm) -> None:
    assert {item["kind"] for item in helm.render().objects} & FOREIGN == set()


def test_monitors_keep_the_labels_of_jobs_and_find_a_port_by_its_name(helm: Helm) -> None:
    on = {"enabled": True, "interval": "15s", "labels": {"release": "p"}}
    found = helm.render(values=monitoring(serviceMonitor=on, podMonitor=on))
    services = {item["metadata"]["name"]: item for item in found.of("Service")}

    monitors = [*found.of("ServiceMonitor"), *found.of("PodMonitor")]
    ends = [
        (item["spec"].get("endpoints") or item["spec"]["podMetricsEndpoints"])[0]
        for item in monitors
    ]

    assert [item["metadata"]["name"] for item in monitors] == [
        "asyncjob-gateway",
        "asyncjob-operator",
        "asyncjob-worker-default",
    ]
    assert all(item["metadata"]["labels"]["release"] == "p" for item in monitors)
    assert all(end["honorLabels"] and end["interval"] == "15s" for end in ends)
    assert [end["port"] for end in ends] == ["metrics", "metrics", "health"]
    for name in ("asyncjob-gateway-metrics", "asyncjob-operator-metrics"):
        assert services[name]["spec"]["ports"][0]["name"] == "metrics"


def test_alerts_and_dashboard_are_taken_word_for_word(with_files: Helm) -> None:
    on = {"enabled": True}
    found = with_files.render(values=monitoring(prometheusRule=on, dashboard=on))
    (rule,) = found.of("PrometheusRule")
    (dashboard,) = found.of("ConfigMap")

    assert rule["spec"]["groups"][0]["rules"] == [{"alert": "A", "expr": "{{ $value }} > 1"}]
    assert dashboard["data"]["asyncjob.json"] == '{"title": "{{ jobs }}"}\n'
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_without_the_files_there_is_no_rule_and_no_dashboard(with_files: Helm) -> None:
    for name in ("alerts.yaml", "dashboard.json"):
        (with_files.chart / "files" / name).unlink()
    on = {"enabled": True}
    found = with_files.render(values=monitoring(prometheusRule=on, dashboard=on))

    assert [*found.of("PrometheusRule"), *found.of("ConfigMap")] == []


def scaled(helm: Helm, engine: str, kind: str) -> tuple[Object, Object]:
    """Return what scales the queue `mail`, and the Deployment that it scales."""
    scaling = {"engine": engine, "keda": {"serverAddress": "http://p:9090"}}
    values = {"workers.default": None, "workers.post": {"queue": "mail", "autoscaling": scaling}}
    found = helm.render(values=values)
    name = "asyncjob-worker-post"
    return found.one(kind, name)["spec"], found.one("Deployment", name)["spec"]


def test_keda_scales_by_jobs_and_by_the_oldest_of_them(helm: Helm) -> None:
    spec, deployment = scaled(helm, "keda", "ScaledObject")
    jobs, oldest = spec["triggers"]
    of = 'namespace="jobs",queue="mail"'

    assert spec["scaleTargetRef"] == {"name": "asyncjob-worker-post"}
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 10)
    assert jobs["metadata"] == {
        "serverAddress": "http://p:9090",
        "query": f'sum(asyncjob_jobs{{{of},phase=~"Queued|Running"}}) or vector(0)',
        "threshold": "8",
    }
    assert oldest["metadata"]["query"] == f"max(asyncjob_queue_oldest_seconds{{{of}}}) or vector(0)"
    assert (jobs["metricType"], oldest["metricType"]) == ("AverageValue", "Value")
    assert "replicas" not in deployment


def test_an_autoscaler_takes_the_same_metrics_from_elsewhere(helm: Helm) -> None:
    spec, deployment = scaled(helm, "hpa", "HorizontalPodAutoscaler")
    jobs, oldest = (item["external"] for item in spec["metrics"])

    assert jobs["metric"] == {
        "name": "asyncjob_jobs",
        "selector": {
            "matchLabels": {"namespace": "jobs", "queue": "mail"},
            "matchExpressions": [
                {"key": "phase", "operator": "In", "values": ["Queued", "Running"]}
            ],
        },
    }
    assert jobs["target"] == {"type": "AverageValue", "averageValue": "8"}
    assert oldest["metric"]["name"] == "asyncjob_queue_oldest_seconds"
    assert oldest["target"] == {"type": "Value", "value": "60"}
    assert "replicas" not in deployment


def test_the_oldest_job_can_be_left_out_of_it(helm: Helm) -> None:
    values = {"workers.default.autoscaling": {"engine": "hpa", "oldestSeconds": 0}}
    (spec,) = [item["spec"] for item in helm.render(values=values).of("HorizontalPodAutoscaler")]

    assert len(spec["metrics"]) == 1


def test_network_policies_let_in_what_is_named_and_out_what_is_needed(helm: Helm) -> None:
    peer = [{"podSelector": {"matchLabels": {"app": "shop"}}}]
    values = {
        "networkPolicy.restrictEgress": True,
        "networkPolicy.apiServerCIDRs": ["10.0.0.1/32"],
        "networkPolicy.gatewayFrom": peer,
    }
    found = helm.render(values=values)
    gateway = found.one("NetworkPolicy", "asyncjob-gateway")["spec"]
    worker = found.one("NetworkPolicy", "asyncjob-worker-default")["spec"]

    assert gateway["ingress"] == [
        {"ports": [{"port": "metrics"}]},
        {"ports": [{"port": "http"}], "from": peer},
    ]
    assert gateway["egress"][1]["to"] == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
    assert gateway["policyTypes"] == ["Ingress", "Egress"]
    assert worker["policyTypes"] == ["Ingress"]  # handlers reach the world unless told otherwise


def test_everything_has_all_kinds_of_others(with_files: Helm) -> None:
    found = with_files.render(scenario("everything"))

    assert {item["kind"] for item in found.objects} >= FOREIGN
