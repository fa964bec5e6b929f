"""The command line on jobs in memory."""

import pytest

from support.parts.cli_shell import Shell


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASYNCJOB_SERVER", "ASYNCJOB_TOKEN", "KUBECONFIG", "NO_COLOR", "ASYNCJOB_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shell() -> Shell:
    return Shell()
