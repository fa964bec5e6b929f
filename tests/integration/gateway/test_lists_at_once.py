"""What a replica has accepted is in its own lists at once, however late its watch is."""

import httpx
import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_a_submitted_job_is_in_the_next_list_of_the_replica(http: httpx.Client) -> None:
    for number in range(30):
        made = http.post("/api/v1/jobs", json={"type": "listed", "payload": number}).json()["id"]
        listed = http.get("/api/v1/jobs", params={"type": "listed", "limit": 100}).json()["items"]
        assert made in {job["id"] for job in listed}  # the time they go by has whole seconds
