"""How much `make fuzz` tries in the time that it is given."""

from asyncjob_dev.fuzz import EXAMPLES, LEAST_EXAMPLES, examples_in


def test_a_round_ends_when_the_time_does() -> None:
    assert examples_in(seconds=45, seconds_each=0.3, most=EXAMPLES) == 150
    assert examples_in(seconds=3600, seconds_each=0.3, most=EXAMPLES) == EXAMPLES


def test_no_round_begins_for_which_there_is_no_time() -> None:
    assert examples_in(seconds=0.3 * LEAST_EXAMPLES - 1, seconds_each=0.3, most=EXAMPLES) == 0
    assert examples_in(seconds=-1, seconds_each=0.3, most=EXAMPLES) == 0
