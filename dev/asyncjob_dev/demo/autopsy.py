"""What to read when the demo did not go as it should."""

from collections.abc import Iterator, Sequence

from asyncjob_dev.demo.verdict import ScenarioResult
from asyncjob_dev.environment import Environment
from asyncjob_dev.files import tail

LOGS = ("operator", "worker-1", "worker-2")
LOG_LINES = 25


def diagnostics(environment: Environment, rows: Sequence[ScenarioResult]) -> Iterator[str]:
    """Yield each job that went wrong, as the API server has it, and the ends of the logs."""
    for name in dict.fromkeys(row.scenario.job for row in rows if not row.result.ok):
        found = environment.plane.kubectl("get", "asyncjob", name, "-o", "yaml", check=False)
        yield f"--- asyncjob {name}\n{found.stdout or found.stderr}"
    for name in LOGS:
        end = tail(environment.layout.logs / f"{name}.log", LOG_LINES)
        yield f"--- the end of {name}.log\n{end}"
