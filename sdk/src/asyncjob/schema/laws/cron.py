"""What a schedule has to be like, and what of it never goes back; rules of the CRD.

A regular expression refuses what no clock shows. That a range runs backwards, or that no February
has thirty days, the operator says in the status.
"""

from typing import Final

from asyncjob.schema.laws.expressions import one_of, quote
from asyncjob.schema.laws.law import Law

MACROS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")

_MONTH: Final = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_WEEKDAY: Final = "SUN|MON|TUE|WED|THU|FRI|SAT"

SCHEDULE: Final = Law(
    "cron.schedule",
    "A schedule has five fields (minute hour day month weekday) or is @hourly, @daily, @weekly,"
    " @monthly or @yearly.",
    f"self in {one_of(MACROS)} || self.matches('^ *[^ @]+( +[^ ]+){{4}} *$')",
)


def _field(at: int, name: str, values: str, number: str, special: str = "") -> Law:
    """Return the law of the field of this number, counted from 0."""
    one = rf"(\*|H(\({number}-{number}\))?|{number}(-{number})?)(/0*[1-9][0-9]?)?{special}"
    pattern = f"^ *([^ ]+ +){{{at}}}(?i:({one})(,({one}))*)( |$)"
    return Law(
        f"cron.{name}",
        f"The {name} of a schedule is {values}, a range, * or H, each with or without /step, or a"
        " list of these.",
        f"self.startsWith('@') || self.matches({quote(pattern)})",
    )


FIELDS: Final = (
    _field(0, "minute", "0 to 59", "[0-5]?[0-9]"),
    _field(1, "hour", "0 to 23", "([01]?[0-9]|2[0-3])"),
    _field(2, "day", "1 to 31, L, LW", "(0?[1-9]|[12][0-9]|3[01])", "|LW?"),
    _field(3, "month", "1 to 12, JAN to DEC", f"(0?[1-9]|1[0-2]|{_MONTH})"),
    _field(
        4,
        "weekday",
        "0 to 7, SUN to SAT, MON#1 to MON#5, 5L",
        f"([0-7]|{_WEEKDAY})",
        f"|([0-7]|{_WEEKDAY})#[1-5]|[0-7]L",
    ),
)
ADVANCES: Final = Law(
    "cron.advances",
    "lastScheduleTime never goes back, so that no scheduled time is acted on twice.",
    "!has(oldSelf.lastScheduleTime) || (has(self.lastScheduleTime)"
    " && self.lastScheduleTime >= oldSelf.lastScheduleTime)",
)
SETTLED: Final = Law(
    "cron.settled",
    "settledTime never goes back, so that no scheduled time is acted on twice.",
    "!has(oldSelf.settledTime) || (has(self.settledTime)"
    " && self.settledTime >= oldSelf.settledTime)",
)
TRIGGER_GROWS: Final = Law(
    "cron.trigger-grows",
    "spec.trigger never shrinks.",
    "!has(oldSelf.trigger) || (has(self.trigger) && self.trigger >= oldSelf.trigger)",
)
RANGE: Final = Law(
    "cron.backfill-range",
    "A backfill's to is not before its from.",
    "self.to >= self.from",
)
