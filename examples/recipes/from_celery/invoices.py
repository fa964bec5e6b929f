"""The work itself, which knows of no queue."""

import time
from pathlib import Path

from examples.handlers.places import replacing, target_path


class MailServerDownError(Exception):
    """Another try may do."""


def send_invoice(number: int, *, pause: float = 0.0) -> str:
    """Send it; here a file of that number stands for the mail."""
    time.sleep(pause)
    with replacing(target_path(Path(f".dev/out/invoices/{number}.txt"), ".txt")) as mail:
        mail.write(f"invoice {number}")
    return f"invoice {number} sent"
