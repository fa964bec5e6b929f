"""The table of metrics: names as Prometheus wants them, and all of it documented."""

import re
from pathlib import Path

import pytest

from asyncjob.metrics import OTHER_LABEL, TABLE, CardinalityLimit, Component, MetricSpec, MetricType
from support.cluster.promql import series_names

PAGE = (Path(__file__).parents[3] / "docs/reference/metrics.md").read_text(encoding="utf-8")

PREFIXES = {
    Component.LEADER: "asyncjob_",
    Component.OPERATOR: "asyncjob_operator_",
    Component.WORKER: "asyncjob_worker_",
    Component.GATEWAY: "asyncjob_gateway_",
}


def test_each_name_is_there_once() -> None:
    assert len({spec.name for spec in TABLE}) == len(TABLE)


@pytest.mark.parametrize("spec", TABLE, ids=lambda spec: spec.name)
def test_names_say_who_exports_what_in_which_unit(spec: MetricSpec) -> None:
    assert spec.name.startswith(PREFIXES[spec.part])
    assert re.fullmatch(r"[a-z_]+[a-z]", spec.name)
    assert spec.exposed_name.endswith("_total") == (spec.kind is MetricType.COUNTER)
    assert (spec.unit == "seconds") == spec.name.endswith("_seconds")
    assert bool(spec.buckets) == (spec.kind is MetricType.HISTOGRAM)
    assert not {"uid", "job", "name", "le"} & set(spec.labels), "no series per job"
    assert spec.help.endswith(".")


@pytest.mark.parametrize("spec", TABLE, ids=lambda spec: spec.name)
def test_every_metric_is_on_the_page(spec: MetricSpec) -> None:
    assert f"| `{spec.exposed_name}` | {spec.kind.value} |" in PAGE


def test_of_a_histogram_queries_may_use_three_series() -> None:
    [spec] = [one for one in TABLE if one.name == "asyncjob_job_queue_seconds"]
    assert series_names(spec) == {
        f"asyncjob_job_queue_seconds_{e}" for e in ("bucket", "sum", "count")
    }


def test_the_first_labels_keep_their_names_however_many_others_come() -> None:
    bound = CardinalityLimit(2)
    assert bound(("a", "x")) == ("a", "x")
    assert bound(("b", "x")) == ("b", "x")
    assert bound(("c", "x")) == (OTHER_LABEL, OTHER_LABEL)
    assert bound(("a", "x")) == ("a", "x")
