"""The bare generator: a Go program that carries steps out for many jobs and does nothing else."""

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asyncjob_bench.errors import BenchError, WrongOutcomeError
from asyncjob_bench.harness import templates
from asyncjob_bench.harness.programs import run_program
from asyncjob_bench.harness.space import PodToken, Space
from asyncjob_dev.cache_folder import cache_dir

MODULE: Final = Path(__file__).parents[2] / "raw"
SECONDS_PER_JOB: Final = 1.0
LEAST_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class GeneratorReport:
    """What a run took; latencies in ms by step, then by quantile; times are Unix times."""

    seconds: float
    cpu_seconds: float
    started: float
    ended: float
    latencies: dict[str, dict[str, float]]


@functools.cache
def generator() -> Path:
    """Build the program; Go's own cache makes that quick but for the first time."""
    go = shutil.which("go")
    if go is None:
        raise BenchError("the bare generator is written in Go, and there is no `go` on PATH")
    target = cache_dir(os.environ) / "bench" / "raw"
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"raw-{os.getpid()}")
    done = subprocess.run(
        [go, "build", "-mod=readonly", "-trimpath", "-o", str(draft), "."],
        cwd=MODULE,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BenchError(f"building the bare generator failed:\n{done.stdout}{done.stderr}")
    draft.replace(target)
    return target


def generate(
    space: Space,
    steps: Sequence[templates.Step],
    count: int,
    *,
    connections: int = 16,
    workers: Sequence[PodToken] = (),
    prefix: str = "job-",
    first: int = 0,
) -> GeneratorReport:
    """Carry the steps out for so many jobs; raises WrongOutcomeError unless all succeed."""
    order = {
        "url": space.plane.url,
        "caFile": str(space.plane.ca_file),
        "connections": connections,
        "prefix": prefix,
        "first": first,
        "count": count,
        "identities": [_identity(pod) for pod in workers],
        "steps": [step.to_json() for step in steps],
    }
    answer = run_program([str(generator())], order, LEAST_SECONDS + count * SECONDS_PER_JOB)
    if answer["completed"] != count:
        raise WrongOutcomeError(f"{answer['completed']} of {count} jobs: {answer['failures']}")
    return GeneratorReport(
        answer["seconds"],
        answer["cpuSeconds"],
        answer["started"],
        answer["ended"],
        answer["latencies"],
    )


def whole_life(space: Space, size: int = 100, **spec: Any) -> list[templates.Step]:
    """Return the three writes of a plain job."""
    submitted = templates.job(space.name, templates.submission(size, **spec))
    token = space.submitter_token()
    return [
        templates.create(space.name, token, submitted),
        templates.claim(space.name),
        templates.complete(space.name, submitted),
    ]


def creation(space: Space, size: int = 100, **spec: Any) -> list[templates.Step]:
    """Return the first of them alone."""
    submitted = templates.job(space.name, templates.submission(size, **spec))
    return [templates.create(space.name, space.submitter_token(), submitted)]


def _identity(pod: PodToken) -> dict[str, Any]:
    marks = {
        templates.POD: pod.name,
        templates.POD_UID: pod.uid,
        templates.WORKER: f"{pod.name}/bench",
    }
    return {"token": pod.token, "marks": marks}
