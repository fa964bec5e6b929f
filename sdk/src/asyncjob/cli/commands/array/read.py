"""`array get`, `array list`, `array items`, `array results`."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.commands.array.wait import NAME_ARGUMENT
from asyncjob.cli.connection import ConnectionOptions, with_all_namespaces, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.input.array_filters import with_array_selection
from asyncjob.cli.input.resource_names import current_program
from asyncjob.cli.output.array_tables import (
    SHOWN_CHARACTERS,
    array_detail,
    array_table,
    failure_table,
    state_table,
)
from asyncjob.cli.output.detail import RenderContext
from asyncjob.cli.output.printer import (
    OutputFormat,
    Printer,
    note,
    to_json_line,
    with_printer,
)
from asyncjob.cli.output.tables import counted, truncate
from asyncjob.client.results import StoredResults, item_results_of
from asyncjob.json_text import loads
from asyncjob.offload import Address, AllowList, Store
from asyncjob.offload.store import check_driver
from asyncjob.rest.arrays import ArrayInfo, ArraySelection, FailedItems
from asyncjob.rest.item_states import item_states

NO_ARRAYS: Final = "no arrays here"


@click.command(cls=SectionedCommand)
@NAME_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def get(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Show an array in detail: progress, rate, expected end, the newest errors, next steps."""
    with cli.connect(connection) as jobs:
        found = jobs.array(name)
    if printer.format is OutputFormat.TABLE:
        context = RenderContext(cli.now(), current_program(), printer.colour, printer.width)
        for line in array_detail(found, context):
            printer.line(line)
    elif printer.human_readable:
        printer.table(array_table([found], cli.now()))
    else:
        printer.objects([found], one=True)


@click.command("list", cls=SectionedCommand)
@with_array_selection
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of arrays, the newest.")
@with_printer()
@with_all_namespaces
@click.pass_obj
def list_(
    cli: CliContext,
    *,
    selection: ArraySelection,
    limit: int | None,
    connection: ConnectionOptions,
    printer: Printer,
) -> None:
    """List arrays, newest first, with progress, rate and expected end."""
    with cli.lister(connection) as jobs:
        found = list(islice(jobs.arrays(selection), limit))
    draw = partial(array_table, now=cli.now(), everywhere=connection.everywhere)
    filtered = selection.model_dump(exclude_none=True)
    printer.listing(found, draw, otherwise="no arrays match" if filtered else NO_ARRAYS)


@click.command(cls=SectionedCommand)
@NAME_ARGUMENT
@click.option("--failed", is_flag=True, help="Only those that failed, with the newest errors.")
@with_printer(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML, OutputFormat.NAME)
@with_connection
@click.pass_obj
def items(
    cli: CliContext, *, name: str, failed: bool, connection: ConnectionOptions, printer: Printer
) -> None:
    """Show what has become of the items of an array, by their numbers.

    With --failed -o name prints the number of each failed item in a line of its own.
    """
    if printer.format is OutputFormat.NAME and not failed:
        raise click.UsageError("-o name is for --failed: it prints the numbers of failed items")
    with cli.connect(connection) as jobs:
        if failed:
            _print_failed(jobs.failed_items(name), printer)
            return
        states = item_states(jobs.array(name))
    if printer.human_readable:
        printer.table(state_table(states))
    else:
        printer.data(
            {"items": [{"state": s.state, "count": s.count, "items": s.items} for s in states]}
        )


def _print_failed(found: FailedItems, printer: Printer) -> None:
    if printer.format is OutputFormat.NAME:
        printer.names(map(str, found.numbers))
    elif not printer.human_readable:
        printer.objects([found], one=True)
    elif found.failed:
        for line in _failed_lines(found):
            printer.line(line)
        if found.errors:
            printer.line()
            printer.table(failure_table(found.errors))
    else:
        note("no failed items")


def _failed_lines(found: FailedItems) -> Sequence[str]:
    said = f"{counted(found.failed, 'item')} failed: {truncate(found.items, SHOWN_CHARACTERS)}"
    unlisted = f"{found.unlisted:,} of them only counted: there is no room for their numbers"
    return [said, *([unlisted] if found.unlisted else [])]


class _DriverOptionsParam(click.ParamType[Mapping[str, Any]]):
    """Options of a store's driver, as a JSON object."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Mapping[str, Any]:
        """Return them; the value is not repeated in an error: it may hold credentials."""
        try:
            options = loads(value)
        except ValueError:
            options = None
        if not isinstance(options, dict):
            self.fail('it has to be a JSON object, such as {"endpoint_url": "…"}', param, ctx)
        return options


@click.command(cls=SectionedCommand)
@NAME_ARGUMENT
@click.option(
    "--offload-options",
    type=_DriverOptionsParam(),
    help="Options of the store's fsspec driver, as a JSON object; no credentials.",
)
@with_connection
@click.pass_obj
def results(
    cli: CliContext,
    *,
    name: str,
    offload_options: Mapping[str, Any] | None,
    connection: ConnectionOptions,
) -> None:
    """Print what the items of an array have returned, in the order of the items.

    A JSON line for each item that is done: {"item": 17, "result": ...}. They are read from the
    store in which the array keeps them, with your own rights there. Exit code 3 if it keeps none,
    1 if items that are done have no result there.

    \b
      asyncjob array results thumbs > thumbs.jsonl
      asyncjob array results thumbs | jq -r .result.size
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    with cli.connect(connection) as jobs:
        array = jobs.array(name)
    if not array.finished:
        note(f"array {name} is {array.phase}: {counted(array.succeeded, 'item')} done so far")
    found = item_results_of(array, _store_of(array, offload_options or {}))
    for one in found:
        click.echo(to_json_line({"item": one.item, "result": one.result}))
    found.check()


def _store_of(array: ArrayInfo, options: Mapping[str, Any]) -> StoredResults | None:
    """Return what reads the results of this one array."""
    if array.spec is None or array.spec.results is None:
        return None
    folder = Address.folder(array.spec.results.uri)
    check_driver(folder.protocol)
    return StoredResults(AllowList((folder,)), Store({folder.protocol: options}))
