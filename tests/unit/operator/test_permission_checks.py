"""How permissions are asked for: all of them, and few at a time."""

import asyncio
from typing import Any, cast

from asyncjob.kube import KubeSession
from asyncjob_operator.core.permissions import CORE
from asyncjob_operator.kube.preflight import CONCURRENT_REVIEWS, check_permissions


class Reviews:
    """Grants all but one verb in one namespace, and notes how many are under way."""

    def __init__(self) -> None:
        self.under_way = self.most = self.asked = 0

    async def create(self, _path: str, body: Any) -> Any:
        self.under_way, self.asked = self.under_way + 1, self.asked + 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        attributes = body["spec"]["resourceAttributes"]
        is_denied = (attributes["namespace"], attributes["verb"]) == ("n-77", "operate")
        return {"status": {"allowed": not is_denied}}


async def test_hundreds_of_namespaces_are_asked_about_a_few_reviews_at_a_time() -> None:
    reviews = Reviews()
    asked = [(permission, f"n-{number}") for number in range(100) for permission in CORE]
    findings = await check_permissions(cast("KubeSession", reviews), asked)
    assert reviews.asked == len(asked)
    assert reviews.most == CONCURRENT_REVIEWS
    [line] = findings.errors
    assert "operate" in line
    assert "n-77" in line
