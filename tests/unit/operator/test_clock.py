"""Which clock counts where the machine's and the API server's disagree."""

from structlog.testing import capture_logs

from asyncjob_operator.kube.clock import MAX_SKEW_SECONDS, Clock

NOW = 1_800_000_000.0
DAY = 86_400.0


class Clocks:
    def __init__(self) -> None:
        self.wall, self.server = NOW, NOW
        self.answered = True
        self.clock = Clock(lambda: self.server if self.answered else None, lambda: self.wall)

    @property
    def now(self) -> float:
        return self.clock.now().wall


def test_the_machines_own_clock_counts_while_the_two_agree() -> None:
    clocks = Clocks()
    for ahead in (0.0, 1.5, -1.5, MAX_SKEW_SECONDS, -MAX_SKEW_SECONDS):
        clocks.wall = NOW + ahead
        assert clocks.now == NOW + ahead


def test_the_api_servers_clock_counts_where_they_disagree() -> None:
    clocks = Clocks()
    for ahead in (31 * DAY, -31 * DAY, 6.0):
        clocks.wall = NOW + ahead
        assert clocks.now == NOW
    clocks.wall = NOW + 1
    assert clocks.now == NOW + 1


def test_before_the_first_answer_there_is_only_the_machines() -> None:
    clocks = Clocks()
    clocks.answered, clocks.wall = False, NOW + DAY
    assert clocks.now == NOW + DAY


def test_that_they_disagree_is_said_once_and_that_they_agree_again() -> None:
    clocks = Clocks()
    with capture_logs() as logs:
        for ahead in (0.0, DAY, DAY, DAY, 0.0, 0.0):
            clocks.wall = NOW + ahead
            _ = clocks.now
    assert [line["log_level"] for line in logs] == ["warning", "info"]
    assert logs[0]["ahead"] == DAY
