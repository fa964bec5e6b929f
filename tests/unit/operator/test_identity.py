"""No two processes take part in an election under one name."""

from asyncjob_operator.options import settings_from


def test_two_processes_that_are_given_one_identity_do_not_share_it() -> None:
    given = {"namespace": (), "identity": "the-same"}
    one, other = settings_from(given).identity, settings_from(given).identity
    assert one != other
    assert one.startswith("the-same_")
    assert other.startswith("the-same_")
