"""Credentials that are none, in the environment where drivers look for them."""

import pytest

from support.loopback.stores import CREDENTIALS


@pytest.fixture
def s3_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
