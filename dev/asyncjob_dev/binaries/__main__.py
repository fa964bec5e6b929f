"""`python -m asyncjob_dev.binaries`: make sure that every program is there, and say where."""

import click

from asyncjob_dev.binaries.pins import NODE_TOOLS, TOOLS
from asyncjob_dev.binaries.resolve import Binary, default_resolver
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
@click.option("--node", is_flag=True, help="Those that a node needs besides.")
def main(*, node: bool) -> None:
    """Find, download or build the control plane's programs and print where they are."""
    tools = NODE_TOOLS if node else TOOLS
    try:
        click.echo(table(default_resolver().resolve_all(tools)))
    except DevError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
