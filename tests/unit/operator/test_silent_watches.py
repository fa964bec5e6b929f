"""A silent watch is told from a quiet cluster."""

from asyncjob_operator.controllers.job_informer import SilentWatchDetector


def test_a_watch_that_brought_nothing_while_things_happened_is_silent() -> None:
    dog = SilentWatchDetector()
    dog.events = 5
    assert not dog.is_silent(0)
    assert dog.is_silent(3)


def test_a_watch_that_brings_events_may_miss_one() -> None:
    dog = SilentWatchDetector()
    dog.events = 5
    dog.is_silent(0)
    dog.events = 6
    assert not dog.is_silent(1)


def test_a_quiet_cluster_is_no_silent_watch() -> None:
    assert not SilentWatchDetector().is_silent(0)
