"""The helm that tests are given works on the cluster that they are given."""

from pathlib import Path

import pytest

from e2e.cluster import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True)]

CHART = "apiVersion: v2\nname: tiny\nversion: 1.0.0\n"
MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {word: "{{ .Values.word }}"}
"""


def test_helm_installs_and_removes_a_chart(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text(CHART)
    (tmp_path / "templates" / "map.yaml").write_text(MAP)
    cluster.helm("install", "tiny", str(tmp_path), "--set=word=said", "--wait")
    assert cluster.get("default", "configmap", "tiny")["data"] == {"word": "said"}
    cluster.helm("uninstall", "tiny", "--wait")
    assert "tiny" not in cluster.kubectl("get", "configmaps", "--output=name")
