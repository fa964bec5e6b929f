"""The tables of the page on metrics, one for each part that exports some."""

from asyncjob.metrics import TABLE, Part, Spec
from asyncjob_dev.reference.blocks import table


def metrics(part: Part) -> str:
    """Return the table of a part: name, type, labels, unit, meaning."""
    rows = [_row(spec) for spec in TABLE if spec.part is part]
    return table(("Metric", "Type", "Labels", "Unit", "Meaning"), rows)


def _row(spec: Spec) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    return f"`{spec.shown_as}`", spec.kind.value, labels, spec.unit, spec.help
