"""An operator, workers and a gateway in a namespace of the test's own, as for metrics."""

from integration.monitoring.conftest import gateway, gateway_access, ns, replicas

__all__ = ["gateway", "gateway_access", "ns", "replicas"]
