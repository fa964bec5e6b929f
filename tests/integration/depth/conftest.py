"""An operator, workers and a gateway in a namespace of the test's own, as for metrics."""

from integration.monitoring.conftest import field, gateway, gateway_access, replicas

__all__ = ["field", "gateway", "gateway_access", "replicas"]
