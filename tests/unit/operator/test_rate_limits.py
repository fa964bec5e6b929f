"""The rate limit of a queue, by the clock of the replica that looks."""

from asyncjob_operator.core.admission.rate_window import RateWindow
from asyncjob_operator.core.admission.reservations import Reservation, StartRecord
from asyncjob_operator.core.options import StartRateLimit
from support.objects.snapshots import at, stamp

TEN = StartRateLimit(10, 1)


class StartRecorder:
    """Takes what the pace allows and writes it down, as an operator does."""

    def __init__(self, rate: StartRateLimit) -> None:
        self.rate, self.pace = rate, RateWindow()
        self.starts: tuple[StartRecord, ...] = ()

    def take(self, now: float, wanted: int) -> int:
        room = self.pace.allowance(self.rate, at(now))
        taken = min(wanted, room.count)
        if taken:
            self.starts = self.pace.recent_starts(self.rate, taken, at(now))
            self.pace.observe_starts(self.starts, at(now), just_changed=True)
        return taken


def test_no_window_holds_more_than_the_rate_however_often_one_asks() -> None:
    recorder, taken = StartRecorder(TEN), dict[float, int]()
    for tick in range(500):
        now = tick * 0.007
        taken[now] = recorder.take(now, wanted=3)
    for start in taken:
        assert sum(count for at, count in taken.items() if start <= at < start + 1) <= 10
    assert sum(taken.values()) >= 30


def test_the_next_place_comes_when_the_oldest_start_leaves_the_window() -> None:
    recorder = StartRecorder(TEN)
    assert recorder.take(0.0, 10) == 10
    room = recorder.pace.allowance(TEN, at(0.4))
    assert (room.count, room.next_at) == (0, 1.0)
    assert recorder.take(1.0, 20) == 10


def test_what_is_written_down_stays_short_whatever_the_rate() -> None:
    recorder = StartRecorder(StartRateLimit(1_000_000, 1000))
    for tick in range(10_000):
        recorder.take(tick * 0.1, 5)
    assert len(recorder.starts) <= 51
    assert sum(entry.count for entry in recorder.starts) == 50_000


def test_another_replicas_wrong_clock_makes_no_room_early() -> None:
    pace = RateWindow()
    pace.observe_starts([StartRecord(stamp(-600), 10)], at(0.0), just_changed=True)
    assert pace.allowance(TEN, at(0.9)).count == 0
    assert pace.allowance(TEN, at(1.1)).count == 10


def test_what_is_found_at_the_start_is_as_old_as_it_says_but_not_younger_than_nothing() -> None:
    pace = RateWindow()
    pace.observe_starts(
        [StartRecord(stamp(-0.5), 4), StartRecord(stamp(600), 3)], at(0.0), just_changed=False
    )
    assert pace.allowance(TEN, at(0.0)).count == 3
    assert pace.allowance(TEN, at(0.6)).count == 7
    assert pace.allowance(TEN, at(1.1)).count == 10


def test_starts_seen_before_keep_their_age_when_the_book_is_read_again() -> None:
    pace, starts = RateWindow(), [StartRecord(stamp(0), 10)]
    pace.observe_starts(starts, at(0.0), just_changed=True)
    pace.observe_starts(starts, at(0.8), just_changed=True)
    assert pace.allowance(TEN, at(1.05)).count == 10


def test_starts_of_rounds_that_have_the_same_time_all_count() -> None:
    pace = RateWindow()
    starts = [StartRecord(stamp(0), 4)]
    pace.observe_starts(starts, at(0.0), just_changed=True)
    starts.append(StartRecord(stamp(0), 4))  # a clock of whole seconds
    pace.observe_starts(starts, at(0.5), just_changed=True)
    assert pace.allowance(TEN, at(0.6)).count == 2
    assert sum(start.count for start in pace.recent_starts(TEN, 2, at(0.6))) == 10


def place(name: str, seconds: float) -> Reservation:
    return Reservation(f"uid-{name}", name, "", "", stamp(seconds))


def test_a_place_counts_from_when_its_job_was_admitted() -> None:
    pace, early, late = RateWindow(), place("a", 0), place("b", 0)
    pace.observe_starts([StartRecord(stamp(0), 2)], at(0.0), just_changed=True)
    pace.observe_reservations([(early, True), (late, False)], at(0.1))
    pace.observe_reservations([(early, True), (late, False)], at(0.7))
    pace.observe_reservations([(early, True), (late, True)], at(0.9))
    pace.observe_reservations([(early, True), (late, True)], at(1.5))
    assert pace.allowance(TEN, at(1.8)).count == 8
    assert pace.allowance(TEN, at(1.95)).count == 10


def used_later(place_at: float) -> int:
    """Return how many starts count 11 s in, where those of 0 s or 5 s were seen again at 5 s."""
    pace, rate = RateWindow(), StartRateLimit(10, 10)
    starts = [StartRecord(stamp(0), 2), StartRecord(stamp(5), 3)]
    pace.observe_starts(starts, at(0.0), just_changed=True)
    pace.observe_reservations([(place("a", place_at), False)], at(5.0))
    return 10 - pace.allowance(rate, at(11.0)).count


def test_a_place_belongs_to_the_first_start_that_is_no_earlier_or_else_to_the_last() -> None:
    assert used_later(place_at=0) == 2
    assert used_later(place_at=1) == 3
    assert used_later(place_at=5) == 3
    assert used_later(place_at=9) == 3


def test_a_start_that_counts_from_later_on_is_the_last_with_which_others_become_one() -> None:
    pace, first, second = RateWindow(), StartRecord(stamp(0), 1), StartRecord(stamp(0.5), 2)
    pace.observe_starts([first], at(0.0), just_changed=True)
    pace.observe_starts([first, second], at(0.5), just_changed=True)
    pace.observe_reservations([(place("a", 0), False)], at(0.9))
    now = at(0.91)
    assert pace.recent_starts(TEN, 1, now) == (second, StartRecord(now.timestamp, 2))


def test_a_place_of_which_no_start_is_known_counts_nothing() -> None:
    pace = RateWindow()
    pace.observe_reservations([(place("a", 0), True)], at(0.0))
    room = pace.allowance(TEN, at(0.0))
    assert (room.count, room.next_at) == (10, None)


def test_starts_within_a_fiftieth_of_the_period_are_one_with_the_time_of_the_last() -> None:
    for second, written in ((0.9, [(0.9, 3)]), (1.0, [(0.0, 2), (1.0, 1)])):
        recorder = StartRecorder(StartRateLimit(10, 50))
        recorder.take(0.0, 2)
        recorder.take(second, 1)
        assert [(start.time, start.count) for start in recorder.starts] == [
            (stamp(at_), count) for at_, count in written
        ]


def test_the_next_place_comes_with_the_oldest_of_several_starts() -> None:
    recorder = StartRecorder(StartRateLimit(4, 10))
    recorder.take(0.0, 2)
    recorder.take(5.0, 2)
    assert recorder.pace.allowance(recorder.rate, at(6.0)).next_at == 10.0
    assert recorder.take(10.0, 4) == 2
