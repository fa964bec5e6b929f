"""What a submission becomes: checked, named, and known again when it comes a second time. Pure.

Gateway, clients and command line all submit by this, so that the same key names the same job
whichever way it comes. It must not know how anything is sent.
"""

from asyncjob.intake.content import content_of, content_of_job
from asyncjob.intake.errors import InvalidSubmissionError
from asyncjob.intake.naming import key_name, number_of, numbered_name, stem
from asyncjob.intake.order import Order, order
from asyncjob.intake.reading import read_submission
from asyncjob.intake.verdict import Verdict, verdict

__all__ = [
    "InvalidSubmissionError",
    "Order",
    "Verdict",
    "content_of",
    "content_of_job",
    "key_name",
    "number_of",
    "numbered_name",
    "order",
    "read_submission",
    "stem",
    "verdict",
]
