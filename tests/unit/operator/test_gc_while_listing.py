"""The garbage collector while all jobs are listed, and ever after."""

import gc
from collections.abc import Iterator

import pytest

from asyncjob_operator.controllers.job_informer import YOUNG_GENERATION_THRESHOLD, freeze_gc


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leave the collector of the tests' own process as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_nothing_is_collected_while_jobs_are_listed_and_what_is_there_then_never() -> None:
    walks: list[str] = []

    def note(phase: str, _info: dict[str, int]) -> None:
        walks.append(phase)

    gc.callbacks.append(note)
    try:
        with freeze_gc():
            kept = [[number] for number in range(2 * YOUNG_GENERATION_THRESHOLD)]
        assert walks == []
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert gc.get_threshold()[0] == YOUNG_GENERATION_THRESHOLD
    assert gc.get_freeze_count() >= len(kept)


def test_a_list_that_fails_leaves_the_collector_as_it_was() -> None:
    before = (gc.get_threshold(), gc.get_freeze_count())
    with pytest.raises(OSError, match="reset"), freeze_gc():
        raise OSError("reset")
    assert gc.isenabled()
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
