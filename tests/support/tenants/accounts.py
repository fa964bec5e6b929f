"""Accounts of dishonest writers: what they send, and what is odd in the answers."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from asyncjob.names import (
    ARRAY_LABEL,
    ARRAYS,
    BACKFILL_LABEL,
    CONTENT_ANNOTATION,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    CRON_JOBS,
    DEDUPLICATION_LABEL,
    IDEMPOTENCY_LABEL,
    JOBS,
    PARENT_LABEL,
    QUEUES,
    RESTORED_LABEL,
    SCHEDULED_TIME_ANNOTATION,
    TRIGGER_ANNOTATION,
    collection_path,
)
from support.cluster.api import MERGE, Client
from support.cluster.identities import Space
from support.objects.builders import array, cron_job, job, queue
from support.tenants.dishonest import (
    ResourceField,
    Value,
    metadata_fields,
    schema_fields,
    tried,
)

SHALLOW = "application/json;as=Table;v=v1;g=meta.k8s.io"
BARE = {"includeObject": "None"}
"""What is deep in an answer cannot be read by Python's own parser: rows without objects."""

LABELS = (
    ARRAY_LABEL,
    BACKFILL_LABEL,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    DEDUPLICATION_LABEL,
    IDEMPOTENCY_LABEL,
    PARENT_LABEL,
    RESTORED_LABEL,
)
ANNOTATIONS = (CONTENT_ANNOTATION, SCHEDULED_TIME_ANNOTATION, TRIGGER_ANNOTATION)
METADATA = metadata_fields(LABELS, ANNOTATIONS)
MANIFESTS: dict[str, Callable[[str], dict[str, Any]]] = {
    JOBS: job,
    QUEUES: queue,
    CRON_JOBS: cron_job,
    ARRAYS: array,
}


@dataclass
class Account:
    """What came of one token's writes."""

    client: Client
    answers: Counter[int] = field(default_factory=Counter)
    odd: list[str] = field(default_factory=list)

    def write(self, method: str, path: str, text: str, what: str, value: Value) -> int:
        """Send one write; a refusal must have words, and not be the server's own failure."""
        kind = MERGE if method == "PATCH" else "application/json"
        answer = self.client.send(
            *(method, path, text.encode()), content_type=kind, accept=SHALLOW, query=BARE
        )
        self.answers[answer.status] += 1
        too_large = value.name == "a key of 1 MiB"
        if answer.status >= 500 and not too_large:
            self.odd.append(f"{method} {what} = {value.name}: {answer.status} {answer.message}")
        if 400 <= answer.status < 500 and not answer.message:
            self.odd.append(f"{method} {what} = {value.name}: {answer.status} without a word")
        return answer.status


def account(space: Space, *roles: str) -> Account:
    """Return an account with roles of the project's."""
    name = f"{roles[0]}-thief"
    space.account(name)
    for role in roles:
        space.bind(name, role, called=f"{name}-{role}")
    return Account(space.as_account(name))


def create_all(thief: Account, space: Space, plural: str, foreign: str) -> None:
    """Create an object for each field and value."""
    path, fields = collection_path(space.name, plural), (*schema_fields(plural, "spec"), *METADATA)
    for number, (place, value) in enumerate(tried(fields, foreign)):
        body = MANIFESTS[plural](f"{plural[:8]}-{number}")
        thief.write("POST", path, place.put(body, value), f"{plural} {place}", value)


def patch_all(thief: Account, path: str, fields: list[ResourceField], foreign: str) -> None:
    """Patch one object with each field and value."""
    for place, value in tried(fields, foreign):
        thief.write("PATCH", path, place.put({}, value), f"{place}", value)
