"""What is said before and after dead letters are redriven or dismissed. Pure."""

from enum import StrEnum

from asyncjob.rest.selection import BulkReport

NAMED = 3
"""So many are named in a question; the rest is counted."""


class Deed(StrEnum):
    """What is done to dead letters."""

    REDRIVE = "redrive"
    DISMISS = "dismiss"

    @property
    def done(self) -> str:
        """Return the participle."""
        return "redriven" if self is Deed.REDRIVE else "dismissed"

    @property
    def being(self) -> str:
        """Return what can be said once the wish is written."""
        return f"is being {self.done}"


def dead_letters(count: int) -> str:
    """Return them counted."""
    return f"{count} dead letter" if count == 1 else f"{count} dead letters"


def question(deed: Deed, preview: BulkReport) -> str:
    """Return what a person is asked."""
    some = ", ".join(preview.done[:NAMED])
    more = len(preview.done) - NAMED
    which = f"{some} and {more} more" if more > 0 else some
    held_back = preview.matched - len(preview.done)
    rest = f"; {held_back} more match, see --limit" if held_back > 0 else ""
    return f"{deed.value.capitalize()} {dead_letters(len(preview.done))} ({which}{rest})?"


def summary(deed: Deed, report: BulkReport) -> str:
    """Return what was done, in one line."""
    if not report.matched:
        return "no dead letters match"
    done = dead_letters(len(report.done))
    would = f"would {deed.value} {done}" if report.dry_run else f"{deed.done} {done}"
    left = report.matched - len(report.done) - len(report.failed)
    parts = [would]
    if report.failed:
        parts.append(f"{len(report.failed)} could not be")
    if left > 0:
        parts.append(f"{left} more match: again, or with a higher --limit")
    return "; ".join(parts)
