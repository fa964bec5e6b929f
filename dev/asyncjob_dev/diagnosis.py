"""Turns the log of a dead process into the sentence a reader needs."""

from asyncjob_dev.errors import PortTakenError, ProcessDiedError

PORT_TAKEN = "address already in use"

USUAL_CAUSES = (
    (
        PORT_TAKEN,
        "Its port is taken: another process listens on it; choose another port or stop it.",
    ),
    ("no space left on device", "The disk is full: set TMPDIR or the data directory elsewhere."),
    ("permission denied", "A file or folder belongs to somebody else: check the data directory."),
    ("too many open files", "Too few file descriptors: raise `ulimit -n`."),
    ("unknown flag", "It does not know one of its flags: is it the pinned version?"),
    ("cannot allocate memory", "The machine is out of memory; a control plane needs about 500 MB."),
    ("no such program", "The program does not exist; is it installed, and in the environment?"),
)


def usual_cause(log: str) -> str:
    """Return the usual cause of what the log says, or an empty string."""
    lowered = log.lower()
    return next((sentence for sign, sentence in USUAL_CAUSES if sign in lowered), "")


def process_died_error(name: str, returncode: int, log: str) -> ProcessDiedError:
    """Return the error for a process that ended too early."""
    kind = PortTakenError if PORT_TAKEN in log.lower() else ProcessDiedError
    return kind(name, returncode, log, usual_cause(log))
