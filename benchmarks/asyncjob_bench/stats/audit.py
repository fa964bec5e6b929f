"""Who wrote what, from the API server's audit log: the only record that names each request's user.

`apiserver_request_total` has verb and resource but no user; it serves to check the sums.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from asyncjob.names import ARRAYS, GROUP, JOBS

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
ACCOUNTS: Final = "system:serviceaccount:"
_OF_ARRAYS: Final = frozenset({f"{JOBS}.{GROUP}", f"{ARRAYS}.{GROUP}"})


@dataclass(frozen=True, slots=True)
class AuditedWrite:
    """One kind of write: who (the service account's name, else the user's), what, how it ended."""

    user: str
    verb: str
    resource: str
    code: int

    @property
    def is_stored(self) -> bool:
        """Whether it took effect: a claim that another worker was quicker with did not."""
        return self.code < HTTPStatus.MULTIPLE_CHOICES

    @property
    def concerns_arrays(self) -> bool:
        """Whether it is one on AsyncArrays or AsyncJobs, which chunks are."""
        return self.resource.split("/")[0] in _OF_ARRAYS

    @property
    def concerns_jobs(self) -> bool:
        """Whether it is one on AsyncJobs."""
        return self.resource.split("/")[0] == f"{JOBS}.{GROUP}"


def count_writes(lines: Iterable[str]) -> Counter[AuditedWrite]:
    """Return how often each kind of write was made, dry runs left out; from lines of JSON."""
    counts: Counter[AuditedWrite] = Counter()
    for line in lines:
        event = json.loads(line)
        if event["stage"] == "ResponseComplete" and event["verb"] in WRITES and not _is_dry(event):
            counts[_write(event)] += 1
    return counts


def total(
    counts: Counter[AuditedWrite],
    *,
    user: str | None = None,
    jobs: bool = True,
    only_stored: bool = False,
) -> int:
    """Return how many writes a user made (None: everybody), on AsyncJobs or on all else."""
    return sum(
        number
        for write, number in counts.items()
        if write.concerns_jobs is jobs
        and user in {None, write.user}
        and (write.is_stored or not only_stored)
    )


def total_of_arrays(counts: Counter[AuditedWrite]) -> int:
    """Return how many writes on AsyncArrays and AsyncJobs have taken effect, by whomever."""
    return sum(
        number for write, number in counts.items() if write.concerns_arrays and write.is_stored
    )


def most_objects(lines: Iterable[str]) -> int:
    """Return how many of the AsyncArrays and AsyncJobs created in the log lived at one time."""
    living: set[tuple[str, str]] = set()
    most = 0
    for line in lines:
        event = json.loads(line)
        write = _write(event)
        if not (write.concerns_arrays and write.is_stored and "/" not in write.resource):
            continue
        key = (write.resource, event["objectRef"].get("name", ""))
        if write.verb == "create":
            living.add(key)
        elif write.verb == "delete":
            living.discard(key)
        most = max(most, len(living))
    return most


def _write(event: dict[str, Any]) -> AuditedWrite:
    at = event.get("objectRef", {})
    parts = [at.get("resource", ""), at.get("subresource", "")]
    group = f".{at['apiGroup']}" if at.get("apiGroup") else ""
    resource = parts[0] + group + (f"/{parts[1]}" if parts[1] else "")
    return AuditedWrite(
        _user(event), event["verb"], resource, event["responseStatus"].get("code", 0)
    )


def _user(event: dict[str, Any]) -> str:
    name = str(event["user"].get("username", ""))
    return name.rpartition(":")[2] if name.startswith(ACCOUNTS) else name


def _is_dry(event: dict[str, Any]) -> bool:
    return "dryRun" in parse_qs(urlsplit(event["requestURI"]).query)
