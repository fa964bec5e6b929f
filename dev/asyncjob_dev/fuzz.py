"""`python -m asyncjob_dev.fuzz`: parsers of what others send, seed after seed.

A seed that fails is told with the command that repeats it, and Hypothesis keeps the example in
`.hypothesis`, so that `make unit` fails by it as well. With the mend it becomes an `@example`.
"""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import click

TESTS: Final = "tests/properties/parsers"
EXAMPLES: Final = 500
"""Of each property, with each seed: a round takes about two minutes of one core."""

FIRST_EXAMPLES: Final = 50
"""In a first round that shows how long one takes here."""

LEAST_EXAMPLES: Final = 25
"""As `make unit` tries; a shorter round is not worth its start."""

_SEED_BITS: Final = 32


@click.command()
@click.option("--seed", type=int, help="The first seed; a fresh one by default.")
@click.option(
    "--minutes", type=float, help="Rounds, the last one shorter, for so long; one by default."
)
@click.option("--examples", type=int, default=EXAMPLES, show_default=True, help="Of each property.")
def main(*, seed: int | None, minutes: float | None, examples: int) -> None:
    """Give parsers what nobody would write, and demand an answer or the documented error."""
    first = secrets.randbits(_SEED_BITS) if seed is None else seed
    click.echo(f"first seed: {first}")
    end = time.monotonic() + 60 * (minutes or 0.0)
    rounds, tried, size = 0, 0, min(FIRST_EXAMPLES, examples) if minutes else examples
    while size:
        began = time.monotonic()
        if status := _run(first + rounds, size):
            click.echo(f"again: make fuzz SEED={first + rounds} EXAMPLES={size}")
            sys.exit(status)
        rounds, tried, now = rounds + 1, tried + size, time.monotonic()
        size = examples_in(end - now, (now - began) / size, examples)
    click.echo(f"{rounds} rounds, {tried} examples for each property: none failed")


def examples_in(seconds: float, seconds_each: float, most: int) -> int:
    """Return how many examples of each property the next round tries; 0 if there is no time."""
    fitting = int(seconds / seconds_each) if seconds > 0 else 0
    return min(fitting, most) if fitting >= LEAST_EXAMPLES else 0


def _run(seed: int, examples: int) -> int:
    command = [
        sys.executable, "-m", "pytest", TESTS, "-q", f"--hypothesis-seed={seed}", "--timeout=3600",
        "--deselect", f"{TESTS}/test_cost.py",
    ]  # fmt: skip
    environment = {**os.environ, "ASYNCJOB_FUZZ_EXAMPLES": str(examples)}
    return subprocess.run(command, env=environment, check=False, cwd=Path.cwd()).returncode


if __name__ == "__main__":
    main()
