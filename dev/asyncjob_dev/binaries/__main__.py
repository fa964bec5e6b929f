"""`python -m asyncjob_dev.binaries [TOOL…]`: make sure that programs are there, and say where.

It needs nothing but Python, so that it can run while the rest is installed.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from asyncjob_dev.binaries.installed import Binary
from asyncjob_dev.binaries.pins import MONITORING_TOOLS, NODE_TOOLS, SERVER_TOOLS, TOOLS
from asyncjob_dev.binaries.resolver import (
    assets_folder,
    default_resolver,
    other_versions,
    programs_of,
)
from asyncjob_dev.errors import KEPT, DevError

INTERRUPTED = 130
GROUPS = {
    "server": (SERVER_TOOLS, "those that an API server needs, and kubectl"),
    "node": (NODE_TOOLS, "those that a node needs besides"),
    "monitoring": (MONITORING_TOOLS, "prometheus and promtool"),
}


def table(found: Sequence[Binary]) -> str:
    """Return the programs in columns."""
    rows = [("TOOL", "VERSION", "FROM", "PATH")]
    rows += [(b.tool, b.version or "?", b.source, str(b.path)) for b in found]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )


def read_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Return `tools`, the other version of `kubernetes`, if any, and whether to be `quiet`."""
    parser = argparse.ArgumentParser(
        prog="python -m asyncjob_dev.binaries",
        description="Find, download or build programs; print where they are.",
    )
    parser.add_argument("names", nargs="*", metavar="TOOL", help="by default the control plane's")
    parser.add_argument("--quiet", action="store_true", help="print nothing if all goes well")
    groups = parser.add_mutually_exclusive_group()
    for name, (tools, text) in GROUPS.items():
        groups.add_argument(f"--{name}", action="store_const", dest="tools", const=tools, help=text)
    groups.add_argument(
        "--kubernetes",
        choices=other_versions(),
        help="a control plane of another version; prints only the folder, for KUBEBUILDER_ASSETS",
    )
    given = parser.parse_args(argv)
    given.tools = given.names or given.tools or TOOLS
    return given


def main(argv: Sequence[str]) -> int:
    """Return the exit code."""
    given = read_arguments(argv)
    try:
        if given.kubernetes:
            print(assets_folder(programs_of(given.kubernetes, os.environ), os.environ))
            return 0
        found = default_resolver().resolve_all(given.tools)
    except DevError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\ninterrupted. {KEPT}", file=sys.stderr)
        return INTERRUPTED
    if not given.quiet:
        print(table(found))
    return 0


if __name__ == "__main__":
    # Shells without job control have it ignored for every `command &`.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
