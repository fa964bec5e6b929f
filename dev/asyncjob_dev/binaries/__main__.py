"""`python -m asyncjob_dev.binaries [TOOL…]`: make sure that programs are there, and say where."""

import click

from asyncjob_dev.binaries.pins import MONITORING_TOOLS, NODE_TOOLS, TOOLS
from asyncjob_dev.binaries.resolver import Binary, default_resolver
from asyncjob_dev.errors import DevError


def table(found: list[Binary]) -> str:
    """Return the programs in columns."""
    rows = [("TOOL", "VERSION", "FROM", "PATH")]
    rows += [(b.tool, b.version or "?", b.source, str(b.path)) for b in found]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )


@click.command()
@click.argument("names", nargs=-1, metavar="[TOOL]…")
@click.option("--node", "of_node", is_flag=True, help="Those that a node needs besides.")
@click.option("--monitoring", is_flag=True, help="prometheus and promtool instead.")
def main(*, names: tuple[str, ...], of_node: bool, monitoring: bool) -> None:
    """Find, download or build programs, the control plane's by default; print where they are."""
    tools = names or (NODE_TOOLS if of_node else MONITORING_TOOLS if monitoring else TOOLS)
    try:
        click.echo(table(default_resolver().resolve_all(tools)))
    except DevError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
