"""What to read when the demo did not go as it should."""

from collections.abc import Iterator, Sequence

from asyncjob_dev.demo.verdict import Row
from asyncjob_dev.environment import Environment
from asyncjob_dev.files import tail

LOGS = ("operator", "worker-1", "worker-2")
LINES = 25


def autopsy(environment: Environment, rows: Sequence[Row]) -> Iterator[str]:
    """Yield each job that went wrong, as the API server has it, and the ends of the logs."""
    for name in dict.fromkeys(row.scenario.job for row in rows if not row.verdict.ok):
        found = environment.plane.kubectl("get", "asyncjob", name, "-o", "yaml", check=False)
        yield f"--- asyncjob {name}\n{found.stdout or found.stderr}"
    for name in LOGS:
        yield f"--- the end of {name}.log\n{tail(environment.layout.logs / f'{name}.log', LINES)}"
