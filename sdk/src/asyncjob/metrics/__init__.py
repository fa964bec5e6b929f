"""The metrics of all components in one table: names, labels and meanings are part of the interface.

The exporters and the reference page are built from it; see `asyncjob.metrics.prometheus`.
"""

from typing import Final

from asyncjob.metrics import arrays, gateway, jobs, operator, worker
from asyncjob.metrics.metric import OTHER_LABEL, CardinalityLimit, Component, MetricSpec, MetricType

__all__ = ["OTHER_LABEL", "TABLE", "CardinalityLimit", "Component", "MetricSpec", "MetricType"]

TABLE: Final = (*jobs.TABLE, *arrays.TABLE, *operator.TABLE, *worker.TABLE, *gateway.TABLE)
