"""No two processes take part in an election under one name."""

from asyncjob_operator.cli import _settings


def test_two_processes_that_are_given_one_identity_do_not_share_it() -> None:
    given = {"namespace": (), "identity": "the-same"}
    one, other = _settings(given).identity, _settings(given).identity
    assert one != other
    assert one.startswith("the-same_")
    assert other.startswith("the-same_")
