"""What operator and gateway occupy when they start beside many large finished jobs.

They are listed whole by both. Their payloads are many small values, which take eight times as much
once parsed as one long text.
"""

from typing import Any, Final

from asyncjob_bench.harness.generator import generate, whole_life
from asyncjob_bench.parts.ceiling import pod_tokens
from asyncjob_bench.parts.flow import CONNECTIONS
from asyncjob_bench.parts.part import Numbers, PartContext

PAYLOAD_BYTES: Final = 200 * 1024
_ROW_BYTES: Final = 41


def measure(context: PartContext) -> Numbers:
    """Return the most that each has occupied until it was ready, in MiB."""
    with context.site.space("large") as space:
        pods = pod_tokens(space, context.scale.workers)
        steps = whole_life(space, payload=_rows())
        generate(space, steps, context.scale.large_jobs, connections=CONNECTIONS, workers=pods)
        found = {}
        for program, start in (
            ("operator", space.start_operator),
            ("gateway", space.start_gateway),
        ):
            started = start().wait_ready()
            found[f"start_rss_{program}_mib"] = started.peak_mib
            started.worker.stop()
    return found


def _rows() -> Any:
    rows = PAYLOAD_BYTES // _ROW_BYTES
    return [{"id": number, "name": f"row {number}", "ok": True} for number in range(rows)]
