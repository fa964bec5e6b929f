"""The handlers, where the tasks were."""

from examples.recipes.from_celery.invoices import MailServerDownError, send_invoice
from pydantic import BaseModel

from asyncjob import Category, JobContext, RetryPolicy, WorkerApp

app = WorkerApp()
app.categorize(MailServerDownError, Category.NETWORK)


class Invoice(BaseModel):
    """The arguments of the task."""

    number: int
    pause: float = 0.0


AS_BEFORE = RetryPolicy(max_retries=5, initial_delay_seconds=60, retry_on=[Category.NETWORK])


@app.handler("invoice.send", timeout=120, retry=AS_BEFORE)
def send(job: JobContext, invoice: Invoice) -> str:
    """Call the function that the task called."""
    job.log.info("sending", number=invoice.number)
    return send_invoice(invoice.number, pause=invoice.pause)
