"""When a service wants to be asked again. Pure."""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_SECONDS = 86_400.0


def retry_after_seconds(value: str | None, date: str | None, now: datetime) -> float | None:
    """Return the seconds that Retry-After asks for, 0 to a day; None if it says nothing of use.

    It is a number of seconds or a date. A date is counted from the answer's own Date, so that it
    does not matter whether the clocks agree, and from `now` where there is none.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:10])
    elif (moment := _parse_date(text)) is not None:
        seconds = (moment - (_parse_date(date) or now)).total_seconds()
    else:
        return None
    return math.ceil(min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS))


def _parse_date(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError, TypeError):  # such as a year of eleven digits
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
