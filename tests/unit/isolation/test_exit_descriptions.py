"""How a process ended, in words."""

import signal

import pytest

from asyncjob_worker.isolation.pool import describe_exit


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (7, "ended with exit code 7"),
        (-signal.SIGSEGV, "died by SIGSEGV"),
        (-signal.SIGABRT, "died by SIGABRT"),
        (-signal.SIGKILL, "was killed by SIGKILL, perhaps out of memory"),
        (-63, "died by signal 63"),
    ],
)
def test_an_exit_code_is_told_in_words(code: int, words: str) -> None:
    assert describe_exit(code) == f"the handler's process {words}"
