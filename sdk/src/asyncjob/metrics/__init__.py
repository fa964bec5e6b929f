"""All metrics of all parts in one table. Names, labels and meanings are part of the interface.

What exports them is built from it, see `asyncjob.instruments`, and so is the reference.
"""

from typing import Final

from asyncjob.metrics import gateway, jobs, operator, worker
from asyncjob.metrics.bounds import OTHER, Bound
from asyncjob.metrics.spec import Kind, Part, Spec

__all__ = ["OTHER", "TABLE", "Bound", "Kind", "Part", "Spec"]

TABLE: Final = (*jobs.TABLE, *operator.TABLE, *worker.TABLE, *gateway.TABLE)
