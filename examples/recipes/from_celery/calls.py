"""What the application calls where it called `send_invoice.delay(number)`."""

import sys

from asyncjob import Jobs, KubernetesJobsClient


def send_invoice_later(jobs: Jobs, number: int) -> str:
    """Submit the job of this invoice, the same one if it was submitted before."""
    invoice = {"number": number}
    return jobs.submit("invoice.send", invoice, idempotency_key=f"invoice/{number}").id


def main() -> None:
    """Send the invoices that are named on the command line."""
    with KubernetesJobsClient.connect() as jobs:
        for number in sys.argv[1:]:
            job = jobs.wait(send_invoice_later(jobs, int(number)), timeout=60)
            sys.stdout.write(f"{job.phase}: {job.result}\n")


if __name__ == "__main__":
    main()
