"""Runs a program that takes one order as JSON on stdin and answers with JSON on stdout."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from asyncjob_bench.errors import BenchError

LAST_WORDS = 2000


def run_program(argv: Sequence[str], order: dict[str, Any], within: float) -> dict[str, Any]:
    """Return its answer; raises BenchError with the end of what it said on stderr."""
    done = subprocess.run(
        argv, input=json.dumps(order), capture_output=True, text=True, timeout=within, check=False
    )
    if done.returncode != 0:
        raise BenchError(f"{' '.join(argv[-3:])} failed:\n{done.stderr.strip()[-LAST_WORDS:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
