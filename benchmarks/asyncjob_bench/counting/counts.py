"""All counts of the pure paths, by the keys that `limits.toml` has."""

from collections.abc import Callable, Mapping
from typing import Final

from asyncjob_bench.counting import lives, operator_path, worker_path
from asyncjob_bench.counting.blocks import blocks_kept

FEW: Final = 10
MANY: Final = 2000
BLOCKS_OF: Final = 1000


def worker_growth() -> float:
    """Return how many times more instructions a job takes the worker with a long backlog."""
    return worker_path.worker_instructions_per_job(MANY) / worker_path.worker_instructions_per_job()


def operator_growth() -> float:
    """Return how many times more instructions an event takes the operator with many jobs."""
    return operator_path.operator_instructions_per_job(
        MANY
    ) / operator_path.operator_instructions_per_job(FEW)


def waiting_blocks() -> float:
    """Return what the operator keeps of a job that waits."""
    watching = operator_path.new_observer()
    return blocks_kept(
        lambda number: watching.on_update(lives.queued(number), live=True), BLOCKS_OF
    )


def finished_blocks() -> float:
    """Return what the operator keeps of a finished job."""
    watching = operator_path.new_observer()
    return blocks_kept(
        lambda number: watching.on_update(lives.completed(number), live=True), BLOCKS_OF
    )


def backlog_blocks() -> float:
    """Return what a worker keeps of a job that it may claim."""
    return blocks_kept(worker_path.WorkerPath(0).add_job, BLOCKS_OF)


COUNTS: Final[Mapping[str, Callable[[], float]]] = {
    "worker_instructions_per_job": worker_path.worker_instructions_per_job,
    "worker_instructions_growth": worker_growth,
    "operator_instructions_per_job": lambda: operator_path.operator_instructions_per_job(FEW),
    "operator_instructions_growth": operator_growth,
    "operator_blocks_per_waiting_job": waiting_blocks,
    "operator_blocks_per_finished_job": finished_blocks,
    "worker_blocks_per_backlog_job": backlog_blocks,
}
