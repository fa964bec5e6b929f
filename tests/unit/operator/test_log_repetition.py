"""What keeps the log from being filled."""

from asyncjob_operator.telemetry.logs import LogThrottle


def test_a_message_is_said_once_a_minute_and_another_at_once() -> None:
    at = [0.0]
    repeats = LogThrottle(lambda: at[0])
    said = []
    for second in range(121):
        at[0] = float(second)
        said += [(second, text) for text in ("one", "two") if repeats.allow(text)]
    assert said == [(second, text) for second in (0, 60, 120) for text in ("one", "two")]


def test_a_message_is_said_but_once_although_the_clock_stands_still() -> None:
    repeats = LogThrottle(lambda: 7.0)
    assert [repeats.allow("x"), repeats.allow("x")] == [True, False]
