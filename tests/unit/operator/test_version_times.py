"""When a job was written at the latest, as its resourceVersion tells."""

import pytest

from asyncjob_operator.kube.version_times import (
    MAX_SAMPLES,
    VersionTimes,
    read_samples,
)

NOW = 1_800_000_000
DAY = 86_400


def sampled(*pairs: tuple[int, float]) -> VersionTimes:
    """Return times with a sample of each version, so many seconds from `NOW`."""
    times = VersionTimes()
    for version, seconds in pairs:
        times.sample(str(version), NOW + seconds)
    return times


def written_by(times: VersionTimes, version: int, now: float = DAY) -> float:
    return times.written_by(str(version), NOW + now) - NOW


def test_what_was_written_is_as_old_as_the_first_sample_that_has_its_version() -> None:
    times = sampled((100, 0), (200, 60), (300, 120))
    found = [written_by(times, version) for version in (1, 100, 101, 200, 300)]
    assert found == [0, 0, 60, 60, 120]


def test_what_no_sample_covers_counts_as_written_now() -> None:
    assert written_by(VersionTimes(), 1) == DAY
    assert written_by(sampled((100, 0)), 101) == DAY
    assert sampled((100, 0)).written_by("a-version-of-its-own", NOW) == NOW


def test_a_sample_of_a_time_to_come_makes_nothing_younger_than_now() -> None:
    assert written_by(sampled((100, 500)), 50, now=60) == 60


def test_a_fraction_of_a_second_makes_nothing_older() -> None:
    assert written_by(sampled((100, 0.2)), 100) == 1


def test_an_idle_cluster_needs_no_samples_and_two_have_no_time_in_common() -> None:
    times = sampled((100, 0), (150, 0), (200, 60), (200, DAY))
    times.sample("a-version-of-its-own", NOW + 2 * DAY)
    assert times.text() == f"100@{NOW} 200@{NOW + 60}"


def test_a_store_restored_from_a_backup_takes_back_what_came_after_it() -> None:
    times = sampled((100, 0), (900, 60), (150, 120))
    assert [written_by(times, version) for version in (100, 150, 151)] == [0, 120, DAY]


def test_a_clock_that_was_ahead_is_corrected() -> None:
    times = sampled((100, 0), (200, 90 * DAY), (300, 120))
    assert [written_by(times, version) for version in (200, 300)] == [120, 120]


def test_a_week_of_samples_is_short_and_tells_ages_to_a_third_and_never_too_old() -> None:
    times, minutes = VersionTimes(), 7 * DAY // 60
    for minute in range(minutes):
        times.sample(str(minute), NOW + 60 * minute)
    end = 60 * (minutes - 1)
    assert len(times.text().split()) == MAX_SAMPLES
    for age in (60, 600, 3600, 12 * 3600, DAY, 3 * DAY, 6 * DAY):
        found = end - written_by(times, (end - age) // 60, now=end)
        assert 2 / 3 * age <= found <= age


def test_samples_are_restored_as_they_were_kept() -> None:
    times, again = sampled((100, 0), (200, 60)), VersionTimes()
    again.restore(times.text(), NOW)
    assert again.text() == times.text() == f"100@{NOW} 200@{NOW + 60}"


@pytest.mark.parametrize(
    "text",
    ["", "1", "1@", "2@1 1@2", "1@2 2@1", "1@1 1@2", "1@1  2@2", "-1@1", "\u0661@1", "1@1\n"],
)
def test_where_a_text_holds_no_samples_none_are_kept(text: str) -> None:
    times = sampled((100, 0))
    times.restore(text, 0)
    assert read_samples(text) == []
    assert times.text() == ""


def test_samples_from_before_there_was_what_keeps_them_are_left_out() -> None:
    times = VersionTimes()
    times.restore(sampled((100, 0), (200, 60), (300, 120)).text(), NOW + 60)
    assert times.text() == f"200@{NOW + 60} 300@{NOW + 120}"
