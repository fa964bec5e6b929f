"""What the leading operator says of all arrays; their chunks are in the metrics of jobs as well."""

from functools import partial
from typing import Final

from asyncjob.metrics.metric import Component, MetricSpec, MetricType

_QUEUE = ("namespace", "queue")
_gauge = partial(MetricSpec, kind=MetricType.GAUGE, part=Component.LEADER)

ARRAYS: Final = _gauge(
    "asyncjob_arrays", unit="arrays", help="Arrays there are.", labels=(*_QUEUE, "phase")
)
ITEMS: Final = MetricSpec(
    "asyncjob_array_items",
    MetricType.COUNTER,
    Component.LEADER,
    unit="items",
    help="Items of arrays counted, by outcome (succeeded, failed). An item that is redriven counts "
    "again.",
    labels=(*_QUEUE, "outcome"),
)
ITEMS_LEFT: Final = _gauge(
    "asyncjob_array_items_left",
    unit="items",
    help="Items not counted yet, of arrays that have not ended.",
    labels=_QUEUE,
)
OPEN_CHUNKS: Final = _gauge(
    "asyncjob_array_open_chunks", unit="chunks", help="Chunks under way.", labels=_QUEUE
)
IDLE_SECONDS: Final = _gauge(
    "asyncjob_array_idle_seconds",
    unit="seconds",
    help="For how long the array that waits longest has had no running chunk, as far as this "
    "replica has seen; 0 where none waits. Suspended arrays and paused queues do not count.",
    labels=_QUEUE,
)

TABLE: Final = (ARRAYS, ITEMS, ITEMS_LEFT, OPEN_CHUNKS, IDLE_SECONDS)
