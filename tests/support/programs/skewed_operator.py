"""`asyncjob-operator` with a wall clock that a file says how wrong it is, in seconds.

Wrong is either all there is to know of the time, the API server's answers included, or just the
clock of the operator's machine.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from asyncjob_operator import components
from asyncjob_operator.cli import main
from asyncjob_operator.kube.clock import Clock

SKEW = Path(os.environ["OPERATOR_SKEW_FILE"])
MACHINE_ALONE = os.environ["OPERATOR_SKEW_OF"] == "machine"


class SkewedClock(Clock):
    def __init__(self, server_time: Callable[[], float | None]) -> None:
        super().__init__(
            server_time if MACHINE_ALONE else lambda: None,
            lambda: time.time() + float(SKEW.read_text() or 0),
        )


vars(components)["Clock"] = SkewedClock

if __name__ == "__main__":
    main()
