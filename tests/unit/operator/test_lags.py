"""How late the operator is: for its deadlines, and in seeing new jobs."""

from datetime import UTC, datetime, timedelta

import pytest

from asyncjob_operator.handlers.operator import _lag
from asyncjob_operator.observe.agenda import Agenda


def test_an_agenda_is_as_late_as_the_deadline_that_was_due_first() -> None:
    agenda = Agenda()
    assert agenda.late_by(5.0) is None
    agenda.set("a", 3.0)
    agenda.set("b", 4.0)
    assert agenda.late_by(2.0) is None
    assert agenda.late_by(5.0) == 2.0


@pytest.mark.parametrize(("age", "shown"), [(-30, 0), (0, 0), (0.9, 0), (45, 45)])
def test_what_whole_seconds_cannot_tell_is_no_lag(age: float, shown: float) -> None:
    created = datetime.now(UTC) - timedelta(seconds=age)
    meta = {"creationTimestamp": created.isoformat().replace("+00:00", "Z")}
    assert _lag({"metadata": meta}) == pytest.approx(shown, abs=0.5)
