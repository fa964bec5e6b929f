"""Examples of requests, for OpenAPI and the reference page. Tests send every one of them."""

from typing import Any, Final

Examples = dict[str, Any]


def _examples(**values: Any) -> Examples:
    return {name.replace("_", "-"): {"value": value} for name, value in values.items()}


PUBLIC_SUBMISSIONS: Final = _examples(
    plain={"jobType": "SEND_EMAIL", "payload": {"to": "ada@example.org", "subject": "Hello"}},
    once={
        "jobType": "SEND_EMAIL",
        "payload": {"to": "ada@example.org", "subject": "Invoice 42"},
        "idempotencyKey": "invoice-42",
    },
)

SUBMISSIONS: Final = _examples(
    plain={"type": "report.csv", "payload": {"month": "2026-11"}},
    every_option={
        "type": "report.csv",
        "payload": {"month": "2026-11"},
        "queue": "reports",
        "labels": {"team": "finance"},
        "priority": 10,
        "notAfter": "2099-12-31T00:00:00Z",
        "executionTimeoutSeconds": 600,
        "retryPolicy": {"maxRetries": 5, "backoff": "Exponential", "initialDelaySeconds": 2},
        "ttlSecondsAfterFinished": 86400,
        "idempotencyKey": "report-2026-11",
        "concurrencyKey": "finance",
    },
    one_at_a_time={"type": "mailbox.sync", "deduplicationId": "mailbox-7"},
)

BATCHES: Final = _examples(
    two={
        "jobs": [
            {"type": "SEND_EMAIL", "payload": {"to": "ada@example.org"}},
            {"type": "SEND_EMAIL", "payload": {"to": "bob@example.org"}},
        ]
    }
)

CHANGES: Final = _examples(suspend={"suspend": True}, hurry={"priority": 100})

BULK_ACTIONS: Final = _examples(
    look_first={"selection": {"type": "SEND_EMAIL"}, "limit": 100, "dryRun": True},
    do_it={"selection": {"type": "SEND_EMAIL", "olderThanSeconds": 3600}, "limit": 100},
)

BACKFILLS: Final = _examples(
    two_weeks={"from": "2026-11-01T00:00:00Z", "to": "2026-11-14T23:59:59Z", "maxActive": 2},
)
