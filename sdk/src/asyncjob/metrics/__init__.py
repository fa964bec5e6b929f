"""All metrics of all parts in one table. Names, labels and meanings are part of the interface.

What exports them is built from it, see `asyncjob.instruments`, and so is the reference.
"""

from typing import Final

from asyncjob.metrics import gateway, jobs, operator, worker
from asyncjob.metrics.bounds import OTHER_LABEL, CardinalityLimit
from asyncjob.metrics.spec import Component, MetricSpec, MetricType

__all__ = ["OTHER_LABEL", "TABLE", "CardinalityLimit", "Component", "MetricSpec", "MetricType"]

TABLE: Final = (*jobs.TABLE, *operator.TABLE, *worker.TABLE, *gateway.TABLE)
