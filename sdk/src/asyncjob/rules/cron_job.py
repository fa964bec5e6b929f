"""Rules of a cron job: the syntax of its schedule, and what never goes back.

A regular expression refuses what no clock shows. That a range runs backwards, or that no February
has thirty days, is reported by the operator in the status.
"""

from typing import Final

from asyncjob.rules.rule import Rule, cel_list, cel_string

SCHEDULE_MACROS: Final = (
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
)

_MONTH: Final = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_WEEKDAY: Final = "SUN|MON|TUE|WED|THU|FRI|SAT"

CRON_SCHEDULE: Final = Rule(
    "cron.schedule",
    "A schedule must have five fields (minute hour day month weekday) or be @hourly, @daily,"
    " @weekly, @monthly or @yearly.",
    f"self in {cel_list(SCHEDULE_MACROS)} || self.matches('^ *[^ @]+( +[^ ]+){{4}} *$')",
)


def _schedule_field_rule(
    index: int, name: str, values: str, number: str, special: str = ""
) -> Rule:
    """Return the rule of the field of this number, counted from 0."""
    one = rf"(\*|H(\({number}-{number}\))?|{number}(-{number})?)(/0*[1-9][0-9]?)?{special}"
    pattern = f"^ *([^ ]+ +){{{index}}}(?i:({one})(,({one}))*)( |$)"
    return Rule(
        f"cron.{name}",
        f"The {name} of a schedule is {values}, a range, * or H, each with or without /step, or a"
        " list of these.",
        f"self.startsWith('@') || self.matches({cel_string(pattern)})",
    )


CRON_SCHEDULE_FIELDS: Final = (
    _schedule_field_rule(0, "minute", "0 to 59", "[0-5]?[0-9]"),
    _schedule_field_rule(1, "hour", "0 to 23", "([01]?[0-9]|2[0-3])"),
    _schedule_field_rule(2, "day", "1 to 31, L, LW", "(0?[1-9]|[12][0-9]|3[01])", "|LW?"),
    _schedule_field_rule(3, "month", "1 to 12, JAN to DEC", f"(0?[1-9]|1[0-2]|{_MONTH})"),
    _schedule_field_rule(
        4,
        "weekday",
        "0 to 7, SUN to SAT, MON#1 to MON#5, 5L",
        f"([0-7]|{_WEEKDAY})",
        f"|([0-7]|{_WEEKDAY})#[1-5]|[0-7]L",
    ),
)
CRON_ADVANCES: Final = Rule(
    "cron.advances",
    "lastScheduleTime must not go back, so that no scheduled time is processed twice.",
    "!has(oldSelf.lastScheduleTime) || (has(self.lastScheduleTime)"
    " && self.lastScheduleTime >= oldSelf.lastScheduleTime)",
)
CRON_SETTLED: Final = Rule(
    "cron.settled",
    "settledTime must not go back, so that no scheduled time is processed twice.",
    "!has(oldSelf.settledTime) || (has(self.settledTime)"
    " && self.settledTime >= oldSelf.settledTime)",
)
CRON_TRIGGER_GROWS: Final = Rule(
    "cron.trigger-grows",
    "spec.trigger must not decrease.",
    "!has(oldSelf.trigger) || (has(self.trigger) && self.trigger >= oldSelf.trigger)",
)
CRON_BACKFILL_RANGE: Final = Rule(
    "cron.backfill-range",
    "backfill.to must not be before backfill.from.",
    "self.to >= self.from",
)
