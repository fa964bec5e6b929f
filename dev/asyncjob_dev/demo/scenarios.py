"""The scenarios of the demo, in the order of their letters."""

from asyncjob_dev.demo import checks
from asyncjob_dev.demo.checks import Check, Scenario

QUEUE = "queue"

UNDISTURBED: tuple[tuple[Scenario, Check], ...] = (
    (
        Scenario(
            "a",
            "digest-files",
            "every file of a folder: SHA-256 and lines",
            "Succeeded, with the digests that the files have",
        ),
        checks.check_files_digested,
    ),
    (
        Scenario(
            "a",
            "report-orders",
            "a CSV file turned into an HTML report",
            "Succeeded, and the report lies where its result says",
        ),
        checks.check_report_written,
    ),
    (
        Scenario(
            "b",
            "flaky-call",
            "a call that fails twice",
            "Succeeded in attempt 3, after 2 retries",
        ),
        checks.check_succeeded_after_failures,
    ),
    (
        Scenario(
            "c",
            "always-fails",
            "work that never succeeds",
            "DeadLetter after 3 attempts, with the error kept",
        ),
        checks.check_dead_letter,
    ),
)

CRASHED = Scenario(
    "d",
    "slow-count",
    "half done when its worker is killed (SIGKILL)",
    "recovered; the other worker goes on from the last checkpoint, in attempt 2",
)

REFUSED = Scenario(
    "e",
    "mistake",
    "a manifest with a mistake",
    "refused by the API server, which names the field",
)
FIELD = "spec.retryPolicy.maxRetries"
