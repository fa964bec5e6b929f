"""The tables of the page on metrics, one for each part that exports some."""

from asyncjob.metrics import TABLE, Component, MetricSpec
from asyncjob_dev.reference.blocks import table


def metrics_table(part: Component) -> str:
    """Return the table of a part: name, type, labels, unit, meaning."""
    rows = [_metric_row(spec) for spec in TABLE if spec.part is part]
    return table(("Metric", "Type", "Labels", "Unit", "Meaning"), rows)


def _metric_row(spec: MetricSpec) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    return f"`{spec.exposed_name}`", spec.kind.value, labels, spec.unit, spec.help
