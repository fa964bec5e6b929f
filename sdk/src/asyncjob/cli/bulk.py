"""What is said before and after dead letters are redriven or dismissed. Pure."""

from enum import StrEnum

from asyncjob.rest.selection import BulkReport

MAX_NAMED = 3
"""So many are named in a question; the rest is counted."""


class BulkAction(StrEnum):
    """What is done to dead letters."""

    REDRIVE = "redrive"
    DISMISS = "dismiss"

    @property
    def past_participle(self) -> str:
        """Return the participle."""
        return "redriven" if self is BulkAction.REDRIVE else "dismissed"

    @property
    def progressive(self) -> str:
        """Return what can be said once the wish is written."""
        return f"is being {self.past_participle}"


def count_dead_letters(count: int) -> str:
    """Return them counted."""
    return f"{count} dead letter" if count == 1 else f"{count} dead letters"


def confirmation_question(action: BulkAction, preview: BulkReport) -> str:
    """Return what a person is asked."""
    some = ", ".join(preview.done[:MAX_NAMED])
    more = len(preview.done) - MAX_NAMED
    which = f"{some} and {more} more" if more > 0 else some
    held_back = preview.matched - len(preview.done)
    rest = f"; {held_back} more match, see --limit" if held_back > 0 else ""
    return f"{action.value.capitalize()} {count_dead_letters(len(preview.done))} ({which}{rest})?"


def bulk_summary(action: BulkAction, report: BulkReport) -> str:
    """Return what was done, in one line."""
    if not report.matched:
        return "no dead letters match"
    done = count_dead_letters(len(report.done))
    would = f"would {action.value} {done}" if report.dry_run else f"{action.past_participle} {done}"
    left = report.matched - len(report.done) - len(report.failed)
    parts = [would]
    if report.failed:
        parts.append(f"{len(report.failed)} could not be")
    if left > 0:
        parts.append(f"{left} more match: again, or with a higher --limit")
    return "; ".join(parts)
