"""`spec.rerun`: a new, linked job that does the same; its derived name makes it happen once."""

from hashlib import sha256
from typing import Final

from asyncjob_operator.core.decision import Rerun, Verdict
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "rerun"
MAX_NAME: Final = 253
_DIGEST: Final = 10


def rerun(snapshot: Snapshot, _now: Moment) -> Verdict:
    """Create the rerun that was asked for, however far the number was raised."""
    job = snapshot.job
    number = job.wishes.rerun
    if number <= job.reruns:
        return None
    return Rerun(NAME, number, rerun_name(job.name, number))


def rerun_name(name: str, number: int) -> str:
    """Return `<name>-r<number>`, a name too long for it cut and told apart by a digest."""
    suffix = f"-r{number}"
    if len(name) + len(suffix) <= MAX_NAME:
        return name + suffix
    digest = sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: MAX_NAME - len(suffix) - _DIGEST - 1].rstrip('-.')}-{digest}{suffix}"
