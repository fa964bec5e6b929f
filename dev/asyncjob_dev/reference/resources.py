"""Generated parts of the pages on the resources.

Their fields, the job's lifecycle, and what cron jobs do on days on which clocks change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from asyncjob.explanations.texts import Kind, by_code
from asyncjob.json_types import JsonObject, as_object, child, items, text, texts
from asyncjob.lifecycle.phases import PHASE_DOCS, Reason
from asyncjob.lifecycle.transitions import TRANSITIONS, Transition
from asyncjob.schema.structural import structural
from asyncjob_dev.reference.blocks import table
from asyncjob_dev.reference.explanations import in_page, link_to
from asyncjob_operator.core.schedules.calendar import load_zone, parse_schedule

FieldRow = tuple[str, str, str, str]


def fields(model: type[BaseModel]) -> str:
    """Return the table of a model's fields, nested ones with their path."""
    schema = structural(model)
    properties = child(schema, "properties")
    own: JsonObject = {name: item for name, item in properties.items() if name != "metadata"}
    rows = list(_rows({**schema, "properties": own}, ""))
    return table(("Field", "Type", "Default", "Meaning"), rows)


def _rows(schema: JsonObject, prefix: str) -> Iterator[FieldRow]:
    required = texts(schema, "required")
    for name, value in child(schema, "properties").items():
        field = as_object(value)
        default = "required" if name in required else _default(field)
        yield f"`{prefix}{name}`", _field_type(field), default, text(field, "description")
        yield from _rows(field, f"{prefix}{name}.")
        yield from _rows(child(field, "items"), f"{prefix}{name}[].")
        yield from _rows(child(field, "additionalProperties"), f"{prefix}{name}.*.")


def _default(field: JsonObject) -> str:
    return f"`{field['default']}`" if "default" in field else ""


def _field_type(field: JsonObject) -> str:
    kind = text(field, "type", "any JSON")
    if "enum" in field:
        return ", ".join(str(item) for item in items(field, "enum"))
    if kind == "array":
        return f"list of {_field_type(child(field, 'items'))}, at most {field['maxItems']}"
    if "additionalProperties" in field:
        most = f"; at most {field['maxProperties']}" if "maxProperties" in field else ""
        return f"map of {_field_type(child(field, 'additionalProperties'))}{most}"
    if "minimum" in field and "maximum" in field:
        return f"{kind}, {field['minimum']} to {field['maximum']}"
    if "format" not in field and "maxLength" in field:
        return f"{kind}, at most {field['maxLength']} characters"
    return text(field, "format", kind)


def phases() -> str:
    """Return the table of phases."""
    return table(
        ("Phase", "Meaning"), [(f"`{phase.value}`", text) for phase, text in PHASE_DOCS.items()]
    )


def transitions() -> str:
    """Return the table of transitions: who, when, reasons, counters that may grow."""
    return table(
        ("From", "To", "Who", "When", "Reasons", "May grow"),
        [
            (
                f"`{transition.source.value}`",
                f"`{transition.target.value}`",
                _actors(transition),
                transition.description,
                _reasons(transition),
                ", ".join(f"`{name}`" for name in sorted(transition.incremented)),
            )
            for transition in TRANSITIONS
        ],
    )


def reasons() -> str:
    """Return the table of reasons, each with the transitions that carry it."""
    return table(
        ("Reason", "Meaning", "On the way to"),
        [
            (link_to(one, Path("docs/explanation")), one.means, _targets(Reason(one.code)))
            for one in by_code(Kind.JOB_REASON).values()
        ],
    )


def _targets(reason: Reason) -> str:
    targets = dict.fromkeys(
        transition.target.value for transition in TRANSITIONS if reason in transition.reasons
    )
    return ", ".join(f"`{target}`" for target in targets)


def _reasons(transition: Transition) -> str:
    """Return the reasons; whose each is, where two actors take it for different ones."""
    texts = {
        actor.value: ", ".join(
            f"`{reason.value}`" for reason in Reason if reason in transition.reasons_by_actor[actor]
        )
        for actor in sorted(transition.actors)
    }
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{actor}: {text}" for actor, text in texts.items())


def _actors(transition: Transition) -> str:
    return " or ".join(sorted(actor.value for actor in transition.actors))


@dataclass(frozen=True)
class ClockChange:
    """A day on which the clocks of a zone change."""

    zone: str
    day: str
    what: str


CLOCK_CHANGES: Final = (
    ClockChange("Europe/Berlin", "2026-03-29", "02:00 becomes 03:00"),
    ClockChange("Europe/Berlin", "2026-10-25", "03:00 becomes 02:00"),
    ClockChange("America/New_York", "2026-03-08", "02:00 becomes 03:00"),
    ClockChange("America/New_York", "2026-11-01", "02:00 becomes 01:00"),
    ClockChange("Australia/Sydney", "2026-10-04", "02:00 becomes 03:00"),
    ClockChange("Australia/Sydney", "2026-04-05", "03:00 becomes 02:00"),
    ClockChange("Australia/Lord_Howe", "2026-10-04", "02:00 becomes 02:30"),
    ClockChange("Australia/Lord_Howe", "2026-04-05", "02:00 becomes 01:30"),
)

SCHEDULES: Final = (
    "30 2 * * *",
    "0,30 1-3 * * *",
    "*/30 1-3 * * *",
    "*/30 2 * * *",
    "30 */2 * * *",
)
MORNING: Final = "05:00"


def cron_job_reasons() -> str:
    """Return the table of what the status of a cron job may say."""
    return _reason_meanings(Kind.CRON_REASON)


def array_reasons() -> str:
    """Return the table of what the status of an array may say."""
    return _reason_meanings(Kind.ARRAY_REASON)


def _reason_meanings(kind: Kind) -> str:
    rows = [
        (link_to(one, Path("docs/reference")), in_page(one.means, Path("docs/reference")))
        for one in by_code(kind).values()
    ]
    return table(("Reason", "Meaning"), rows)


def clock_changes() -> str:
    """Return a table for each change: the runs of each schedule before five in the morning."""
    return "\n\n".join(_change(change) for change in CLOCK_CHANGES)


def _change(change: ClockChange) -> str:
    rows = [
        (f"`{text}`", ", ".join(early_runs(text, change.zone, change.day)) or "no run on this day")
        for text in SCHEDULES
    ]
    head = f"### {change.zone}, {change.day}: {change.what}\n\n"
    return head + table(("Schedule", "Runs before 05:00, by the local clock"), rows)


def early_runs(text: str, zone: str, day: str) -> list[str]:
    """Return the local times of the runs before five in the morning."""
    return [run for run in runs(text, zone, day) if run < MORNING]


def runs(text: str, zone: str, day: str, days: int = 1) -> list[str]:
    """Return the local times of the runs of a day; of an hour that comes twice which of the two."""
    local = load_zone(zone)
    start = datetime.fromisoformat(day).replace(tzinfo=local)
    end = (start + timedelta(days=days)).timestamp()
    schedule = parse_schedule(text, zone, "ns/name")
    found = takewhile(lambda time: time < end, schedule.times_after(start.timestamp() - 1))
    return [_local(datetime.fromtimestamp(time, local)) for time in found]


def _local(moment: datetime) -> str:
    other = moment.replace(fold=1 - moment.fold)
    twice = moment.fold or other.utcoffset() != moment.utcoffset()
    which = " (second)" if moment.fold else " (first)"
    return f"{moment:%H:%M}{which if twice else ''}"
