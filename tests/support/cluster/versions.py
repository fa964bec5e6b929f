"""Tests that need a newer Kubernetes than the one that they run on are skipped, and say why."""

from typing import Final

import pytest

from support.cluster.api import Client

Need = tuple[int, str]
"""A minor version of Kubernetes 1, and why an older one does not serve."""

MUTATING_POLICIES: Final[Need] = (36, "MutatingAdmissionPolicy came with Kubernetes 1.36")
SAME_WORDS: Final[Need] = (36, "the API server in memory answers in the words of Kubernetes 1.36")


def needs(admin: Client, need: Need) -> None:
    """Skip the test where the API server is older."""
    least, why = need
    running = admin.get("/version").object()
    # Clouds write "32+".
    if int(running["minor"].rstrip("+")) < least:
        pytest.skip(f"{why}; this one is {running['gitVersion']}")
