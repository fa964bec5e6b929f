"""NetworkPolicies of the chart, where the cluster's network enforces any."""

import pytest

from e2e.load import caller
from e2e.release import NAMESPACE, Release
from e2e.targets import Target

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True)]

PYTHON = "/opt/asyncjob/bin/python"
STAY = "import time; time.sleep(600)"
CONNECT = """
import socket
try:
    socket.create_connection(("asyncjob-gateway", 80), timeout=5).close()
except TimeoutError:
    print("blocked")
else:
    print("connected")
"""


@pytest.fixture
def enforcing(target: Target) -> None:
    if not target.enforces_network_policy:
        pytest.skip(f"on {target.name} nothing enforces NetworkPolicies, so none could be shown")


def connection(release: Release, name: str, *, named: bool) -> str:
    """Return how a pod fares that connects to the gateway."""
    with caller(release.cluster, name, STAY, named=named):
        return release.cluster.exec(NAMESPACE, name, PYTHON, "-c", CONNECT).strip()


def test_who_is_named_reaches_the_gateway(whole: Release) -> None:
    assert connection(whole, "named", named=True) == "connected"


def test_who_is_not_named_is_kept_from_the_gateway(enforcing: None, whole: Release) -> None:
    assert connection(whole, "stranger", named=False) == "blocked"
