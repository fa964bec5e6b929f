"""The table of what a job costs on several versions of Kubernetes."""

from pathlib import Path

import pytest

from asyncjob_bench.versions import version_rows
from asyncjob_dev.binaries import Binary


def programs(kubernetes: str, etcd: str) -> list[Binary]:
    return [
        Binary(tool, Path(tool), version, "cache")
        for tool, version in (("etcd", etcd), ("kube-apiserver", kubernetes), ("kubectl", "v9"))
    ]


def test_each_version_is_shown_with_its_medians_and_beside_the_pinned_one() -> None:
    rows = version_rows(
        [programs("v1.36.3", "v3.6.5"), programs("v1.37.2", "v3.7.3")],
        [
            [{"KiB/job": 900.0}, {"KiB/job": 1000.0}, {"KiB/job": 1200.0}],
            [{"KiB/job": 900.0}, {"KiB/job": 100.0}, {"KiB/job": 1500.0}],
        ],
    )
    assert rows == [
        {"kubernetes": "v1.36.3", "etcd": "v3.6.5", "KiB/job": 1000.0, "over pinned": 1.0},
        {
            "kubernetes": "v1.37.2",
            "etcd": "v3.7.3",
            "KiB/job": 900.0,
            "over pinned": pytest.approx(0.9),
        },
    ]
